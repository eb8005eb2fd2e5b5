"""Modes b, c and d: many jobs are there already.

b: how soon the operator reacts, job by job, with finished and running ones around.
c: what it uses when nothing happens, its memory, and what a job more costs it, by the number of finished
   jobs; beside it the controller-manager with as many finished batch/v1 Jobs.
d: how soon it is at work again after a restart, and another replica after one's end.
"""

import threading
import time

import objects
from at_once import durable, is_idle
from finished import copy_finished
from holdfast import job
from localcluster import wait_for
from measure import JOBS, OPERATOR_USER, Audit, cpu_seconds, memory_mib, quantiles
from plane import LIMIT, SHARDS, UNTHROTTLED

# What is on its way from before is over by then.
SETTLE_SECONDS = 20
# All names of finished jobs are of one length.
FIRST = 1_000_000


def finished(plane, count, say):
    """At least so many finished DurableJobs with their pods."""
    there = plane.finished
    if there >= count:
        return
    plane.finished_namespace = plane.finished_namespace or plane.namespace("finished")
    say(f"  making {count - there} finished jobs ...")
    if not there:
        plane.send(objects.finished_jobs(plane.finished_namespace), 1, first=FIRST)
    names = [f"job-{FIRST + number}" for number in range(max(there, 1), count)]
    if names:
        copy_finished(plane.cluster, plane.jobs(plane.finished_namespace), f"job-{FIRST}", names)
    plane.finished = count


# ---- b

def _end_pods(plane, namespace, stop):
    """Ends each pod there once it runs, as a kubelet would."""
    jobs, ended = plane.jobs(namespace), set()
    while not stop.is_set():
        for event in plane.cluster.watch(jobs.pods_path, timeout=5):
            pod = event["object"]
            if pod.get("status", {}).get("phase") == "Running" and pod["metadata"]["uid"] not in ended:
                ended.add(pod["metadata"]["uid"])
                jobs.end_pod(pod)


def mode_b(plane, options, say):
    """A trickle of jobs, at a rate that leaves the machine time."""
    finished(plane, options.finished, say)
    with plane.operator() as operator:
        say(f"  {options.running} jobs that run ...")
        plane.send(objects.running_jobs(plane.namespace("running"), options.template), options.running)
        wait_for("them to run", lambda: operator.metric("holdfast_jobs", phase="Running") >= options.running
                 and operator.metric("workqueue_depth") == 0, LIMIT, poll=1)
        time.sleep(SETTLE_SECONDS)
        say(f"  {options.samples} jobs, one every {options.interval} s ...")
        namespace, stop = plane.namespace("trickle"), threading.Event()
        jobs = plane.jobs(namespace)
        kubelet = threading.Thread(target=_end_pods, args=(plane, namespace, stop))
        kubelet.start()
        offset = plane.cluster.audit_offset()
        try:
            began = time.monotonic()
            for number in range(options.samples):
                time.sleep(max(0.0, began + number * options.interval - time.monotonic()))
                jobs.apply(objects.durable_job(f"job-{number}", options.template, ends=False))
            wait_for("the last ones to end", lambda: all(
                item.get("status", {}).get("phase") == "Succeeded" for item in jobs.list()), LIMIT, poll=1)
        finally:
            stop.set()
            kubelet.join()
        memory = memory_mib(operator.process.pid)
    return _reaction(Audit(plane.cluster, offset, namespace)) | {
        "finished": options.finished, "running": options.running, "memory_mib": memory["now"]}


def _reaction(audit):
    applied = {name: at for at, name in audit.moments("create", JOBS)}
    created = {name.rsplit("-", 2)[0]: at for at, name in audit.moments(
        "create", "pods", user=OPERATOR_USER, stage="stageTimestamp")}
    ended = {name.rsplit("-", 2)[0]: at for at, name in audit.moments("patch", "pods", "status", user="admin")}
    # Of a job that has succeeded it is the last one.
    outcomes = {name: at for at, name in audit.moments("update", JOBS, "status", OPERATOR_USER, "stageTimestamp")}
    return {"create_to_pod": quantiles([created[name] - applied[name] for name in applied]),
            "end_to_outcome": quantiles([outcomes[name] - ended[name] for name in applied])}


