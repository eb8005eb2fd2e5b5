"""Creates a DurableJob with the official Python client (`pip install kubernetes`), and waits for its end: docs/call-it.md.

    python3 submit.py KEY      # the same key again answers with the same job
"""

import hashlib
import sys
import time

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

KIND = {"group": "holdfast.dev", "version": "v1alpha1", "plural": "durablejobs"}
ENDS = ("Succeeded", "Failed", "Cancelled")
SPEC = {
    "backoffLimit": 3,
    "template": {"spec": {"containers": [
        {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "echo done by attempt $HOLDFAST_ATTEMPT"]}]}},
}


def job_name(prefix, key):
    """The same name for the same key."""
    return f"{prefix}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def submit(api, namespace, name, spec):
    body = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name}, "spec": spec}
    try:
        api.create_namespaced_custom_object(namespace=namespace, body=body, **KIND)
    except ApiException as error:
        if error.status != 409:  # 409: an earlier call has created it
            raise


def wait(api, namespace, name):
    """The phase that the job ended in. For thousands of jobs, watch them instead."""
    while True:
        job = api.get_namespaced_custom_object(namespace=namespace, name=name, **KIND)
        phase = job.get("status", {}).get("phase")
        if phase in ENDS:
            return phase
        time.sleep(2)


def main():
    config.load_config()  # the kubeconfig, or the service account of the pod
    api = client.CustomObjectsApi()
    name = job_name("report", sys.argv[1])
    submit(api, "default", name, SPEC)
    phase = wait(api, "default", name)
    print(name, phase)
    sys.exit(phase != "Succeeded")


if __name__ == "__main__":
    main()
