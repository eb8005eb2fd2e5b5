"""Jobs that run for real, under Pod Security `restricted`, and what the tests wait for."""

import json
import time

from holdfast import job
from localcluster import wait_for

RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}


def container(cluster, script, name="main", **fields):
    """One that runs a shell script, as a container's description."""
    return {"name": name, "image": cluster.workload, "command": ["sh", "-c", script],
            "securityContext": RESTRICTED, "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}},
            **fields}


def shell_job(cluster, name, script, pod=None, container_fields=None, **spec):
    """A DurableJob whose one container runs a shell script. Its pods end at once when they are told to,
    so that nothing waits for the grace of a shell that ignores SIGTERM."""
    body = job(name, pod={
        "securityContext": POD_SECURITY, "terminationGracePeriodSeconds": 2,
        "containers": [container(cluster, script, **(container_fields or {}))], **(pod or {})}, **spec)
    return body


def sleeps(seconds):
    """A script that sleeps and ends at once on SIGTERM, with 143."""
    return f"trap 'exit 143' TERM; sleep {seconds} & wait $!"


def on(node):
    """Fields of a pod that may run on this node alone."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def end_of(jobs, name, limit=120):
    """The status of a job that has ended."""
    return jobs.wait_phase(name, "Succeeded", "Failed", "Cancelled", limit=limit)


def outcomes(status):
    """[(attempt, outcome, reason)] of its ended attempts."""
    return [(entry["attempt"], entry["outcome"], entry.get("reason")) for entry in status["history"]]


def wait_attempt_pod(jobs, name, attempt, limit):
    """Until this attempt's pod is there: its creation as this process sees it (time.monotonic())."""
    def there():
        status = jobs.status(name)
        if status.get("attempt", 0) < attempt:
            return False
        return any(pod["metadata"]["labels"]["holdfast.dev/attempt"] == str(attempt) for pod in jobs.pods(name))

    wait_for(f"attempt {attempt} of {name}", there, limit, poll=0.1)
    return time.monotonic()


def describe(cluster, namespace, name):
    """What `kubectl describe dj` tells."""
    return cluster.kubectl("-n", namespace, "describe", "dj", name).stdout


def logs_of(cluster, namespace, pod, container_name="main"):
    return cluster.kubectl("-n", namespace, "logs", pod, "-c", container_name).stdout


def dump(value):
    return json.dumps(value, indent=1)
