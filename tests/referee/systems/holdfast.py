"""Ours: as it comes, with a heartbeat, on warm workers, as the runner of batch/v1 Jobs; and the canary."""

import json

from referee.checker import REPORTED
from referee.systems.base import (BESIDE_THE_CONTROL_PLANE, IMAGE_FOLDER, ROOT, System, condition, indexes_of, job_has_ended,
                                  of_indexed_job, worker_pod)

API = "holdfast.dev/v1alpha1"
DOCS = "bounds.md"
LEASE, PROGRESS, LOST_AFTER = 30, 30, 40
POOL_LEASE = 10
# Beside the documented bound, which ends with the record of the next attempt. CREATED: the pod's creation follows at
# once, and its time is a whole second. WARM_START: of the command on a warm worker, on a busy machine.
CREATED, WARM_START = 2, 5
# From the report of a failure on.
RETRY = 11
NODES = ("node-killed", "node-gone", "node-paused", "node-cut-off", "kubelet-stopped")


class Holdfast(System):
    name = "holdfast"
    vendor = "Holdfast"
    resource = "durablejobs.holdfast.dev"
    listing = f"{API}/durablejobs"
    settings = "defaults (`lostAfterSeconds: 40`)"
    promise = ("its node is silent: 41 s. If the scheduler takes the dead node again, an attempt works after up to 71 s.",
               DOCS)
    controllers = (("holdfast-system", "app.kubernetes.io/component=operator"),)
    # Those that one installation runs.
    names = ("holdfast", "holdfast-heartbeat", "holdfast-pool", "holdfast-lane", "canary-slow")
    # Those of others, whose pods it frees.
    rescued = ("batch-rescue", "kueue-rescue", "jobset-rescue", "argo-rescue")

    def install(self):
        """One release for all of ours but the canary; it is the same each time."""
        namespaces = [f"referee-{name}" for name in self.names]
        self.version = self.cluster.commit
        self.cluster.install(
            "--set-json", f"watchNamespaces={json.dumps(namespaces)}",
            "--set-json", f"workerNamespaces={json.dumps(namespaces[1:3])}",
            "--set", "batchJobs.enabled=true", "--set", "rescue.mode=on",
            "--set-json", f"rescue.namespaces={json.dumps([f'referee-{name}' for name in self.rescued])}", *placed())

    def job(self, name):
        return {"apiVersion": API, "kind": "DurableJob", "metadata": {"name": name}, "spec": {
            "completionMode": "Indexed", "completions": self.indexes, "parallelism": self.indexes,
            "backoffLimit": 100, **self.work(name)}}

    def work(self, name):
        return {"template": {"spec": worker_pod(self.name, name, "-", self.seconds)}}

    def claim_of(self, found, index):
        status = found.get("status", {})
        counted = sum(entry.get("outcome") == "Succeeded" and entry.get("index", 0) == index
                      for entry in status.get("history", []))
        if index in indexes_of(status.get("completedIndexes")):
            return "Succeeded", max(1, counted), ""
        failed = condition(status, "Failed", "Cancelled")
        if failed or index in indexes_of(status.get("failedIndexes")):
            return "Failed", counted, failed["reason"] if failed else "FailedIndexes"
        return None, counted, waiting_for(status)

    def has_ended(self, found):
        return condition(found.get("status", {}), "Complete", "Failed", "Cancelled") is not None

    def pod_of(self, found, index):
        """history keeps the last ten attempts of the job."""
        return next((entry.get("podUID", "") for entry in found.get("status", {}).get("history", [])
                     if entry.get("outcome") == "Succeeded" and entry.get("index", 0) == index), "")

    def bound(self, kind):
        if kind in NODES:
            return LOST_AFTER + 1 + CREATED
        return RETRY + CREATED if kind == "process-crashed" else None


