#!/usr/bin/python3
"""What Holdfast costs and how fast it is, beside batch/v1's controller, on a real control plane.

    make bench                      all modes, then docs/internals/performance.md
    make bench MODES="a e"          these alone
    tests/bench/bench.py a --jobs 300 --rounds 1

Each mode has a control plane of its own, so that what one leaves behind is nothing to the next, and writes
build/bench/results/MODE.json; tests/bench/report.py makes tables and plots of what is there. All figures are
of the machine that it runs on, API server, etcd and simulated nodes beside it.

a  jobs that end at once, beside batch/v1, with the controller-manager unthrottled and as it comes
b  reaction, job by job, with many finished and running jobs around
c  CPU and memory at rest, and the cost of a job more, by the number of finished jobs
d  restart and take-over
e  the API server's limits with the same client library, and the share that is reached
f  1, 2 and 4 replicas
g  what one write costs the API server, by kind of write, with a tiny and a realistic template
h  very many finished jobs: the first read, and the return of a replica that was cut off; and replicas among still
   more finished and running jobs, on a server that only lists and watches
i  jobs of many runs, beside batch/v1's Indexed Jobs; and one of 10,000 runs
l  batch/v1 Jobs that Holdfast runs, beside batch/v1's own controller and DurableJobs
q  jobs through a JobQueue, beside the same without one; and how soon the next job of a queue starts
j  20,000 jobs that wait in 200 queues: memory, CPU, and writes at rest
w  jobs of a WorkerPool, beside batch/v1 and jobs with pods: start, burst, many runs, 500 workers at rest
s  300 jobs of a WorkerPool at once, beside 300 SandboxClaims of agent-sandbox's warm pool; only where it is named
"""

import argparse
import contextlib
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/bench")]

import at_once  # noqa: E402
import in_queues  # noqa: E402
import many_runs  # noqa: E402
import returns  # noqa: E402
import sandbox_claims  # noqa: E402
import standing  # noqa: E402
import very_many  # noqa: E402
import warm_workers  # noqa: E402
import writes  # noqa: E402
from measure import write_result  # noqa: E402
from plane import Plane, machine, versions  # noqa: E402
from templates import NAMES  # noqa: E402

RESULTS = ROOT / "build/bench/results"
MODES = {"a": at_once.mode_a, "b": standing.mode_b, "c": standing.mode_c,
         "d": standing.mode_d, "e": at_once.mode_e, "f": at_once.mode_f, "g": writes.mode_g,
         "h": returns.mode_h, "i": many_runs.mode_i, "l": at_once.mode_l, "q": in_queues.mode_q, "j": in_queues.mode_j,
         "w": warm_workers.mode_w, "s": sandbox_claims.mode_s}
# What needs a program that Holdfast does not have: measured only where it is named.
BY_NAME = {"s"}


