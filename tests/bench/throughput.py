#!/usr/bin/python3
"""What Holdfast costs and how fast it is, on a real control plane on this machine.

    tests/bench/throughput.py --operator build/release/operator/runtime/holdfast-operator --batch

Jobs whose pods end at once, all applied at once: jobs/s, the operator's CPU and writes for each,
its peak memory. Then its memory at rest with all of them finished, and how soon it reacts on an idle
machine. With --batch the same jobs again as batch/v1 Jobs. Prints a table and writes JSON. Numbers
are of the machine that it runs on, API server, etcd and simulated nodes beside it.
"""

import argparse
import concurrent.futures
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests/support"), str(ROOT / "tests/bench")]

from holdfast import (OPERATOR_USER, Jobs, Operator, install, job, operator_binary,  # noqa: E402
                      runs)
from localcluster import Cluster, wait_for  # noqa: E402
from measure import JOBS, Audit, cpu_seconds, memory_mib, quantiles, write_result  # noqa: E402

BATCH_USER = "system:serviceaccount:kube-system:job-controller"
# As unthrottled as the operator is, so that the comparison is fair.
BATCH_FLAGS = ["--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-job-syncs=50"]
LIMIT = 900
# How long the operator is left alone before its memory at rest is read.
REST_SECONDS = 20
AIMS = {"idle_memory_mib": 30, "reaction_median_ms": 50}


def say(line):
    print(line, file=sys.stderr, flush=True)


def make_namespace(cluster, name):
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_for(f"the service account of {name}", lambda: cluster.api("GET", path)[0] == 200, 60)
    return Jobs(cluster, name)


def server_cpu_seconds(cluster):
    """What the API server and etcd have used: on a small machine they set the pace."""
    processes = cluster.processes()
    return sum(cpu_seconds(processes[part]["pid"]) for part in ("kube-apiserver", "etcd"))


def at_once(apply, bodies):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(apply, bodies))


def holdfast_at_once(cluster, operator, count):
    """All the jobs at once."""
    jobs = make_namespace(cluster, "throughput")
    pid = operator.process.pid
    offset, cpu, server = cluster.audit_offset(), cpu_seconds(pid), server_cpu_seconds(cluster)
    at_once(jobs.apply, [job(f"job-{n}", annotations=runs(0)) for n in range(count)])

    def released():
        # The audit log is long: it is read once the jobs have ended.
        return (operator.metric("holdfast_jobs", phase="Succeeded") >= count and
                Audit(cluster, offset, "throughput").writes(OPERATOR_USER).get(
                    "patch pods", 0) >= count)

    wait_for("all jobs to end and their pods to be released", released, LIMIT, poll=0.5)
    cpu, server = cpu_seconds(pid) - cpu, server_cpu_seconds(cluster) - server
    audit = Audit(cluster, offset, "throughput")
    began = audit.moments("create", JOBS)[0][0]
    ended = max(at for at, _, body in audit.moments(
        "update", JOBS, "status", OPERATOR_USER, "stageTimestamp")
        if body["status"]["phase"] == "Succeeded")
    writes = audit.writes(OPERATOR_USER)
    return {"jobs": count, "seconds": round(ended - began, 2),
            "jobs_per_second": round(count / (ended - began), 1),
            "cpu_ms_per_job": round(1000 * cpu / count, 2),
            "server_cpu_ms_per_job": round(1000 * server / count, 2),
            "peak_memory_mib": memory_mib(pid)["peak"],
            "writes_per_job": round(sum(writes.values()) / count, 3), "writes": writes}


def batch_at_once(cluster, count):
    """The same as batch/v1 Jobs."""
    jobs = make_namespace(cluster, "batch")
    path = "/apis/batch/v1/namespaces/batch/jobs"
    pid = cluster.processes()["kube-controller-manager"]["pid"]
    offset, cpu, server = cluster.audit_offset(), cpu_seconds(pid), server_cpu_seconds(cluster)

    def as_batch(number):
        template = job("x", annotations=runs(0))["spec"]["template"]
        template["spec"]["restartPolicy"] = "Never"
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"job-{number}"},
                "spec": {"template": template}}

    at_once(lambda body: jobs.api("POST", path, body), map(as_batch, range(count)))
    done = 0

    def ended():
        nonlocal done
        done = sum(1 for item in jobs.api("GET", path)["items"]
                   if item["status"].get("completionTime"))
        return done >= count

    wait_for("all batch/v1 Jobs to end", ended, LIMIT, poll=2)
    cpu, server = cpu_seconds(pid) - cpu, server_cpu_seconds(cluster) - server
    audit = Audit(cluster, offset, "batch")
    began = audit.moments("create", "jobs")[0][0]
    last = max(at for at, _, _ in audit.moments(
        "update", "jobs", "status", BATCH_USER, "stageTimestamp"))
    writes = audit.writes(BATCH_USER)
    return {"jobs": count, "seconds": round(last - began, 2),
            "jobs_per_second": round(count / (last - began), 1),
            "cpu_ms_per_job": round(1000 * cpu / count, 2),
            "server_cpu_ms_per_job": round(1000 * server / count, 2),
            "peak_memory_mib": memory_mib(pid)["peak"],
            "writes_per_job": round(sum(writes.values()) / count, 3), "writes": writes}


def rest(operator):
    """The memory of an operator that has nothing to do."""
    time.sleep(REST_SECONDS)
    return memory_mib(operator.process.pid)["now"]


