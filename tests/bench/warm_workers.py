"""Mode w: jobs of a WorkerPool, with real agents as processes, beside batch/v1 Jobs and DurableJobs with pods.

start: from the job's creation to its command's first line, at 20 jobs a second.
burst: jobs whose command ends at once, all applied at once.
runs:  one Indexed job of very many runs, with the agent's built-in no-op and with real processes.
rest:  very many workers that have nothing to do.
"""

import os
import pathlib
import subprocess
import tempfile
import time

import objects
from agent import agent_binary
from at_once import WARM_UP, at_rest, batch, durable
from fake_pool import allow_workers
from fence import grant, install_fence, lease_rules, token_of
from holdfast import die_with_parent
from localcluster import wait_for
from measure import JOBS, OPERATOR_USER, Audit, cpu_seconds, memory_mib, quantiles
from plane import LIMIT, SERVER
from standing import SETTLE_SECONDS

POOL = "bench"
IMAGE = "--agent-image=holdfast/agent:bench"
GROUP = "/apis/holdfast.dev/v1alpha1"


class Agents:
    """The agents of a pool's pods: each runs as a process, with the environment and a token of its pod. The pods
    themselves are simulated."""

    def __init__(self, plane, namespace, command=None):
        self.plane, self.namespace, self.command = plane, namespace, command
        self.folder = tempfile.TemporaryDirectory()
        self.running = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()
        self.folder.cleanup()

    def pods(self):
        items = self.plane.cluster.api(
            "GET", f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=holdfast.dev/worker-pool={POOL}")[1]["items"]
        return [pod for pod in items if pod["status"].get("phase") == "Running"]

    def start(self, count):
        """Until so many workers have their agents."""
        def started():
            for pod in self.pods():
                if pod["metadata"]["uid"] not in self.running:
                    self.running[pod["metadata"]["uid"]] = self._spawn(pod)
            return len(self.running) >= count

        wait_for(f"{count} workers to start", started, LIMIT, poll=0.2)

    def _spawn(self, pod):
        folder = pathlib.Path(self.folder.name) / pod["metadata"]["uid"]
        folder.mkdir()
        (folder / "ca.crt").write_bytes((self.plane.cluster.folder / "pki/ca.crt").read_bytes())
        (folder / "token").write_text(token_of(
            self.plane.cluster, self.namespace, pod["spec"].get("serviceAccountName", "default"),
            {"kind": "Pod", "metadata": pod["metadata"]}))
        (folder / "termination-log").touch()
        main = pod["spec"]["containers"][0]
        given = {variable["name"]: variable.get("value", pod["metadata"]["uid"])
                 for variable in main.get("env", [])}
        words = main["command"] if self.command is None else [main["command"][0], "serve", *self.command]
        with open(folder / "output", "wb") as output:
            return subprocess.Popen(
                [agent_binary(), *words[1:]], stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder,
                preexec_fn=die_with_parent, env=given | {
                    "PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                    "KUBERNETES_SERVICE_PORT": str(self.plane.cluster.ports["kube-apiserver"]),
                    "HOLDFAST_CREDENTIALS": str(folder), "HOLDFAST_SLOTS_FOLDER": str(folder / "slots"),
                    "HOLDFAST_TERMINATION_LOG": str(folder / "termination-log")})

    def cpu(self):
        return sum(cpu_seconds(process.pid) for process in self.running.values())


def _pool(plane, namespace, workers, slots, command):
    template = {"spec": {"containers": [{"name": "worker", "image": "busybox:1.36", "command": command}],
                         "restartPolicy": "Never"}}
    status, answer = plane.cluster.api("POST", f"{GROUP}/namespaces/{namespace}/workerpools", {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": POOL},
        "spec": {"template": template, "minWorkers": workers, "maxWorkers": workers, "slotsPerWorker": slots}})
    assert status == 201, answer


def _pool_status(plane, namespace):
    return plane.cluster.api("GET", f"{GROUP}/namespaces/{namespace}/workerpools/{POOL}")[1].get("status", {})


def _await_idle(plane, namespace, count):
    wait_for(f"{count} workers to be idle", lambda: _pool_status(plane, namespace).get("idle", 0) >= count, LIMIT,
             poll=0.5)


def _job(name, **spec):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"workerPool": {"name": POOL}, **spec}}


