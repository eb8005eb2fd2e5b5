"""Modes a, e, f and l: jobs whose pods end at once, all applied at once.

a: DurableJobs beside batch/v1 Jobs, by turns, with the controller-manager unthrottled and as it comes.
e: pods that end as soon as they are made, by a driver that costs almost nothing, so that operator and API
   server are what is measured; and what that API server takes at most from the same client library.
f: the same jobs with 1, 2 and 4 replicas of the operator.
l: batch/v1 Jobs that Holdfast runs, beside batch/v1's own controller and DurableJobs.
"""

import time

import objects
from localcluster import wait_for
from measure import JOBS, OPERATOR_USER, Audit, cpu_seconds, memory_mib
from plane import DEFAULTS, LIMIT, SERVER, SHARDS, UNTHROTTLED

BATCH_USER = "system:serviceaccount:kube-system:job-controller"
WARM_UP = 200  # jobs
# A replica that began alone watches the pods of all shards for a minute.
LINGER = 65
STATUS_OF = {OPERATOR_USER: JOBS, BATCH_USER: "jobs"}


def _costs(audit, user, count, cpu, server, memory, resource=None):
    """What `count` jobs of this audit log were: figures for one job."""
    resource = resource or STATUS_OF[user]
    began = audit.moments("create", resource)[0][0]
    ended = audit.moments("update", resource, "status", user, "stageTimestamp")[-1][0]
    writes = audit.writes(user)
    return {"jobs": count, "seconds": round(ended - began, 2),
            "jobs_per_second": round(count / (ended - began), 2),
            "cpu_ms_per_job": round(1000 * cpu / count, 3),
            "server_cpu_ms_per_job": round(1000 * server / count, 2),
            "memory_peak_mib": memory["peak"],
            "writes_per_job": round(sum(writes.values()) / count, 3), "writes": writes}


def _released(operators, audit, done_before, count):
    """Whether all have ended and their pods were released; the log is read once the first is so."""
    ended = sum(operator.metric("holdfast_jobs", phase="Succeeded") for operator in operators)
    return ended - done_before >= count and audit().writes(OPERATOR_USER, timed_out=True).get("patch pods", 0) >= count