# ---- c

def idle(pid, seconds, settle=SETTLE_SECONDS):
    """Once what a start begins is over: an operator walks over finished jobs and over pods, and begins within 10 s."""
    time.sleep(settle)
    wait_for("the walks of the start to end", lambda: is_idle(pid), LIMIT, poll=0.2)
    cpu, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    used = cpu_seconds(pid) - cpu
    return {"cpu_percent": round(100 * used / (time.monotonic() - began), 3),
            "memory_mib": memory_mib(pid)["now"], "memory_peak_mib": memory_mib(pid)["peak"]}


def mode_c(plane, options, say):
    """{finished jobs: figures}, smallest first, each with a process that has just started."""
    part, result = "kube-controller-manager", {"durable": {}, "batch": {}}
    count = options.finished
    plane.restart_controller_manager(None)
    try:
        # First, so that its caches hold no DurableJobs' pods.
        say(f"  making {count} finished batch/v1 Jobs ...")
        plane.send(objects.finished_batch_jobs(plane.namespace("finished-batch")), count, in_flight=32)
        plane.restart_controller_manager(UNTHROTTLED)
        say("  the controller-manager at rest ...")
        result["batch"][str(count)] = idle(plane.pid(part), options.idle_seconds)
        for count in options.idle_counts:
            finished(plane, count, say)
            plane.restart_controller_manager(None)
            with plane.operator() as operator:
                say(f"  the operator at rest, {count} finished jobs ...")
                result["durable"][str(count)] = idle(operator.process.pid, options.idle_seconds)
            say(f"  {options.more} jobs more ...")
            cost = durable(plane, options.more)
            result["durable"][str(count)] |= {key: cost[key] for key in ("jobs", "cpu_ms_per_job")}
            plane.restart_controller_manager(UNTHROTTLED)
    finally:
        plane.restart_controller_manager(UNTHROTTLED)
    return result


# ---- d

def mode_d(plane, options, say):
    """Seconds from a process's start to its first decision, and from a replica's end to the other's work."""
    finished(plane, options.finished, say)
    result = {"finished": options.finished, "restart": [], "take_over_clean": [], "take_over_killed": []}
    for number in range(options.restarts):
        say(f"  restart {number + 1} ...")
        result["restart"].append(_restart(plane))
    ends = {"take_over_clean": lambda replica: replica.process.terminate(),
            "take_over_killed": lambda replica: replica.kill()}
    for how, stop in ends.items():
        for number in range(options.restarts):
            say(f"  {how} {number + 1} ...")
            result[how].append(_take_over(plane, stop))
    return result


def _restart(plane):
    """A job was applied while nobody was there."""
    namespace = plane.namespace("restart")
    jobs = plane.jobs(namespace)
    jobs.apply(job("first"))
    offset, operator, began = plane.cluster.audit_offset(), plane.operator(), time.time()
    try:
        operator.start()
        jobs.wait("first", lambda status: status.get("attempt") == 1, 120)

        def intents():
            return Audit(plane.cluster, offset, namespace).moments("update", JOBS, "status", OPERATOR_USER)

        wait_for("the audit log", intents, 30)
        return round(intents()[0][0] - began, 2)
    finally:
        operator.__exit__()


def _take_over(plane, stop):
    with plane.replicas(2) as replicas:
        wait_for("the shards to be shared", lambda: all(
            operator.metric("holdfast_shards_held") >= SHARDS // 2 for operator in replicas.all), 60)
        stop(replicas[0])
        began = time.monotonic()
        wait_for("the other to hold all shards",
                 lambda: replicas[1].metric("holdfast_shards_held") == SHARDS, 60, poll=0.02)
        return round(time.monotonic() - began, 2)
