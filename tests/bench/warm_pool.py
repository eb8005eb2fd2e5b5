"""A WorkerPool with real agents for mode w: the pods are simulated, and each one's agent is a process here.

    with Warm(plane, workers=8, slots=8, command=["/bin/true"]) as warm:
        plane.jobs(warm.namespace).apply(pooled_job("job-1"))
"""

import os
import pathlib
import subprocess
import tempfile

from agent import agent_binary
from at_once import at_rest
from fake_pool import allow_workers
from fence import grant, install_fence, lease_rules, token_of
from holdfast import die_with_parent
from localcluster import ClusterError, wait_for
from measure import OPERATOR_USER, Audit, cpu_seconds
from plane import LIMIT

POOL = "bench"
IMAGE = "--agent-image=holdfast/agent:bench"
GROUP = "/apis/holdfast.dev/v1alpha1"
# Of workers that are gone before anybody starts them.
GONE_SECONDS = 120


def pooled_job(name, **spec):
    """A DurableJob of the pool."""
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"workerPool": {"name": POOL}, **spec}}


def jobs_path(namespace):
    return f"{GROUP}/namespaces/{namespace}/durablejobs"


class Agents:
    """The agents of a pool's pods: each runs as a process, with the environment and a token of its pod.

    `serve`: options of `holdfast-agent serve` in place of the pool's command."""

    def __init__(self, plane, namespace, serve=None):
        self.plane, self.namespace, self.serve = plane, namespace, serve
        self.folder = tempfile.TemporaryDirectory()
        self.running = {}  # by their pod's UID

    def stop(self):
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()
        self.folder.cleanup()

    def pods(self):
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=holdfast.dev/worker-pool={POOL}"
        return self.plane.cluster.api("GET", path)[1]["items"]

    def start(self, count):
        """Returns once so many workers have their agents."""
        def started():
            for pod in self.pods():
                uid = pod["metadata"]["uid"]
                if uid not in self.running and pod["status"].get("phase") == "Running":
                    self.running[uid] = self._spawn(pod)
            return len(self.running) >= count

        wait_for(f"{count} workers to start", started, LIMIT, poll=0.2)

    def _spawn(self, pod):
        uid = pod["metadata"]["uid"]
        folder = pathlib.Path(self.folder.name) / uid
        folder.mkdir()
        (folder / "ca.crt").write_bytes((self.plane.cluster.folder / "pki/ca.crt").read_bytes())
        (folder / "token").write_text(token_of(
            self.plane.cluster, self.namespace, pod["spec"].get("serviceAccountName", "default"),
            {"kind": "Pod", "metadata": pod["metadata"]}))
        (folder / "termination-log").touch()
        main = pod["spec"]["containers"][0]
        # The only variable without a value is the pod's UID.
        given = {variable["name"]: variable.get("value", uid) for variable in main.get("env", [])}
        words = main["command"][1:] if self.serve is None else ["serve", *self.serve]
        with open(folder / "output", "wb") as output:
            return subprocess.Popen(
                [agent_binary(), *words], stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder,
                preexec_fn=die_with_parent, env=given | {
                    "PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                    "KUBERNETES_SERVICE_PORT": str(self.plane.cluster.ports["kube-apiserver"]),
                    "HOLDFAST_CREDENTIALS": str(folder), "HOLDFAST_SLOTS_FOLDER": str(folder / "slots"),
                    "HOLDFAST_TERMINATION_LOG": str(folder / "termination-log")})

    def check(self):
        """Raises if one has ended: nobody starts an agent for the pod that takes its place."""
        ended = sum(process.poll() is not None for process in self.running.values())
        if ended:
            raise ClusterError(f"{ended} of {len(self.running)} workers were cut off: the machine is too busy")

    def cpu(self):
        """Seconds that they and the commands which have ended used."""
        return sum(cpu_seconds(process.pid, children=True) for process in self.running.values())


class Warm:
    """A pool in a namespace of its own, its operator, and all workers idle."""

    def __init__(self, plane, workers, slots, command, serve=None):
        self.plane, self.namespace = plane, plane.namespace("warm")
        self.workers, self.slots, self.command, self.serve = workers, slots, command, serve
        self.path = f"{GROUP}/namespaces/{self.namespace}/workerpools"
        self.operator = self.agents = None

    def __enter__(self):
        install_fence(self.plane.cluster, [self.namespace])
        grant(self.plane.cluster, self.namespace, "bench-operator", lease_rules("create", "update", "delete"),
              OPERATOR_USER)
        allow_workers(self.plane.cluster, self.namespace)
        self.operator = self.plane.operator(IMAGE)
        self.agents = Agents(self.plane, self.namespace, self.serve)
        try:
            self.operator.start()
            wait_for("the operator to be at rest", lambda: at_rest([self.operator]), LIMIT, poll=0.2)
            self._make_pool()
            self.agents.start(self.workers)
            wait_for(f"{self.workers} workers to be idle", lambda: self.idle() >= self.workers, LIMIT, poll=0.5)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        # Else the next operator would replace the workers of this pool, over and over.
        self.plane.cluster.api("DELETE", f"{self.path}/{POOL}")
        try:
            wait_for("the pool's pods to be gone", lambda: not self.agents.pods(), GONE_SECONDS, poll=0.5)
        finally:
            self._stop()

    def _stop(self):
        self.operator.__exit__()
        self.agents.stop()

    def _make_pool(self):
        template = {"spec": {"containers": [{"name": "worker", "image": "busybox:1.36", "command": self.command}],
                             "restartPolicy": "Never"}}
        status, answer = self.plane.cluster.api("POST", self.path, {
            "apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": POOL},
            "spec": {"template": template, "minWorkers": self.workers, "maxWorkers": self.workers,
                     "slotsPerWorker": self.slots}})
        assert status == 201, answer

    def idle(self):
        """How many workers have nothing to do."""
        pool = self.plane.cluster.api("GET", f"{self.path}/{POOL}")[1]
        return pool.get("status", {}).get("idle", 0)

    @property
    def worker_user(self):
        return f"system:serviceaccount:{self.namespace}:default"

    def audit(self, offset):
        return Audit(self.plane.cluster, offset, self.namespace)