class Heartbeat(Holdfast):
    name = "holdfast-heartbeat"
    agents = True
    lease = LEASE
    settings = f"`heartbeat: {{leaseDurationSeconds: {LEASE}, progressDeadlineSeconds: {PROGRESS}}}`"
    promise = ("its agent is dead, frozen or cut off: `leaseDurationSeconds` + 1 s. The command starts up to one more "
               "lease duration after that. Two programs run at once only for a moment after a freeze.", DOCS)

    def work(self, name):
        return {"heartbeat": {"leaseDurationSeconds": self.lease, "progressDeadlineSeconds": PROGRESS}, **super().work(name)}

    def bound(self, kind):
        if kind == "kubelet-stopped":
            return None  # its agents renew on
        # Its agent stops the program while it cannot renew, and the count begins when the outage is over.
        if kind in (*NODES, "process-frozen", "api-server-paused", "etcd-paused"):
            return self.lease + 1 + CREATED
        return {"process-hung": PROGRESS + 1 + REPORTED + RETRY + CREATED, "process-crashed": RETRY + CREATED}.get(kind)

    def bound_of_most(self, kind):
        """Agents count twice, and the node is the sooner of the two."""
        return Holdfast.bound(self, kind) if self.bound(kind) and kind in NODES else self.bound(kind)

    def bound_after_the_end(self, kind):
        """Its agent has said that the program ended, and renews no more: only the node counts."""
        return Holdfast.bound(self, kind) if kind in NODES else self.bound(kind)


class Pool(Holdfast):
    name = "holdfast-pool"
    by_pod = False
    slots = 2
    agents = True
    settings = f"12 workers of 2 slots, `leaseDurationSeconds: {POOL_LEASE}`, `progressDeadlineSeconds: {PROGRESS}`"
    promise = ("a worker is silent: `leaseDurationSeconds` + 1 s for each of its attempts", DOCS)

    def clear(self):
        self.cluster.kubectl("-n", self.namespace, "delete", f"{self.resource},workerpools.holdfast.dev", "--all",
                             "--timeout=300s", timeout=320)
        super().clear()

    def prepare(self):
        pool = {"apiVersion": API, "kind": "WorkerPool", "metadata": {"name": "pool"}, "spec": {
            "template": {"spec": worker_pod(self.name, "-", "-", self.seconds, terminationGracePeriodSeconds=10)},
            "minWorkers": 12, "maxWorkers": 16,
            "slotsPerWorker": self.slots, "leaseDurationSeconds": POOL_LEASE}}
        self.cluster.kubectl("-n", self.namespace, "apply", "-f", "-", input=json.dumps(pool))

    def work(self, name):
        return {"heartbeat": {"progressDeadlineSeconds": PROGRESS}, "workerPool": {"name": "pool"}}

    def bound(self, kind):
        if kind == "kubelet-stopped":
            return None
        if kind in (*NODES, "process-frozen", "api-server-paused", "etcd-paused"):
            return POOL_LEASE + 1 + WARM_START
        return {"process-hung": PROGRESS + 1 + RETRY + WARM_START, "process-crashed": RETRY + WARM_START}.get(kind)

    def bound_of_most(self, kind):
        """It waits twice (docs/bounds.md, Mass silence)."""
        twice = kind in (*NODES, "api-server-paused", "etcd-paused") and self.bound(kind)
        return self.bound(kind) + POOL_LEASE if twice else self.bound(kind)