def _jobs_path(namespace):
    return f"{GROUP}/namespaces/{namespace}/durablejobs"


class Warm:
    """A pool in a namespace of its own, an operator, and all workers idle."""

    def __init__(self, plane, workers, slots, command, how=None):
        self.plane, self.namespace = plane, plane.namespace("warm")
        self.workers, self.slots, self.command, self.how = workers, slots, command, how

    def __enter__(self):
        install_fence(self.plane.cluster, [self.namespace])
        grant(self.plane.cluster, self.namespace, "bench-operator", lease_rules("create", "update", "delete"),
              OPERATOR_USER)
        allow_workers(self.plane.cluster, self.namespace)
        self.operator = self.plane.operator(IMAGE)
        self.operator.start()
        wait_for("the operator to be at rest", lambda: at_rest([self.operator]), LIMIT, poll=0.2)
        _pool(self.plane, self.namespace, self.workers, self.slots, self.command)
        self.agents = Agents(self.plane, self.namespace, self.how)
        self.agents.start(self.workers)
        _await_idle(self.plane, self.namespace, self.workers)
        return self

    def __exit__(self, *error):
        self.operator.__exit__(*error)
        self.agents.__exit__(*error)

    def audit(self, offset):
        return Audit(self.plane.cluster, offset, self.namespace)


