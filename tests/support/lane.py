"""batch/v1 Jobs that Holdfast runs (docs/lane.md)."""

import copy
import json

from holdfast import Jobs
from localcluster import wait_for

MANAGER = "holdfast.dev/operator"
# Flags of an operator that runs them.
LANE = ["--batch-jobs=all"]
# As an annotation: DurableJobs wait 10 s before the second attempt.
QUICK_RETRY = {"holdfast.dev/retryBackoff": json.dumps({"initialSeconds": 1, "factor": 1, "maxSeconds": 1})}


def batch_spec(annotations=None, labels=None, pod=None, **spec):
    """A Job's spec. `annotations` go into the pod template, as for holdfast.job()."""
    template = {"metadata": {"annotations": dict(annotations or {}), "labels": dict(labels or {})},
                "spec": {"restartPolicy": "Never",
                         "containers": [{"name": "main", "image": "busybox:1.36", "command": ["true"]}]}}
    template["spec"].update(copy.deepcopy(pod or {}))
    return {"managedBy": MANAGER, "template": template, **copy.deepcopy(spec)}


def batch_job(name, annotations=None, labels=None, pod=None, fields=None, **spec):
    """A Job. `fields`: annotations of the Job itself."""
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "annotations": {**QUICK_RETRY, **(fields or {})}},
            "spec": batch_spec(annotations, labels, pod, **spec)}


class BatchJobs:
    """The Jobs of one namespace, through the admin's eyes."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.durable = Jobs(cluster, namespace)
        self.path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self.api = self.durable.api

    def apply(self, body):
        return self.api("POST", self.path, body)

    def get(self, name):
        status, answer = self.cluster.api("GET", f"{self.path}/{name}")
        if status not in (200, 404):
            raise OSError(f"GET {name} answered {status}: {answer}")
        return answer if status == 200 else None

    def status(self, name):
        return (self.get(name) or {}).get("status", {})

    def patch(self, name, body):
        return self.api("PATCH", f"{self.path}/{name}", body, content_type="strategic")

    def delete(self, name, propagation="Background"):
        return self.api("DELETE", f"{self.path}/{name}",
                        {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation})

    def conditions(self, name):
        return {c["type"]: c for c in self.status(name).get("conditions", [])}

    def holds(self, name, condition):
        return self.conditions(name).get(condition, {}).get("status") == "True"

    def wait(self, name, what, condition, limit=60):
        """Waits until condition(status) holds and returns the status."""
        last = {}

        def there():
            last["status"] = self.status(name)
            return condition(last["status"])

        try:
            wait_for(f"Job {name} to be {what}", there, limit)
        except Exception as error:
            durable = self.durable_of(name)
            raise AssertionError(f"{error}; its status: {json.dumps(last, indent=1)}; its DurableJob: "
                                 f"{json.dumps(durable, indent=1)}") from error
        return last["status"]

    def wait_condition(self, name, condition, limit=60):
        return self.wait(name, condition, lambda status: any(
            one["type"] == condition and one["status"] == "True" for one in status.get("conditions", [])), limit)

    def durable_of(self, name):
        """Its DurableJob, or None."""
        job = self.get(name)
        if job is None:
            return None
        return next((one for one in self.durable.list() if any(
            owner["uid"] == job["metadata"]["uid"] for owner in one["metadata"].get("ownerReferences", []))), None)

    def wait_durable(self, name, condition=lambda durable: True, limit=60):
        found = {}

        def there():
            found["it"] = self.durable_of(name)
            return found["it"] is not None and condition(found["it"])

        wait_for(f"the DurableJob of Job {name}", there, limit)
        return found["it"]

    def pods(self, name):
        """Selected as `kubectl logs job/x` and dashboards do."""
        selector = f"batch.kubernetes.io/job-name={name}"
        return self.api("GET", f"{self.durable.pods_path}?labelSelector={selector}")["items"]

    def events(self, name):
        return self.durable.events(name)
