"""Mode i: jobs of many runs, beside batch/v1's Indexed Jobs, by turns. Pods end as soon as they run.

The figures of a case are for one run: the time from the first job's creation to the last status write, what the
controller needs, and its writes. Cases in CASES are measured for both; those in LONG for Holdfast alone.
"""

import objects
from at_once import BATCH_USER, at_rest
from localcluster import wait_for
from measure import JOBS, OPERATOR_USER, Audit, cpu_seconds, memory_mib
from plane import LIMIT, SERVER

# (jobs, completions, parallelism)
CASES = [(1, 2000, 200), (20, 100, 100), (1, 400, 20)]
WARM_UP = (1, 200, 100)
LONG = [(1, 1000, 200), (1, 10000, 200)]


def name_of(case):
    jobs, completions, parallelism = case
    many = f"{jobs} jobs of {completions:,} runs" if jobs > 1 else f"a job of {completions:,} runs"
    return f"{many}, parallelism {parallelism}"


def _costs(audit, user, resource, case, cpu, server, memory):
    count = case[0] * case[1]
    began = audit.moments("create", resource)[0][0]
    ended = audit.moments("update", resource, "status", user, "stageTimestamp")[-1][0]
    writes = audit.writes(user)
    return {"runs": count, "seconds": round(ended - began, 2), "runs_per_second": round(count / (ended - began), 2),
            "cpu_ms_per_run": round(1000 * cpu / count, 3), "server_cpu_ms_per_run": round(1000 * server / count, 2),
            "memory_peak_mib": memory["peak"], "writes_per_run": round(sum(writes.values()) / count, 3),
            "writes": writes}


def durable(plane, case):
    namespace = plane.namespace("runs")
    count = case[0] * case[1]
    with plane.operator() as operator:
        wait_for("the operator to be at rest", lambda: at_rest([operator]), LIMIT, poll=0.2)
        before = operator.metric("holdfast_jobs", phase="Succeeded")
        offset, pid = plane.cluster.audit_offset(), operator.process.pid
        cpu, server = cpu_seconds(pid), plane.cpu(*SERVER)
        plane.send(objects.indexed_jobs(namespace, *case[1:]), case[0])

        def ended():
            if operator.metric("holdfast_jobs", phase="Succeeded") - before < case[0]:
                return False
            return Audit(plane.cluster, offset, namespace).writes(OPERATOR_USER, timed_out=True).get("patch pods", 0) >= count

        wait_for("all runs to end and their pods to be released", ended, 20 * LIMIT, poll=1)
        cpu, server = cpu_seconds(pid) - cpu, plane.cpu(*SERVER) - server
        return _costs(Audit(plane.cluster, offset, namespace), OPERATOR_USER, JOBS, case, cpu, server, memory_mib(pid))


def batch(plane, case):
    namespace = plane.namespace("indexed")
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    part = "kube-controller-manager"
    offset = plane.cluster.audit_offset()
    cpu, server = plane.cpu(part), plane.cpu(*SERVER)
    plane.send(objects.indexed_batch_jobs(namespace, *case[1:]), case[0])
    wait_for("all batch/v1 Jobs to end", lambda: sum(
        1 for item in plane.cluster.api("GET", path)[1]["items"]
        if item["status"].get("completionTime")) >= case[0], 20 * LIMIT, poll=1)
    cpu, server = plane.cpu(part) - cpu, plane.cpu(*SERVER) - server
    return _costs(Audit(plane.cluster, offset, namespace), BATCH_USER, "jobs", case, cpu, server, plane.memory(part))


def mode_i(plane, options, say):
    """{case: {"durable": [rounds], "batch": [rounds]}}, and one round of the long ones."""
    result = {name_of(case): {"durable": [], "batch": []} for case in CASES}
    say("  warming up ...")  # whoever comes first on a new control plane is slower
    durable(plane, WARM_UP)
    batch(plane, WARM_UP)
    for number in range(options.rounds_of_runs):
        for case in CASES:
            for side, measure in (("durable", durable), ("batch", batch)):
                say(f"  round {number + 1}: {name_of(case)}, {side} ...")
                result[name_of(case)][side].append(measure(plane, case))
    for case in LONG if not options.short_runs else []:
        say(f"  {name_of(case)} ...")
        result[name_of(case)] = {"durable": [durable(plane, case)]}
    return result