def at_rest(operators):
    """Whether fresh ones share all shards and have looked at each job once, as they do when they start."""
    return (all(operator.metric("holdfast_shards_held") == SHARDS // len(operators) for operator in operators)
            and not any(operator.metric("workqueue_depth") for operator in operators))


def is_idle(pid, seconds=2):
    """Whether it uses less than a twentieth of a core."""
    cpu = cpu_seconds(pid)
    time.sleep(seconds)
    return cpu_seconds(pid) - cpu < seconds / 20


def _by_operator(plane, namespace, count, send, *flags, resource=None):
    """A fresh operator, and so many jobs that `send()` sends into the namespace."""
    with plane.operator(*flags) as operator:
        wait_for("the operator to be at rest", lambda: at_rest([operator]), LIMIT, poll=0.2)
        # Its queue may be empty before it has read very many finished jobs.
        wait_for("its start to be over", lambda: is_idle(operator.process.pid), LIMIT, poll=0.2)
        before = operator.metric("holdfast_jobs", phase="Succeeded")
        offset, pid = plane.cluster.audit_offset(), operator.process.pid
        cpu, server = cpu_seconds(pid), plane.cpu(*SERVER)
        send()
        wait_for("all jobs to end and their pods to be released", lambda: _released(
            [operator], lambda: Audit(plane.cluster, offset, namespace), before, count), LIMIT, poll=0.5)
        cpu, server = cpu_seconds(pid) - cpu, plane.cpu(*SERVER) - server
        audit = Audit(plane.cluster, offset, namespace)
        return _costs(audit, OPERATOR_USER, count, cpu, server, memory_mib(pid), resource)


def durable(plane, count, namespace=None, shape="tiny", send=None):
    """So many jobs with a template of that shape (templates.py). `send()` sends others."""
    namespace = namespace or plane.namespace("durable")
    return _by_operator(plane, namespace, count,
                        send or (lambda: plane.send(objects.ending_jobs(namespace, shape), count)))


def _wait_for_batch(plane, namespace, count):
    """Until so many batch/v1 Jobs there have ended."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    # One that has not succeeded: the API server finds it without encoding all the others.
    unfinished = f"{path}?fieldSelector=status.successful%3D0&limit=1"
    wait_for("all batch/v1 Jobs to succeed", lambda: not plane.cluster.api("GET", unfinished)[1]["items"], LIMIT,
             poll=0.5)
    wait_for("all batch/v1 Jobs to end", lambda: sum(
        1 for item in plane.cluster.api("GET", path)[1]["items"]
        if item["status"].get("completionTime")) >= count, LIMIT, poll=2)


def lane(plane, count, shape="tiny"):
    """So many batch/v1 Jobs that an operator runs."""
    namespace = plane.namespace("lane")

    def send():
        plane.send(objects.ending_lane_jobs(namespace, shape), count)
        _wait_for_batch(plane, namespace, count)

    return _by_operator(plane, namespace, count, send, "--batch-jobs=all", resource="jobs")


def batch(plane, count, shape="tiny"):
    """So many batch/v1 Jobs."""
    namespace = plane.namespace("batch")
    part = "kube-controller-manager"
    offset = plane.cluster.audit_offset()
    cpu, server = plane.cpu(part), plane.cpu(*SERVER)
    plane.send(objects.ending_batch_jobs(namespace, shape), count)
    _wait_for_batch(plane, namespace, count)
    cpu, server = plane.cpu(part) - cpu, plane.cpu(*SERVER) - server
    return _costs(Audit(plane.cluster, offset, namespace), BATCH_USER, count, cpu, server, plane.memory(part))


def mode_a(plane, options, say):
    """[rounds] of each, with templates of each shape by turns; the throttled ones with the tiny one alone."""
    result = {key: [] for key in ("durable", "batch", "batch_defaults", "durable_realistic", "batch_realistic")}
    say("  warming up ...")  # whoever comes first on a new control plane is slower
    durable(plane, WARM_UP)
    batch(plane, WARM_UP)
    for number in range(options.rounds):
        for shape, suffix in (("tiny", ""), ("realistic", "_realistic")):
            say(f"  round {number + 1}: {options.jobs} DurableJobs, {shape} template ...")
            result["durable" + suffix].append(durable(plane, options.jobs, shape=shape))
            say(f"  round {number + 1}: {options.jobs} batch/v1 Jobs, unthrottled, {shape} template ...")
            result["batch" + suffix].append(batch(plane, options.jobs, shape))
        if number < options.rounds_of_defaults:
            say(f"  round {number + 1}: {options.jobs_of_defaults} batch/v1 Jobs, defaults ...")
            plane.restart_controller_manager(DEFAULTS)
            result["batch_defaults"].append(batch(plane, options.jobs_of_defaults))
            plane.restart_controller_manager(UNTHROTTLED)
    return result


def mode_l(plane, options, say):
    """[rounds] of each, by turns."""
    kinds = {"lane": lane, "durable": durable, "batch": batch}
    result = {name: [] for name in kinds}
    say("  warming up ...")
    for run in kinds.values():
        run(plane, WARM_UP)
    for number in range(options.rounds):
        for name, run in kinds.items():
            say(f"  round {number + 1}: {options.jobs} jobs, {name} ...")
            result[name].append(run(plane, options.jobs, shape=options.template))
    return result


def mode_e(plane, options, say):
    """[rounds] of limits and of what is reached."""
    result = {"small_writes": [], "whole_lives": [], "durable": []}
    for part in ("kube-scheduler", "kwok"):
        plane.cluster.kill(part)
    try:
        for number in range(options.rounds):
            say(f"  round {number + 1}: {options.jobs} jobs' writes without an operator, and with ...")
            sent = plane.send(objects.small_objects(plane.namespace("small")), 4 * options.jobs)
            result["small_writes"].append(round(sent["requests"] / sent["seconds"], 1))
            sent = plane.send(objects.whole_lives(plane.namespace("lives"), options.template), options.jobs)
            result["whole_lives"].append(round(sent["chains"] / sent["seconds"], 1))
            namespace = plane.namespace("driven")
            finisher = plane.finisher(namespace, options.jobs)
            try:
                result["durable"].append(durable(plane, options.jobs, namespace, options.template))
            finally:
                finisher.terminate()
                finisher.wait()
    finally:
        plane.cluster.start_kwok()
        plane.cluster.start_scheduler()
    return result


def mode_f(plane, options, say):
    """{replicas: [rounds]}."""
    result = {str(count): [] for count in (1, 2, 4)}
    for number in range(options.rounds):
        for count, rounds in result.items():
            say(f"  round {number + 1}: {options.jobs} jobs, replicas: {count} ...")
            rounds.append(_replicated(plane, int(count), options.jobs, options.template))
    return result


def _replicated(plane, replicas, count, shape):
    namespace = plane.namespace("replicated")
    with plane.replicas(replicas) as operators:
        wait_for("the operators to be at rest", lambda: at_rest(operators.all), 60, poll=0.2)
        if replicas > 1:
            time.sleep(LINGER)
        before = sum(operator.metric("holdfast_jobs", phase="Succeeded") for operator in operators.all)
        offset = plane.cluster.audit_offset()
        pids = [operator.process.pid for operator in operators.all]
        cpu = sum(map(cpu_seconds, pids))
        plane.send(objects.ending_jobs(namespace, shape), count)
        wait_for("all jobs to end", lambda: _released(
            operators.all, lambda: Audit(plane.cluster, offset, namespace), before, count), LIMIT, poll=0.5)
        audit = Audit(plane.cluster, offset, namespace)
        began = audit.moments("create", JOBS)[0][0]
        ended = audit.moments("update", JOBS, "status", stage="stageTimestamp")[-1][0]
        return {"jobs": count, "jobs_per_second": round(count / (ended - began), 2),
                "cpu_ms_per_job": round(1000 * (sum(map(cpu_seconds, pids)) - cpu) / count, 3),
                "memory_peak_mib": max(memory_mib(pid)["peak"] for pid in pids)}