def say(line):
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("modes", nargs="*", choices=[*MODES, []], help="default: all but s")
    add("--jobs", type=int, default=1000, help="at once, in a, e and f; default 1000")
    add("--rounds", type=int, default=3, help="of a, e, f and g; default 3")
    add("--jobs-of-defaults", type=int, default=200, help="the same for a throttled controller-manager; default 200")
    add("--rounds-of-defaults", type=int, default=2, help="default 2")
    add("--finished", type=int, default=10000, help="finished jobs in b, c and d; default 10000")
    add("--running", type=int, default=2000, help="running jobs in b; default 2000")
    add("--samples", type=int, default=300, help="jobs of the trickle in b; default 300")
    add("--interval", type=float, default=0.2, help="seconds between them; default 0.2")
    add("--idle-counts", type=numbers, default=[1000, 10000, 50000], help="in c; default 1000,10000,50000")
    add("--idle-seconds", type=int, default=60, help="of each measurement in c and j; default 60")
    add("--more", type=int, default=1000, help="jobs after each in c; default 1000")
    add("--restarts", type=int, default=5, help="in d; default 5")
    add("--many", type=numbers, default=[50000, 100000], help='finished jobs in h; default 50000,100000; "": none')
    add("--large", type=numbers, default=[1_000_000, 100_000], metavar="FINISHED,RUNNING",
        help='jobs in h where no real API server has room; default 1000000,100000; "": none')
    add("--returns", type=int, default=3, help="for each number in h; default 3")
    add("--writes", type=int, default=200, help="of each kind and round in g; default 200")
    add("--rounds-of-runs", type=int, default=3, help="of i; default 3")
    add("--short-runs", action="store_true", help="in i: leave the job of 10,000 runs out")
    add("--queued-jobs", type=int, default=5000, help="with and without a queue, in q; default 5000")
    add("--rounds-of-queues", type=int, default=3, help="of q; default 3")
    add("--one-by-one", type=int, default=200, help="jobs of a queue of one, in q; default 200")
    add("--waiting-jobs", type=int, default=20000, help="in 200 queues, in j; default 20000")
    add("--warm-jobs", type=int, default=5000, help="at once, in w; default 5000")
    add("--warm-runs", type=int, default=20000, help="of one job, in w; default 20000")
    add("--warm-workers", type=int, default=500, help="at rest, in w; default 500")
    add("--rounds-of-workers", type=int, default=2, help="of w; default 2")
    add("--parts", nargs="+", choices=warm_workers.PARTS, default=warm_workers.PARTS, help="of w; default: all")
    add("--sandbox-controller", metavar="PATH", help="in s: agent-sandbox's program, agent-sandbox-controller")
    add("--sandbox-manifests", metavar="FOLDER", help="in s: its folder k8s, with CRDs and rights, of the same version")
    add("--claims", type=int, default=300, help="claims or jobs at once, and ready places, in s; default 300")
    add("--claim-window", type=int, default=60, help="seconds of a measurement at least, in s; default 60")
    add("--rounds-of-claims", type=int, default=2, help="of s; default 2")
    add("--sides", nargs="+", choices=list(sandbox_claims.SIDES), default=list(sandbox_claims.SIDES),
        help="of s; default: all")
    add("--beside", metavar="REVISION", help="in g: measure this git revision's CRD by turns with the tree's")
    add("--durable-only", action="store_true", help="in g: leave pods, Leases and batch/v1 Jobs out")
    add("--template", choices=NAMES, default="tiny",
        help="of the jobs in b, e, f and q, while a and g measure both; default tiny")
    add("--nodes", type=int, default=20, help="simulated nodes; default 20")
    add("--operator", default=str(ROOT / "build/bench/operator/runtime/holdfast-operator"), help="its binary")
    add("--results", default=str(RESULTS), help="folder; default build/bench/results")
    options = parser.parse_args()
    if "s" in options.modes and (lacking := sandbox_claims.missing(options)):
        parser.error(lacking)
    if len(options.large) not in (0, 2):
        parser.error("--large takes two numbers")
    return options


def main():
    options = arguments()
    os.environ["HOLDFAST_OPERATOR"] = options.operator
    os.environ.setdefault("HOLDFAST_AGENT", str(ROOT / "build/bench/agent/holdfast-agent"))
    modes = [mode for mode in MODES if mode in (options.modes or set(MODES) - BY_NAME)]
    for mode in modes:
        say(f"mode {mode}: starting ...")
        began, about = time.monotonic(), machine()
        needs_plane = mode != "h" or options.many
        with Plane(nodes=options.nodes) if needs_plane else contextlib.nullcontext() as plane:
            about |= versions(plane and plane.cluster)
            figures = MODES[mode](plane, options, say)
        if mode == "h":
            # The control plane would take memory and CPU beside it.
            figures = {"many": figures, "large": very_many.measure(options.large, say) if options.large else []}
        write_result(pathlib.Path(options.results) / f"{mode}.json", {
            "mode": mode, "machine": about, "nodes": options.nodes, "template": options.template,
            "took_seconds": round(time.monotonic() - began), "figures": figures})
    say(f"written to {options.results}")


if __name__ == "__main__":
    main()