def reaction(cluster, samples):
    """One event at a time, nothing else going on."""
    jobs = make_namespace(cluster, "reaction")
    # The API server lets the first object of a new definition wait for 2 s.
    jobs.apply(job("first", annotations=runs(0)))
    jobs.wait_phase("first", "Succeeded")
    jobs.delete("first")
    offset = cluster.audit_offset()
    for number in range(samples):
        name = f"job-{number}"
        jobs.apply(job(name))
        jobs.wait_running(name)
    for number in range(samples):
        name = f"job-{number}"
        # Its start is on record: nothing of this job's is due but the end.
        jobs.wait(name, lambda status: status.get("nodeName"), 60)
        jobs.end_pod(jobs.pod(name))
        jobs.wait_phase(name, "Succeeded")

    def complete():
        # An event is written a moment after its response.
        return len(Audit(cluster, offset, "reaction").moments(
            "update", JOBS, "status", OPERATOR_USER)) >= 2 * samples

    wait_for("the audit log to be complete", complete, 30)
    audit = Audit(cluster, offset, "reaction")
    applied = {name: at for at, name, _ in audit.moments("create", JOBS)}
    created = {body["metadata"]["labels"]["holdfast.dev/job-name"]: at
               for at, _, body in audit.moments("create", "pods", user=OPERATOR_USER)}
    stopped = {name.rsplit("-", 2)[0]: at
               for at, name, _ in audit.moments("patch", "pods", "status", user="admin")}
    intents, outcomes = {}, {}
    for at, name, body in audit.moments("update", JOBS, "status", OPERATOR_USER):
        (outcomes if body["status"]["phase"] == "Succeeded" else intents).setdefault(name, at)

    def between(first, then):
        return quantiles([then[name] - first[name] for name in applied])

    return {"job applied -> attempt recorded": between(applied, intents),
            "job applied -> pod asked for": between(applied, created),
            "pod ended -> outcome recorded": between(stopped, outcomes)}


def table(result):
    """The result for people."""
    lines = []
    columns = [("holdfast", result["at_once"])]
    if "batch" in result:
        columns.append(("batch/v1", result["batch"]))
    lines.append(f"{result['at_once']['jobs']} jobs at once".ljust(36) +
                 "".join(name.rjust(12) for name, _ in columns))
    for key, label in (("jobs_per_second", "jobs/s"),
                       ("cpu_ms_per_job", "controller's CPU per job (ms)"),
                       ("server_cpu_ms_per_job", "API server's, etcd's (ms)"),
                       ("peak_memory_mib", "peak memory (MiB)"),
                       ("writes_per_job", "API writes per job")):
        lines.append(f"  {label}".ljust(36) +
                     "".join(str(column[key]).rjust(12) for _, column in columns))
    finished = result["at_once"]["jobs"]
    lines.append(f"memory at rest, {finished} finished jobs (MiB)")
    lines.append("  started anew".ljust(36) + str(result["rest"]["started_anew_mib"]).rjust(12) +
                 f"    aim: at most {AIMS['idle_memory_mib']}")
    lines.append("  after the run".ljust(36) + str(result["rest"]["after_the_run_mib"]).rjust(12))
    lines.append("reaction on an idle machine (ms)".ljust(36) + "median".rjust(12) +
                 "90 %".rjust(12) + "99 %".rjust(12) +
                 f"    aim: median under {AIMS['reaction_median_ms']}")
    for what, took in result["reaction"].items():
        lines.append(f"  {what}".ljust(36) + "".join(
            str(took[key]).rjust(12) for key in ("median_ms", "p90_ms", "p99_ms")))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=1000, help="default 1000")
    parser.add_argument("--samples", type=int, default=100, help="of the reaction; default 100")
    parser.add_argument("--nodes", type=int, default=20, help="simulated nodes; default 20")
    parser.add_argument("--operator", help="its binary; default: the newest build of the tree")
    parser.add_argument("--batch", action="store_true", help="compare with batch/v1 Jobs")
    parser.add_argument("--output", default=str(ROOT / "build/bench/throughput.json"))
    options = parser.parse_args()
    if options.operator:
        os.environ["HOLDFAST_OPERATOR"] = options.operator

    result = {"operator": pathlib.Path(operator_binary()).name, "cpus": os.cpu_count(),
              "load_before": os.getloadavg()[0]}
    say("starting a cluster ...")
    with Cluster(nodes=options.nodes, quiet=True, controller_manager_flags=BATCH_FLAGS) as cluster:
        install(cluster)
        with Operator(cluster) as operator:
            say(f"the reaction to {options.samples} events, one by one ...")
            result["reaction"] = reaction(cluster, options.samples)
        cluster.api("DELETE", "/api/v1/namespaces/reaction")
        wait_for("the namespace of the reactions to be gone", lambda: cluster.api(
            "GET", "/api/v1/namespaces/reaction")[0] == 404, 300)
        with Operator(cluster) as operator:
            say(f"{options.jobs} jobs at once ...")
            result["at_once"] = holdfast_at_once(cluster, operator, options.jobs)
            result["rest"] = {"after_the_run_mib": rest(operator)}
        with Operator(cluster) as operator:
            result["rest"]["started_anew_mib"] = rest(operator)
        if options.batch:
            say(f"{options.jobs} batch/v1 Jobs at once ...")
            result["batch"] = batch_at_once(cluster, options.jobs)
    write_result(options.output, result)
    print(table(result))
    say(f"written to {options.output}")


if __name__ == "__main__":
    main()
