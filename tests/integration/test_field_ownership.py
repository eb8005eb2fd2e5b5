"""What others write into a job stays theirs, whatever the operator writes into its status."""

import json

import pytest

from holdfast import QUICK_LEASES, job, runs
from lives import settle
from localcluster import wait_for

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES

FIELDS = ("labels", "annotations", "finalizers", "ownerReferences")


def manifest(name, **metadata):
    """What one applier says of the job."""
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name, **metadata}}


def apply(cluster, jobs, manager, body):
    """Server-side apply, as this manager."""
    path = f"{jobs.path}/{body['metadata']['name']}?fieldManager={manager}"
    status, answer = cluster.api("PATCH", path, body, content_type="apply")
    assert status in (200, 201), answer
    return answer


def owned(found, manager):
    """The metadata that this manager's Apply owns, as managedFields tells it."""
    for entry in found["metadata"]["managedFields"]:
        if entry["manager"] == manager and entry["operation"] == "Apply":
            return entry["fieldsV1"].get("f:metadata", {})
    return {}


@pytest.fixture
def owner(cluster, jobs):
    path = f"/api/v1/namespaces/{jobs.namespace}/configmaps"
    made = cluster.api("POST", path, {"metadata": {"name": "owner"}})[1]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"]}


def test_what_two_appliers_own_stays_theirs_through_all_status_writes(cluster, jobs, owner):
    first = job("shared", annotations=runs(3))
    first["metadata"].update(
        labels={"team": "a", "stays": "yes"}, annotations={"example.com/note": "a"},
        finalizers=["example.com/a"])
    apply(cluster, jobs, "first", first)
    second = manifest("shared", labels={"colour": "blue"}, ownerReferences=[owner])
    apply(cluster, jobs, "second", second)
    before = {name: owned(jobs.get("shared"), name) for name in ("first", "second")}
    assert {f"f:{field}" for field in FIELDS} == {*before["first"], *before["second"]}
    settle(jobs, "shared")
    found = jobs.get("shared")
    assert {name: owned(found, name) for name in before} == before, json.dumps(found, indent=1)

    # What goes from a manifest goes from the job, also from one that has ended.
    del first["metadata"]["labels"]["team"], first["metadata"]["annotations"]
    del first["metadata"]["finalizers"]
    del second["metadata"]["labels"]
    apply(cluster, jobs, "first", first)
    left = apply(cluster, jobs, "second", second)["metadata"]
    assert left["labels"] == {"stays": "yes"}
    assert "annotations" not in left and "finalizers" not in left
    assert left["ownerReferences"] == [owner]


def test_a_finished_job_that_is_edited_keeps_its_owners_too(cluster, operator, jobs):
    body = job("edited", annotations=runs(0))
    body["metadata"]["labels"] = {"team": "a"}
    apply(cluster, jobs, "first", body)
    settle(jobs, "edited")
    generation = jobs.patch("edited", backoffLimit=3)["metadata"]["generation"]
    operator.kill()
    operator.start()  # and walks over the finished jobs, as else each ten minutes
    wait_for("the operator to see the edit", lambda: jobs.status("edited")["observedGeneration"] == generation, 60)
    assert "f:labels" in owned(jobs.get("edited"), "first")
    body["metadata"]["labels"] = {}
    assert "labels" not in apply(cluster, jobs, "first", body)["metadata"]
