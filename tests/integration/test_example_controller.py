"""The client serves others: examples/controller works on a real API server."""

import subprocess

import pytest
from holdfast import built, die_with_parent
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False, "scheduler": False, "controller_manager": False, "audit": False}
PATH = "/api/v1/namespaces/default/configmaps"
ANNOTATION = "example.dev/bytes"


@pytest.fixture
def controller(cluster):
    program = built("examples/controller/example-controller", "HOLDFAST_EXAMPLE")
    process = subprocess.Popen([program, cluster.kubeconfig, "default"], preexec_fn=die_with_parent)
    yield process
    process.kill()
    process.wait()


def create(cluster, name, **metadata):
    code, answer = cluster.api("POST", PATH, {"metadata": {"name": name} | metadata, "data": {"a": "12"}})
    assert code == 201, answer


def noted(cluster, name):
    return cluster.api("GET", f"{PATH}/{name}")[1]["metadata"].get("annotations", {}).get(ANNOTATION)


def test_the_example_keeps_the_annotation_of_what_has_its_label(cluster, controller):
    create(cluster, "other")
    create(cluster, "before", labels={"example.dev/measure": "true"})
    wait_for("the first to be measured", lambda: noted(cluster, "before") == str(len('{"a":"12"}')), 60)
    merge = "application/merge-patch+json"
    assert cluster.api("PATCH", f"{PATH}/before", {"data": {"a": "1234"}}, content_type=merge)[0] == 200
    wait_for("the change to be measured", lambda: noted(cluster, "before") == str(len('{"a":"1234"}')), 60)
    assert noted(cluster, "other") is None
    assert controller.poll() is None
