"""Mode w: jobs of a WorkerPool, with real agents as processes, beside batch/v1 Jobs and DurableJobs with pods.

start: from the job's creation to its command's first line, at 20 jobs a second. Simulated pods run no command: theirs
       ends when the pod is bound to its node, from where on a kubelet would start it.
burst: jobs whose command ends at once, all applied at once.
runs:  one Indexed job of very many runs, with the agent's built-in no-op and with real processes.
rest:  very many workers that have nothing to do, and the same operator before it has any.
"""

import pathlib
import tempfile
import threading
import time

import objects
from at_once import WARM_UP, at_rest, batch, durable
from localcluster import wait_for
from measure import JOBS, Audit, cpu_seconds, memory_mib, quantiles
from plane import LIMIT, SERVER
from standing import SETTLE_SECONDS
from warm_pool import OPERATOR_USER, Warm, jobs_path, pooled_job

RATE = 20  # jobs a second
WORKERS, SLOTS = 8, 8
SLOTS_AT_REST = 4


class Meter:
    """What each part has used since it was made. `parts`: {name: its CPU seconds so far}"""

    def __init__(self, plane, operator, agents=None):
        self._parts = {"api_server": lambda: plane.cpu("kube-apiserver"), "etcd": lambda: plane.cpu("etcd"),
                       "operator": lambda: cpu_seconds(operator.process.pid),
                       "agents": agents.cpu if agents else lambda: 0.0}
        self._before = {name: cpu() for name, cpu in self._parts.items()}
        self._began = time.monotonic()

    def read(self):
        """CPU seconds by part, and the seconds that have passed."""
        used = {name: cpu() - self._before[name] for name, cpu in self._parts.items()}
        return used, time.monotonic() - self._began

    def shares(self):
        """{part: share of a core}"""
        used, seconds = self.read()
        return {name: round(cpu / seconds, 4) for name, cpu in used.items()}


# ---- start

def _trickle(count, make):
    """make(number) so many times, at the rate."""
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        make(number)


def _created_to(started, audit, resource):
    created = {name: when for when, name in audit.moments("create", resource)}
    return quantiles([when - created[name] for name, when in started.items()])


def _start_warm(plane, count):
    """Quantiles from the API server's receipt of the job to the command's own first line."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "started"
        log.touch()
        command = ["/bin/sh", "-c", f"echo $HOLDFAST_JOB_NAME $(date +%s.%N) >> {log}"]
        with Warm(plane, 2, 8, command) as warm:
            offset, jobs = plane.cluster.audit_offset(), plane.jobs(warm.namespace)
            _trickle(count, lambda number: jobs.apply(pooled_job(f"job-{number}")))
            wait_for("all commands to have run", lambda: len(log.read_text().splitlines()) >= count, LIMIT, poll=0.5)
            started = dict(line.split() for line in log.read_text().splitlines())
            return _created_to({name: float(when) for name, when in started.items()}, warm.audit(offset), JOBS)


class _Bound(threading.Thread):
    """When the pod of each job there was bound to a node, by the job's name."""

    def __init__(self, plane, namespace, label):
        super().__init__(daemon=True)
        self.cluster, self.path, self.label = plane.cluster, f"/api/v1/namespaces/{namespace}/pods", label
        self.moments = {}

    def run(self):
        version = self.cluster.api("GET", self.path)[1]["metadata"]["resourceVersion"]
        for event in self.cluster.watch(self.path, version, timeout=LIMIT):
            pod = event["object"]
            if pod.get("spec", {}).get("nodeName"):
                self.moments.setdefault(pod["metadata"]["labels"][self.label], time.time())


def _start_pods(plane, namespace, count, request, resource, label):
    bound = _Bound(plane, namespace, label)
    bound.start()
    offset = plane.cluster.audit_offset()

    def make(number):
        body = {**request["body"], "metadata": {"name": f"job-{number}"}}
        status, answer = plane.cluster.api("POST", request["path"], body)
        assert status == 201, answer

    _trickle(count, make)
    wait_for("all pods to be bound", lambda: len(bound.moments) >= count, LIMIT, poll=0.5)
    return _created_to(bound.moments, Audit(plane.cluster, offset, namespace), resource)


def _start_durable(plane, count):
    namespace = plane.namespace("start-durable")
    with plane.operator() as operator:
        wait_for("the operator to be at rest", lambda: at_rest([operator]), LIMIT, poll=0.2)
        return _start_pods(plane, namespace, count, objects.ending_jobs(namespace)[0], JOBS, "holdfast.dev/job-name")


def _start_batch(plane, count):
    namespace = plane.namespace("start-batch")
    return _start_pods(plane, namespace, count, objects.ending_batch_jobs(namespace)[0], "jobs",
                       "batch.kubernetes.io/job-name")


# ---- burst and runs

def _ends(audit):
    return audit.moments("update", JOBS, "status", OPERATOR_USER, "stageTimestamp")


