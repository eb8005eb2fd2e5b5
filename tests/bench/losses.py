#!/usr/bin/python3
"""How late the verdicts come when a node dies with many jobs on it, on a real control plane on this machine.

    tests/bench/losses.py --operator build/release/operator/runtime/holdfast-operator 50 300 1000

For each number: so many running jobs on one simulated node, which then falls silent for ever. Prints how long
after the node's last renewal and `lostAfterSeconds` the verdicts are on record, beside the published bound, and how
many live reads of the node's Lease they took. Moments are those of the API server's audit log. Numbers are of the
machine that it runs on; the load of the machine before is printed, too.
"""

import argparse
import concurrent.futures
import math
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support")]

from holdfast import OPERATOR_USER, Jobs, Operator, install, job, place  # noqa: E402
from localcluster import Cluster, wait_for  # noqa: E402
from losses import new_namespace, seconds_of  # noqa: E402
from many_losses import lease_reads, verdicts  # noqa: E402

LOST_AFTER = 40
LIMIT = 900
# docs/bounds.md, "Many losses at once": of a node, with 25 ms for each request.
REACTION, AT_ONCE, REQUESTS, LATENCY = 1, 16, 8, 0.025


def bound(count):
    return REACTION + math.ceil(count / AT_ONCE) * REQUESTS * LATENCY


def measure(count):
    with Cluster(nodes=0, quiet=True) as cluster:
        install(cluster)
        cluster.add_node("dies")
        jobs = Jobs(cluster, new_namespace(cluster, "many"))
        with Operator(cluster):
            names = [f"job-{number}" for number in range(count)]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda name: jobs.apply(job(name, lostAfterSeconds=LOST_AFTER)), names))

            def all_told():
                found = jobs.list()
                return sum(bool(place(one.get("status", {})).get("nodeName")) for one in found) == count

            wait_for("all jobs to run", all_told, LIMIT)
            cluster.add_node("other")
            offset = cluster.audit_offset()
            cluster.kubectl("cordon", "dies")
            cluster.kill_node("dies")
            last = seconds_of(cluster.node_lease("dies")["spec"]["renewTime"])
            wait_for("all verdicts", lambda: len(verdicts(cluster, offset, OPERATOR_USER)) >= count, LIMIT)
            late = sorted(when - last - LOST_AFTER for when in verdicts(cluster, offset, OPERATOR_USER).values())
            return late, len(lease_reads(cluster, offset, "dies", OPERATOR_USER))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operator", help="default: HOLDFAST_OPERATOR, or the build's")
    parser.add_argument("counts", nargs="*", type=int, default=[50, 300, 1000])
    options = parser.parse_args()
    if options.operator:
        os.environ["HOLDFAST_OPERATOR"] = options.operator
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    print("| jobs on the node | bound (s) | first verdict (s) | half | last | live reads of its Lease |")
    print("|---|---|---|---|---|---|")
    for count in options.counts:
        late, reads = measure(count)
        print(f"| {count} | {bound(count):.1f} | {late[0]:.2f} | {late[len(late) // 2]:.2f} "
              f"| {late[-1]:.2f} | {reads} |", flush=True)


if __name__ == "__main__":
    main()
