"""A warm worker before a real API server: its pod, its two Leases, and the jobs that it is given as the
operator gives them (docs/internals/workers.md).

    worker = Worker(cluster, namespace, folder, slots=2)
    with worker.agent(python("print('hello')")):
        job = worker.run("resize-1", payload="big.png")
        job.wait("ended")
"""

import json
import os
import subprocess

from agent import DURATION, LIMIT, Agent, _boot_time_of, agent_binary
from fence import Pod, expect, grant, lease_path, wait_allowed
from localcluster import wait_for

WORK = "holdfast.dev/work"
WORKER = "holdfast.dev/worker"
GRACE = 3


def allow_workers(cluster, namespace):
    """The rights of a pool's workers."""
    account = (namespace, "default")
    grant(cluster, namespace, "workers", [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "watch", "update"]},
        {"apiGroups": ["holdfast.dev"], "resources": ["durablejobs"], "verbs": ["get"]}], account)
    user = f"system:serviceaccount:{namespace}:default"
    wait_allowed(cluster, namespace, user, "watch")
    wait_allowed(cluster, namespace, user, "get", "durablejobs", "holdfast.dev")


class Worker:
    """A pod of a pool, with its Leases and its credentials in `folder`."""

    def __init__(self, cluster, namespace, folder, slots=1, duration=DURATION, name="worker"):
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self.slots, self.duration = slots, duration
        self.pod = Pod(cluster, namespace, name)
        self.credentials = folder / "credentials"
        self.credentials.mkdir()
        (self.credentials / "ca.crt").write_bytes((cluster.folder / "pki/ca.crt").read_bytes())
        (self.credentials / "token").write_text(self.pod.token())
        self.termination_log = folder / "termination-log"
        self.termination_log.touch()
        self.slots_folder = folder / "slots"
        self.work_path = lease_path(namespace, f"holdfast-work-{self.pod.uid}")
        self.worker_path = lease_path(namespace, f"holdfast-worker-{self.pod.uid}")
        self.make_work()
        self.uid = self.make_worker()

    # -- the operator -------------------------------------------------------------------------

    def make_work(self):
        return self._make(self.work_path, {})["metadata"]["uid"]

    def make_worker(self):
        return self._make(self.worker_path, {"holderIdentity": self.pod.identity,
                                             "leaseDurationSeconds": self.duration})["metadata"]["uid"]

    def _make(self, path, spec):
        name = path.rpartition("/")[2]
        return expect(self.cluster.api("POST", lease_path(self.namespace), {"metadata": {"name": name}, "spec": spec}))

    def _write(self, path, change):
        """Reads, changes and writes it until nobody comes between."""
        while True:
            found = expect(self.cluster.api("GET", path))
            change(found)
            status, answer = self.cluster.api("PUT", path, found)
            if status != 409:
                return expect((status, answer))

    def delete(self, path):
        expect(self.cluster.api("DELETE", path))

    def change_work(self, change):
        """Changes the operator's words; each write raises their seq."""
        def write(lease):
            annotations = lease["metadata"].setdefault("annotations", {})
            work = json.loads(annotations.get(WORK) or '{"seq": 0, "attempts": []}')
            change(work)
            work["seq"] += 1
            annotations[WORK] = json.dumps(work)

        self._write(self.work_path, write)

    def hold(self, holder):
        """Gives the worker Lease to this holder."""
        self._write(self.worker_path, lambda lease: lease["spec"].update(holderIdentity=holder))

    def lease(self):
        return expect(self.cluster.api("GET", self.worker_path))

    def report(self):
        """The agent's words; None: it has not said any."""
        text = self.lease()["metadata"].get("annotations", {}).get(WORKER)
        return json.loads(text) if text else None

    def renewed(self):
        """When the worker Lease was last renewed, in seconds of CLOCK_BOOTTIME."""
        return _boot_time_of(self.lease()["spec"].get("renewTime"))

    def wait_renewed(self):
        before = self.lease()["spec"].get("renewTime")
        wait_for("a renewal", lambda: self.lease()["spec"].get("renewTime") not in (None, before), LIMIT)

    def seq(self):
        work = expect(self.cluster.api("GET", self.work_path))
        return json.loads(work["metadata"].get("annotations", {}).get(WORK) or '{"seq": 0}')["seq"]

    # -- jobs ---------------------------------------------------------------------------------

    def make(self, name, attempt=1, stages=(), stage=None, results=None, worker_uid=None, run=None,
             status=None, **spec):
        """A DurableJob whose run 0 has this attempt and this worker on record."""
        path = f"/apis/holdfast.dev/v1alpha1/namespaces/{self.namespace}/durablejobs"
        body = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
                "spec": {"workerPool": {"name": "pool"}, **spec}}
        if stages:
            body["spec"]["stages"] = list(stages)
        made = expect(self.cluster.api("POST", path, body))
        made["status"] = {"phase": "Running", "attempt": attempt, "active": 1,
                          "waiting": {"reason": "Running", "message": "x", "nextAction": "x"},
                          "startTime": "2026-01-02T03:04:05Z",
                          "runs": [{"index": 0, "attempt": attempt, "workerName": self.pod.name,
                                    "workerUID": worker_uid or self.uid,
                                    "startTime": "2026-01-02T03:04:05Z", **(run or {})}],
                          **(status or {})}
        if stage:
            made["status"]["stage"] = stage
            made["status"]["stages"] = [
                {"name": one, "phase": "Running" if one == stage else "Succeeded",
                 **({"result": results[one]} if results and one in results else {})}
                for one in ["main", *(item["name"] for item in stages)]]
        expect(self.cluster.api("PUT", f"{path}/{name}/status", made))
        return Work(self, name, made["metadata"]["uid"], attempt)

    def give(self, *works):
        """Their entries, by one write."""
        self.change_work(lambda work: work["attempts"].extend(one.entry() for one in works))
        return works

    def run(self, name, **job):
        """A new job, which this worker is to run."""
        [work] = self.give(self.make(name, **job))
        return work

    # -- the pod ------------------------------------------------------------------------------

    def environment(self, **changes):
        return {
            "PATH": os.environ["PATH"],
            "HOLDFAST_WORKER_POOL": "pool",
            "HOLDFAST_LEASE_NAMESPACE": self.namespace,
            "HOLDFAST_POD_NAME": self.pod.name,
            "HOLDFAST_POD_UID": self.pod.uid,
            "HOLDFAST_LEASE_DURATION_SECONDS": str(self.duration),
            "HOLDFAST_SLOTS": str(self.slots),
            "HOLDFAST_STOP_GRACE_SECONDS": str(GRACE),
            "HOLDFAST_POD_GRACE_SECONDS": str(GRACE),
            "HOLDFAST_SLOTS_FOLDER": str(self.slots_folder),
            "HOLDFAST_TERMINATION_LOG": str(self.termination_log),
            "HOLDFAST_CREDENTIALS": str(self.credentials),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.cluster.ports["kube-apiserver"]),
        } | {key: str(value) for key, value in changes.items()}

    def agent(self, command, options=(), prefix=(), stderr=None, **environment):
        """An agent whose slots run this command; `with` starts it and leaves nothing behind. Its stderr is
        kept, unless it goes elsewhere."""
        return Agent(self, [*prefix, agent_binary(), "serve", *options, "--", *map(str, command)],
                     subprocess.DEVNULL, stderr, self.environment(**environment))