def _costs(warm, offset, count, cpu):
    """Of so many jobs or runs since that offset of the audit log."""
    audit = warm.audit(offset)
    seconds = _ends(audit)[-1][0] - audit.moments("create", JOBS)[0][0]
    writes, workers = audit.writes(OPERATOR_USER), audit.writes(warm.worker_user)
    each = {f"{part}_cpu_ms": round(1000 * used / count, 3) for part, used in cpu.items()}
    return {"count": count, "seconds": round(seconds, 2), "per_second": round(count / seconds, 2), **each,
            "server_cpu_ms": round(each["api_server_cpu_ms"] + each["etcd_cpu_ms"], 3),
            "writes_each": round((sum(writes.values()) + sum(workers.values())) / count, 3),
            "writes": writes, "workers_writes": workers,
            "memory_peak_mib": memory_mib(warm.operator.process.pid)["peak"]}


def _burst(plane, count):
    with Warm(plane, WORKERS, SLOTS, ["/bin/true"]) as warm:
        before = warm.operator.metric("holdfast_jobs", phase="Succeeded")
        offset, meter = plane.cluster.audit_offset(), Meter(plane, warm.operator, warm.agents)
        plane.send([objects.post(jobs_path(warm.namespace), pooled_job("job-$N"))], count)
        wait_for("all jobs to end", lambda: warm.operator.metric("holdfast_jobs", phase="Succeeded") - before >= count,
                 LIMIT, poll=0.5)
        cpu, _ = meter.read()
        return _costs(warm, offset, count, cpu)


def _runs(plane, count, serve):
    with Warm(plane, WORKERS, SLOTS, ["/bin/true"], serve) as warm:
        offset, jobs = plane.cluster.audit_offset(), plane.jobs(warm.namespace)
        meter = Meter(plane, warm.operator, warm.agents)
        jobs.apply(pooled_job("many", completions=count, parallelism=WORKERS * SLOTS, completionMode="Indexed"))
        jobs.wait_phase("many", "Succeeded", limit=LIMIT)
        cpu, seconds = meter.read()
        shares = {part: round(used / seconds, 3) for part, used in cpu.items()}
        return _costs(warm, offset, count, cpu) | {"status_writes": len(_ends(warm.audit(offset))), "shares": shares}


# ---- rest

def _rest(plane, workers, seconds):
    result = {"workers": workers, "slots": SLOTS_AT_REST, "seconds": seconds}
    with plane.operator() as operator:
        wait_for("the operator to be at rest", lambda: at_rest([operator]), LIMIT, poll=0.2)
        time.sleep(SETTLE_SECONDS)
        result["without"] = _shares(plane, operator, None, seconds)
    with Warm(plane, workers, SLOTS_AT_REST, ["/bin/true"], ["--no-op"]) as warm:
        time.sleep(SETTLE_SECONDS)
        offset = plane.cluster.audit_offset()
        result["with"] = _shares(plane, warm.operator, warm.agents, seconds)
        audit = warm.audit(offset)
        return result | {"operators_writes": audit.writes(OPERATOR_USER),
                         "workers_writes": audit.writes(warm.worker_user)}


def _shares(plane, operator, agents, seconds):
    meter = Meter(plane, operator, agents)
    time.sleep(seconds)
    return meter.shares() | {"memory_mib": memory_mib(operator.process.pid)["now"]}


# ---- the mode

# Sides that take turns, by part.
TURNS = {
    "start": {"start_warm": lambda plane, options: _start_warm(plane, options.samples),
              "start_durable": lambda plane, options: _start_durable(plane, options.samples),
              "start_batch": lambda plane, options: _start_batch(plane, options.samples)},
    "burst": {"burst": lambda plane, options: _burst(plane, options.warm_jobs),
              "durable": lambda plane, options: durable(plane, options.jobs),
              "batch": lambda plane, options: batch(plane, options.warm_jobs)},
}
PARTS = (*TURNS, "runs", "rest")


def mode_w(plane, options, say):
    """Rounds of each side of "start" and "burst"; "no_op_runs", "runs" and "rest" once."""
    say("  warming up ...")  # whoever comes first on a new control plane is slower
    durable(plane, WARM_UP)
    batch(plane, WARM_UP)
    _burst(plane, WARM_UP)
    result = {"rate": RATE, "pool": [WORKERS, SLOTS]}
    for part, sides in TURNS.items():
        for number in range(options.rounds_of_workers if part in options.parts else 0):
            # Finished jobs become more from measurement to measurement: no side is always the later one.
            for side in list(sides)[::1 if number % 2 == 0 else -1]:
                say(f"  {part}, round {number + 1}: {side} ...")
                result.setdefault(side, []).append(sides[side](plane, options))
    for name, serve in (("no_op_runs", ["--no-op"]), ("runs", None)) if "runs" in options.parts else ():
        say(f"  {name}: {options.warm_runs} of one job ...")
        result[name] = _runs(plane, options.warm_runs, serve)
    if "rest" in options.parts:
        say(f"  rest: {options.warm_workers} workers ...")
        result["rest"] = _rest(plane, options.warm_workers, options.idle_seconds)
    return result
