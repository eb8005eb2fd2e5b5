"""What kubelets say of containers that do not start, and what they take back. The tests play the kubelet."""

import time

import pytest

from holdfast import QUICK_LEASES, job
from lives import BY_HAND, budgets, wait_observed, wait_told, wait_until

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES
NODE = "played-by-hand"
MISSING = {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "settings" not found'}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "side:9"'}}
TWO = {**BY_HAND, "containers": [{"name": name, "image": "busybox:1.36", "command": ["true"]}
                                 for name in ("main", "side")]}


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def running():
    return {"running": {"startedAt": stamp(time.time())}}


@pytest.fixture(scope="module", autouse=True)
def node(cluster):
    assert cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": NODE}, "spec": {}})[0] == 201
    yield
    cluster.api("DELETE", f"/api/v1/nodes/{NODE}")


def make(jobs, name, **spec):
    """A job whose pod has the node; returns the pod."""
    jobs.apply(job(name, **{"pod": BY_HAND, "lostAfterSeconds": 3600, **spec}))
    pod = jobs.wait_pod(name, lambda _: True)
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    jobs.api("POST", f"{path}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}})
    return pod


def report(jobs, pod, phase, **states):
    containers = [{"name": name, "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
                  for name, state in states.items()]
    jobs.api("PATCH", f"{jobs.pods_path}/{pod['metadata']['name']}/status",
             {"status": {"phase": phase, "containerStatuses": containers}}, content_type="merge")


def test_a_kubelet_that_takes_back_a_start_ends_no_attempt(jobs):
    limit = 20  # the operator tells of a start that is slow after ten seconds
    taken_back = {"being-created": {"main": CREATING}, "no-containers": {}}
    pods = {name: make(jobs, name, startDeadlineSeconds=limit) for name in taken_back}
    for pod in pods.values():
        report(jobs, pod, "Running", main=running())
    for name in pods:
        wait_told(jobs, name, "PodRunning")
    wait_until(time.time() + limit + 1)
    for name, states in taken_back.items():
        report(jobs, pods[name], "Pending", **states)
        jobs.patch(name, backoffLimit=7)
        wait_observed(jobs, name)
        assert budgets(jobs.status(name)) == (1, 0, 0)
        report(jobs, pods[name], "Running", main=running())


def test_a_container_that_cannot_start_beside_one_that_runs_is_told(jobs):
    pod = make(jobs, "beside", pod=TWO)
    report(jobs, pod, "Pending", main=running(), side=NO_IMAGE)
    waiting = wait_told(jobs, "beside", "ImagePullBackOff")["waiting"]
    assert 'container side: Back-off pulling image "side:9"' in waiting["message"]
    assert "deadline" not in waiting


@pytest.mark.parametrize("spec", [{"activeDeadlineSeconds": 5}, {"startDeadlineSeconds": 5, "disruptionLimit": 0}],
                         ids=["active", "start"])
def test_what_kept_a_pod_from_starting_outlives_the_deadline_that_ends_it(jobs, spec):
    name = f"kept-{len(spec)}"
    report(jobs, make(jobs, name, **spec), "Pending", main=MISSING)
    status = jobs.wait(name, lambda now: "FailureTarget" in {one["type"] for one in now.get("conditions", [])}, 60)
    why = 'container main: CreateContainerConfigError: configmap "settings" not found'
    assert why in status["history"][-1]["message"]
    assert why in jobs.conditions(name)["FailureTarget"]["message"]