class Work:
    """An attempt that a worker is to run."""

    def __init__(self, worker, name, uid, attempt, run=0):
        self.worker, self.name, self.uid, self.attempt, self.run = worker, name, uid, attempt, run
        self.path = f"/apis/holdfast.dev/v1alpha1/namespaces/{worker.namespace}/durablejobs/{name}"

    def entry(self):
        return {"name": self.name, "job": self.uid, "run": self.run, "attempt": self.attempt, "do": "run"}

    def _change_entry(self, change):
        def in_work(work):
            for one in work["attempts"]:
                if one["job"] == self.uid:
                    change(one)

        self.worker.change_work(in_work)

    def stop(self):
        self._change_entry(lambda entry: entry.update(do="stop"))

    def tell(self, message):
        """A new spec.message, and its number in the entry."""
        self.worker._write(self.path, lambda job: job["spec"].update(message=message))
        self._change_entry(lambda entry: entry.update(message=entry.get("message", 0) + 1))

    def take_out(self):
        def in_work(work):
            work["attempts"] = [one for one in work["attempts"] if one["job"] != self.uid]

        self.worker.change_work(in_work)

    def answer(self):
        """The worker's; None: it has none."""
        report = self.worker.report() or {"attempts": []}
        return next((one for one in report["attempts"] if (one["job"], one["run"]) == (self.uid, self.run)), None)

    def wait(self, what, check=lambda answer: True):
        """Until its answer is this, and the check likes it."""
        def answered():
            answer = self.answer()
            return answer if answer and answer["is"] == what and check(answer) else None

        return wait_for(f"{self.name} to be {what}", answered, LIMIT)