def _start(plane, count, rate):
    """Quantiles from the API server's receipt of the job to the command's own first line."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "started"
        command = ["/bin/sh", "-c", f"echo $HOLDFAST_JOB_NAME $(date +%s.%N) >> {log}"]
        with Warm(plane, 2, 8, command) as warm:
            offset, jobs = plane.cluster.audit_offset(), plane.jobs(warm.namespace)
            began = time.monotonic()
            for number in range(count):
                time.sleep(max(0.0, began + number / rate - time.monotonic()))
                jobs.apply(_job(f"job-{number}"))
            wait_for("all commands to have run", lambda: len(log.read_text().splitlines()) >= count, LIMIT, poll=0.5)
            created = {name: when for when, name in warm.audit(offset).moments("create", JOBS)}
            started = dict(line.split() for line in log.read_text().splitlines())
            return quantiles([float(when) - created[name] for name, when in started.items()])


def _ends(audit, resource=JOBS):
    return audit.moments("update", resource, "status", OPERATOR_USER, "stageTimestamp")


def _burst(plane, count):
    with Warm(plane, 8, 8, ["/bin/true"]) as warm:
        before = warm.operator.metric("holdfast_jobs", phase="Succeeded")
        offset, pid = plane.cluster.audit_offset(), warm.operator.process.pid
        cpu, server, agents = cpu_seconds(pid), plane.cpu(*SERVER), warm.agents.cpu()
        plane.send([objects.post(_jobs_path(warm.namespace), _job("job-$N"))], count)
        wait_for("all jobs to end", lambda: warm.operator.metric("holdfast_jobs", phase="Succeeded") - before >= count,
                 LIMIT, poll=0.5)
        cpu, server, agents = (cpu_seconds(pid) - cpu, plane.cpu(*SERVER) - server, warm.agents.cpu() - agents)
        audit = warm.audit(offset)
        seconds = _ends(audit)[-1][0] - audit.moments("create", JOBS)[0][0]
        writes = audit.writes(OPERATOR_USER)
        workers = audit.writes(f"system:serviceaccount:{warm.namespace}:default")
        return {"jobs": count, "seconds": round(seconds, 2), "jobs_per_second": round(count / seconds, 2),
                "cpu_ms_per_job": round(1000 * cpu / count, 3),
                "server_cpu_ms_per_job": round(1000 * server / count, 2),
                "agents_cpu_ms_per_job": round(1000 * agents / count, 2),
                "memory_peak_mib": memory_mib(pid)["peak"],
                "writes_per_job": round((sum(writes.values()) + sum(workers.values())) / count, 3),
                "writes": writes, "workers_writes": workers}


def _runs(plane, count, how):
    with Warm(plane, 8, 8, ["/bin/true"], how) as warm:
        offset, pid = plane.cluster.audit_offset(), warm.operator.process.pid
        cpu, server = cpu_seconds(pid), plane.cpu(*SERVER)
        agents = warm.agents.cpu()
        jobs = plane.jobs(warm.namespace)
        jobs.apply(_job("many", completions=count, parallelism=64, completionMode="Indexed"))
        jobs.wait("many", lambda status: status.get("phase") == "Succeeded", LIMIT)
        cpu, server, agents = cpu_seconds(pid) - cpu, plane.cpu(*SERVER) - server, warm.agents.cpu() - agents
        audit = warm.audit(offset)
        ends = _ends(audit)
        seconds = ends[-1][0] - audit.moments("create", JOBS)[0][0]
        return {"runs": count, "seconds": round(seconds, 2), "runs_per_second": round(count / seconds, 1),
                "status_writes": len(ends), "writes": audit.writes(OPERATOR_USER),
                "workers_writes": audit.writes(f"system:serviceaccount:{warm.namespace}:default"),
                "operator_cpu_share": round(cpu / seconds, 3), "server_cpu_share": round(server / seconds, 3),
                "agents_cpu_share": round(agents / seconds, 3)}


def _rest(plane, workers, seconds):
    with Warm(plane, workers, 4, ["/bin/true"], ["--no-op"]) as warm:
        time.sleep(SETTLE_SECONDS)
        offset, pid = plane.cluster.audit_offset(), warm.operator.process.pid
        cpu, server, agents = cpu_seconds(pid), plane.cpu(*SERVER), warm.agents.cpu()
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        cpu, server, agents = cpu_seconds(pid) - cpu, plane.cpu(*SERVER) - server, warm.agents.cpu() - agents
        return {"workers": workers, "seconds": round(took, 1), "operator_cpu_share": round(cpu / took, 4),
                "server_cpu_share": round(server / took, 4), "agents_cpu_share": round(agents / took, 4),
                "operators_writes": warm.audit(offset).writes(OPERATOR_USER),
                "memory_mib": memory_mib(pid)["now"]}


def mode_w(plane, options, say):
    """{"start", "burst", "batch", "durable", "no_op_runs", "runs", "rest"}."""
    say("  warming up ...")
    durable(plane, WARM_UP)
    batch(plane, WARM_UP)
    result = {"start": [], "burst": [], "batch": [], "durable": []}
    for number in range(options.rounds_of_workers):
        say(f"  round {number + 1}: {options.samples} jobs, 20 a second ...")
        result["start"].append(_start(plane, options.samples, 20))
        say(f"  round {number + 1}: {options.warm_jobs} jobs on 8 workers with 8 slots ...")
        result["burst"].append(_burst(plane, options.warm_jobs))
        say(f"  round {number + 1}: {options.warm_jobs} batch/v1 Jobs, unthrottled ...")
        result["batch"].append(batch(plane, options.warm_jobs))
        say(f"  round {number + 1}: {options.jobs} DurableJobs with pods ...")
        result["durable"].append(durable(plane, options.jobs))
    say(f"  {options.warm_runs} runs without processes ...")
    result["no_op_runs"] = _runs(plane, options.warm_runs, ["--no-op"])
    say(f"  {options.warm_runs} runs ...")
    result["runs"] = _runs(plane, options.warm_runs, None)
    say(f"  {options.warm_workers} workers at rest ...")
    result["rest"] = _rest(plane, options.warm_workers, options.idle_seconds)
    return result
