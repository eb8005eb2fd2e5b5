"""Objects of Holdfast in the states that tools for GitOps tell apart, made by a real operator on a real API server.

    with Cluster(nodes=2) as cluster:
        install(cluster)
        objects = make(cluster)       # {("DurableJob", "running"): the object, ...}

As a program it writes them to the testdata of gitops/argocd: see hack/gitops-testdata.
"""

import signal

import yaml
from holdfast import ROOT, Jobs, Operator, job, runs
from localcluster import wait_for

CUSTOMIZATIONS = ROOT / "gitops/argocd/resource_customizations/holdfast.dev"
PLURAL = {"DurableJob": "durablejobs", "JobQueue": "jobqueues", "WorkerPool": "workerpools"}
LONG_BACKOFF = {"initialSeconds": 600, "maxSeconds": 600, "factor": 1, "jitterPercent": 0}
# By name; what they become takes seconds, so they go there side by side.
JOBS = {
    "running": job("running", annotations=runs(900)),
    "gated": job("gated", pod={"schedulingGates": [{"name": "example.com/quota"}]}),
    "backoff": job("backoff", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF),
    "queued": job("queued", queue={"name": "held"}),
    "stalled": job("stalled", queue={"name": "nowhere"}),
    "suspended": job("suspended", suspend=True),
    "cancelling": job("cancelling", annotations=runs(900) | {"holdfast-test/ignore-delete": "true"}),
    "decided": job("decided", annotations=runs(0, 1), backoffLimit=0, stages=[
        {"name": "tidy", "when": "Always", "template": job("x", annotations=runs(900))["spec"]["template"]}]),
    "succeeded": job("succeeded", annotations=runs(0)),
    "partial": job("partial", annotations=runs(0), stages=[
        {"name": "polish", "onFailure": "Continue", "backoffLimit": 0,
         "template": job("x", annotations=runs(0, 1))["spec"]["template"]}]),
    "failed": job("failed", annotations=runs(0, 1), backoffLimit=0),
    "cancelled": job("cancelled", annotations=runs(900)),
    "edited": job("edited", annotations=runs(900)),
}
QUEUES = {"open": {"concurrency": 5}, "held": {"hold": True}}
POOLS = {
    "available": {"minWorkers": 0, "maxWorkers": 3},
    "starting": {"minWorkers": 1, "maxWorkers": 3},
    "stalled": {"minWorkers": 1, "maxWorkers": 3},
}
# The workers that start have no agent that says that they live; the others end at once.
WORKERS = {"available": runs(900), "starting": runs(900), "stalled": runs(0, 1), "new": runs(900)}


def make(cluster):
    """All of them, by kind and state, as the API server serves them."""
    return Maker(cluster).make()


class Maker:
    """Makes them in the namespace `default`."""

    def __init__(self, cluster):
        self.cluster, self.jobs, self.found = cluster, Jobs(cluster), {}

    def make(self):
        with Operator(self.cluster, "--agent-image=holdfast:test") as operator:
            for name, spec in QUEUES.items():
                self._create("JobQueue", name, spec)
            for name, spec in POOLS.items():
                self._create("WorkerPool", name, spec | {"template": workers(name)})
            for body in JOBS.values():
                self.jobs.apply(body)
            self._drive()
            self._collect()
            # From here on nobody looks at what is new.
            operator.signal(signal.SIGSTOP)
            self.jobs.patch("edited", backoffLimit=9)
            self.found["DurableJob", "edited"] = self._get("DurableJob", "edited")
            self.found["DurableJob", "new"] = self._create_job("new")
            for kind, spec in (("JobQueue", {}), ("WorkerPool", {"template": workers("new")})):
                self.found[kind, "new"] = self._create(kind, "new", spec)
        return self.found

    def _drive(self):
        """To where somebody else has to do something."""
        self.jobs.wait_running("cancelling")
        self.jobs.patch("cancelling", cancel=True)
        self.jobs.wait_running("cancelled")
        self.jobs.patch("cancelled", cancel=True)

    def _collect(self):
        for name in JOBS:
            self.found["DurableJob", name] = self._await("DurableJob", name, REACHED[name])
        for name in QUEUES:
            self.found["JobQueue", name] = self._await("JobQueue", name, lambda status: status.get("conditions"))
        for name, (type_, value) in POOL_REACHED.items():
            self.found["WorkerPool", name] = self._await(
                "WorkerPool", name, lambda status, type_=type_, value=value: condition(status, type_) == value)

    def _create_job(self, name):
        return self.jobs.apply(job(name, annotations=runs(900)))

    def _create(self, kind, name, spec):
        return self.jobs.api("POST", self._path(kind), {
            "apiVersion": "holdfast.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})

    def _path(self, kind):
        return self.jobs.path.rpartition("/")[0] + "/" + PLURAL[kind]

    def _get(self, kind, name):
        return self.jobs.api("GET", f"{self._path(kind)}/{name}")

    def _await(self, kind, name, reached):
        """The object once it has got there and the operator has seen its last change."""
        found = {}

        def there():
            found.update(self._get(kind, name))
            status = found.get("status", {})
            return status.get("observedGeneration") == found["metadata"]["generation"] and reached(status)

        wait_for(f"{kind} {name} to get there", there, 120)
        return dict(found)


def workers(name):
    return job("x", annotations=WORKERS[name])["spec"]["template"]


def condition(status, name):
    """The status of this condition, or None."""
    return next((entry["status"] for entry in status.get("conditions") or [] if entry["type"] == name), None)


def waits(reason):
    return lambda status: (status.get("waiting") or {}).get("reason") == reason


def in_phase(phase):
    return lambda status: status["phase"] == phase


REACHED = {
    "running": waits("PodRunning"), "edited": waits("PodRunning"), "gated": waits("PodGated"),
    "backoff": in_phase("Backoff"), "queued": waits("Queued"), "stalled": waits("QueueMissing"),
    "suspended": in_phase("Suspended"), "cancelling": in_phase("Cancelling"),
    "decided": lambda status: condition(status, "FailureTarget") == "True" and waits("PodRunning")(status),
    "succeeded": in_phase("Succeeded"), "partial": in_phase("Succeeded"), "failed": in_phase("Failed"),
    "cancelled": in_phase("Cancelled"),
}


POOL_REACHED = {"available": ("Available", "True"), "starting": ("Available", "False"), "stalled": ("Stalled", "True")}


def shape(found):
    """What of an object a tool decides by; times, names and UIDs differ each time."""
    status = found.get("status", {})
    waiting = status.get("waiting")  # of a queue or a pool: a number
    return {"phase": status.get("phase"), "waits": waiting["reason"] if isinstance(waiting, dict) else None,
            "seen": status.get("observedGeneration") == found["metadata"]["generation"],
            "conditions": {entry["type"]: (entry["status"], entry["reason"])
                           for entry in status.get("conditions") or []},
            "spec": {key: found["spec"].get(key) for key in ("suspend", "cancel", "hold")}}


def stored(kind, state):
    """The path of its testdata."""
    return CUSTOMIZATIONS / kind / f"testdata/{state}.yaml"


def write(objects):
    """As testdata: without what only the API server needs."""
    for (kind, state), found in objects.items():
        found["metadata"].pop("managedFields", None)
        stored(kind, state).write_text(yaml.safe_dump(found, sort_keys=False, width=1000))
