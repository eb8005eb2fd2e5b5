"""Modes q and j: jobs of JobQueues.

q: jobs whose pods end at once, through a queue that is never full, beside the same jobs without a queue, by turns.
   And how soon the next job's pod is made once a job has ended, in a queue of one job at a time.
j: what very many jobs that wait cost the operator: memory, CPU, and writes while nothing happens.
"""

import collections
import time

import objects
from at_once import WARM_UP, at_rest, durable
from localcluster import wait_for
from measure import JOBS, OPERATOR_USER, Audit, quantiles
from plane import LIMIT
from queues import Queues, queue
from standing import SETTLE_SECONDS, idle

QUEUE = "encode"
CONCURRENCY = 50
# Jobs that are created and have not ended, so that no job waits for a permit.
OUTSTANDING = 45
HELD_QUEUES = 200
STATUS_WRITES = f"update {JOBS}/status"


# ---- q

def _fed(plane, count, shape, queued):
    """So many jobs, a new one whenever one has ended; figures for one job."""
    namespace = plane.namespace("fed")
    if queued:
        Queues(plane.cluster, namespace).apply(queue(QUEUE, concurrency=CONCURRENCY))
    chain = objects.ending_jobs(namespace, shape, QUEUE if queued else None)
    return durable(plane, count, namespace, send=lambda: plane.send(
        chain, count, in_flight=OUTSTANDING, until_ended=namespace))


def _next_starts(plane, count, shape):
    """From the answer that records a job's end to the answer that creates the next job's pod."""
    namespace = plane.namespace("one-by-one")
    queues = Queues(plane.cluster, namespace)
    queues.apply(queue(QUEUE, concurrency=1, hold=True))
    with plane.operator() as operator:
        wait_for("the operator to be at rest", lambda: at_rest([operator]), LIMIT, poll=0.2)
        offset = plane.cluster.audit_offset()
        plane.send(objects.ending_jobs(namespace, shape, QUEUE), count)
        _wait_queued(plane, offset, namespace, count)
        time.sleep(SETTLE_SECONDS)
        offset = plane.cluster.audit_offset()
        queues.patch(QUEUE, hold=False)
        # holdfast_jobs also counts those of earlier namespaces, once the walk over finished jobs has found them.
        wait_for("all jobs to end", lambda: operator.metric(
            "holdfast_namespace_jobs", namespace=namespace, phase="Succeeded") >= count, LIMIT, poll=1)
    return _gaps(Audit(plane.cluster, offset, namespace))


def _wait_queued(plane, offset, namespace, count):
    wait_for("all jobs to say that they wait", lambda: Audit(plane.cluster, offset, namespace).writes(
        OPERATOR_USER).get(STATUS_WRITES, 0) >= count, LIMIT, poll=2)


def _gaps(audit):
    pods = audit.moments("create", "pods", user=OPERATOR_USER, stage="stageTimestamp")
    # Of a job that has succeeded it is the last one.
    ends = {name: at for at, name in audit.moments("update", JOBS, "status", OPERATOR_USER, "stageTimestamp")}
    order = [name.rsplit("-", 2)[0] for _, name in pods]
    gaps = [pods[number + 1][0] - ends[name] for number, name in enumerate(order[:-1])]
    if min(gaps) < 0 or sorted(ends, key=ends.get) != order:
        raise RuntimeError("jobs of a queue of one ran at the same time")
    return quantiles(gaps)


def mode_q(plane, options, say):
    """[rounds] with a queue and without, and the gaps between jobs."""
    result = {"queued": [], "without": [], "outstanding": OUTSTANDING, "concurrency": CONCURRENCY}
    sides = ["queued", "without"]
    say("  warming up ...")  # whoever comes first on a new control plane is slower
    for side in sides:
        _fed(plane, WARM_UP, options.template, side == "queued")
    for number in range(options.rounds_of_queues):
        # Finished jobs become more from measurement to measurement: no side is always the later one.
        for side in sides if number % 2 == 0 else reversed(sides):
            say(f"  round {number + 1}: {options.queued_jobs} jobs, {side} ...")
            result[side].append(_fed(plane, options.queued_jobs, options.template, side == "queued"))
    say(f"  {options.one_by_one} jobs, one at a time ...")
    result["next_start"] = _next_starts(plane, options.one_by_one, options.template)
    return result


# ---- j

def _rest(plane, operator, seconds):
    """What the operator uses and writes, refused writes too, when nothing happens."""
    time.sleep(SETTLE_SECONDS)
    offset = plane.cluster.audit_offset()
    figures = idle(operator.process.pid, seconds, settle=0)
    writes = collections.Counter(
        f"{verb} {resource}" for verb, resource, *_ in plane.cluster.audit_writes(OPERATOR_USER, offset, False))
    leases = sum(count for kind, count in writes.items() if kind.endswith(" leases"))
    return figures | {"lease_writes": leases, "other_writes": sum(writes.values()) - leases, "writes": dict(writes)}


def mode_j(plane, options, say):
    """Figures at rest without jobs, with the jobs that have come, and after a restart with them."""
    each = options.waiting_jobs // HELD_QUEUES
    count, seconds = each * HELD_QUEUES, options.idle_seconds
    result = {"jobs": count, "queues": HELD_QUEUES, "seconds": seconds}
    namespace = plane.namespace("held")
    say("  the operator at rest, without jobs ...")
    with plane.operator() as operator:
        result["without"] = _rest(plane, operator, seconds)
    plane.send(objects.queues(namespace, hold=True), HELD_QUEUES)
    with plane.operator() as operator:
        say(f"  {count} jobs come into {HELD_QUEUES} queues ...")
        offset = plane.cluster.audit_offset()
        for number in range(HELD_QUEUES):
            chain = objects.ending_jobs(namespace, "realistic", f"queue-{number}")
            plane.send(chain, each, first=number * each)
        _wait_queued(plane, offset, namespace, count)
        say("  the operator at rest, all jobs wait ...")
        result["came"] = _rest(plane, operator, seconds)
    with plane.operator() as operator:
        say("  the operator at rest after a restart, all jobs wait ...")
        wait_for("all jobs to wait", lambda: operator.metric("holdfast_queue_waiting") == count, LIMIT, poll=1)
        result["restarted"] = _rest(plane, operator, seconds)
    for how in ("came", "restarted"):
        more = result[how]["memory_mib"] - result["without"]["memory_mib"]
        result[how]["kib_per_job"] = round(more * 1024 / count, 2)
    return result