class Lane(Holdfast):
    """A Job of batch/v1 with one line more."""
    name = "holdfast-lane"
    resource = "jobs.batch"
    listing = "batch/v1/jobs"
    settings = "a `batch/v1` Job with `managedBy: holdfast.dev/operator`"

    def job(self, name):
        pod = worker_pod(self.name, name, "-", self.seconds, restartPolicy="Never")
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "managedBy": "holdfast.dev/operator", "completionMode": "Indexed", "completions": self.indexes,
            "parallelism": self.indexes, "backoffLimit": 100, "template": {"spec": pod}}}

    def objects(self):
        """The Jobs, each with its DurableJob, which says why it waits."""
        ours = {item["metadata"]["ownerReferences"][0]["name"]: item.get("status", {})
                for item in self.listed(Holdfast.listing) if item["metadata"].get("ownerReferences")}
        return {name: job | {"durablejob": ours.get(name, {})} for name, job in super().objects().items()}

    def claim_of(self, found, index):
        outcome, counted, why = of_indexed_job(found, index)
        return outcome, counted, why or ("" if outcome else waiting_for(found.get("durablejob", {})))

    def has_ended(self, found):
        return job_has_ended(found)

    def pod_of(self, found, index):
        return super().pod_of({"status": found.get("durablejob", {})}, index)


class CanarySlow(Holdfast):
    """Ours with a window that is more than twice as long as the one that it is judged by. The referee must find that it
    is late."""
    name = "canary-slow"
    vendor = "canary"
    settings = "Holdfast with its defaults, wrong on purpose: judged as if it had `lostAfterSeconds: 15`"

    def bound(self, kind):
        return 15 + 1 + CREATED if kind in NODES else None


class Canary(Heartbeat):
    """Ours without the fence: an agent that never gives its Lease up, in a release of its own, in a namespace that the
    API server's fence does not cover. The referee must find that its attempts overlap."""
    name = "canary"
    vendor = "canary"
    lease = 10  # so that its next attempt begins long before a cut-off one has done its work
    settings = "Holdfast with a heartbeat of 10 s, broken on purpose: no fence"
    promise = ("", "")
    controllers = (("holdfast-canary", "app.kubernetes.io/component=operator"),)
    image = "holdfast-canary:local"

    def install(self):
        self.version = self.cluster.commit
        self.cluster.docker("build", "--tag", self.image, "--file", str(IMAGE_FOLDER / "canary.Dockerfile"),
                            str(IMAGE_FOLDER), timeout=900)
        self.cluster.load_image(self.image)
        repository, _, tag = self.image.rpartition(":")
        self.cluster.helm(
            "upgrade", "--install", "canary", str(ROOT / "charts/holdfast"), "--namespace", "holdfast-canary",
            "--create-namespace", "--wait", "--timeout", "5m", "--skip-crds", "--set",
            "nameOverride=canary,replicas=1,guard.enabled=false",
            "--set", f"image.repository={repository},image.tag={tag}", "--set-json", "workerNamespaces=[]",
            "--set-json", f"watchNamespaces={json.dumps([self.namespace])}", *placed())

    def bound(self, kind):
        return None

    def bound_after_the_end(self, kind):
        return None

    def prepare(self):
        """The rights that the chart gives together with the fence."""
        leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
        rules = {"canary-leases": ([leases | {"verbs": ["create", "update", "delete"]}],
                                   {"kind": "ServiceAccount", "name": "canary", "namespace": "holdfast-canary"}),
                 "canary-workers": ([leases | {"verbs": ["get", "update"]},
                                     {"apiGroups": ["holdfast.dev"], "resources": ["durablejobs"], "verbs": ["get"]}],
                                    {"kind": "ServiceAccount", "name": "default", "namespace": self.namespace})}
        group = "rbac.authorization.k8s.io"
        for name, (rule, subject) in rules.items():
            for body in ({"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": name}, "rules": rule},
                         {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": name},
                          "roleRef": {"apiGroup": group, "kind": "Role", "name": name}, "subjects": [subject]}):
                self.cluster.kubectl("-n", self.namespace, "apply", "-f", "-", input=json.dumps(body))


def waiting_for(status):
    """status.waiting in one line."""
    waiting = status.get("waiting", {})
    return ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))


def placed():
    """Arguments of helm that put the operator beside the control plane."""
    return [part for name, value in BESIDE_THE_CONTROL_PLANE.items()
            for part in ("--set-json", f"{name}={json.dumps(value)}")]
