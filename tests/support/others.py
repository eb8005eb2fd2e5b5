"""batch/v1 Jobs that Kubernetes' own controller runs, and whose pods Holdfast may free (docs/rescue.md)."""

from holdfast import is_running
from localcluster import wait_for

WINDOW = 15
LABEL = {"holdfast.dev/rescue": "true"}
IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
CONTAINER = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "600"]}


def other_job(name, labels=None, annotations=None, pod=None, **spec):
    template = {"metadata": {"labels": labels or {},
                             "annotations": {"holdfast.dev/lostAfterSeconds": str(WINDOW), **(annotations or {})}},
                "spec": {"restartPolicy": "Never", "containers": [CONTAINER], **(pod or {})}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": template, **spec}}


def wait_running(jobs, name):
    found = {}

    def there():
        found["it"] = next((pod for pod in jobs.pods(name) if is_running(pod)), None)
        return found["it"] is not None

    wait_for(f"a pod of Job {name} to run", there, 60)
    return found["it"]
