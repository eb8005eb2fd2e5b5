"""What each system claims of its jobs, from objects as its API has them."""

import json
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from referee.checker import GONE  # noqa: E402
from referee.systems import ALL, CANARIES, RESCUED  # noqa: E402
from referee.systems.base import indexes_of, unit_of, why_of  # noqa: E402
from referee.systems.rescued import LABEL  # noqa: E402


def ended(name, found):
    return (ALL | RESCUED | CANARIES)[name](None, 2, 40).has_ended(found)


def claims(name, objects, jobs=("job-1",), indexes=2):
    found = (ALL | RESCUED | CANARIES)[name](None, indexes, 40).claims(jobs, objects)
    return [(claim.outcome, claim.counted, claim.why) for claim in found]


def node(index, kind, phase, **more):
    return {"templateName": "run", "type": kind, "phase": phase,
            "inputs": {"parameters": [{"name": "index", "value": str(index)}]}, **more}


def test_ranges_of_indexes():
    assert indexes_of("0-2,5") == {0, 1, 2, 5}
    assert indexes_of("") == indexes_of(None) == set()


@pytest.mark.parametrize("name", [*ALL, *RESCUED, *CANARIES])
def test_a_job_that_is_gone_is_said_to_be(name):
    assert claims(name, {}) == [(None, 0, GONE)] * 2


@pytest.mark.parametrize("name", ["batch", "batch-quick", "batch-tuned", "kueue", "holdfast-lane", "batch-rescue",
                                  "kueue-rescue"])
def test_a_job_of_batch(name):
    half = {"status": {"completedIndexes": "1"}}
    assert claims(name, {"job-1": half}) == [(None, 0, ""), ("Succeeded", 1, "")]
    half["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
    assert claims(name, {"job-1": half}) == [("Failed", 0, "BackoffLimitExceeded"), ("Succeeded", 1, "")]


@pytest.mark.parametrize("name", ["holdfast", "holdfast-heartbeat", "holdfast-pool", "canary"])
def test_a_durablejob_says_why_and_counts(name):
    job = {"status": {"completedIndexes": "0", "waiting": {"reason": "PodRunning", "message": "pod p runs"},
                      "history": [{"outcome": "Succeeded", "index": 0}, {"outcome": "Succeeded", "index": 0},
                                  {"outcome": "Lost", "index": 1}]}}
    assert claims(name, {"job-1": job}) == [("Succeeded", 2, ""), (None, 0, "PodRunning: pod p runs")]


def test_a_jobset_says_what_its_job_says_until_it_has_completed():
    found = {"status": {}, "jobs": {"0": {"conditions": [{"type": "Complete", "status": "True"}]}}}
    assert claims("jobset", {"job-1": found}) == [("Succeeded", 1, ""), (None, 0, "")]
    found["status"]["conditions"] = [{"type": "Completed", "status": "True", "reason": "AllJobsCompleted"}]
    assert claims("jobset", {"job-1": found})[1] == ("Succeeded", 1, "")


def test_a_workflow_counts_the_pods_of_an_index():
    flow = {"status": {"phase": "Running", "nodes": {
        "r0": node(0, "Retry", "Succeeded"), "p0": node(0, "Pod", "Error"), "p1": node(0, "Pod", "Succeeded"),
        "r1": node(1, "Retry", "Running"), "p2": node(1, "Pod", "Pending", message="Unschedulable")}}}
    assert claims("argo", {"job-1": flow}) == [("Succeeded", 1, ""), (None, 0, "Unschedulable")]
    flow["status"]["nodes"]["r1"] = node(1, "Retry", "Failed", message="No more retries left")
    assert claims("argo", {"job-1": flow})[1] == ("Failed", 0, "No more retries left")


@pytest.mark.parametrize(("name", "status"), [
    *((name, {"conditions": [{"type": "Complete", "status": "True"}]}) for name in ("batch", "holdfast", "holdfast-lane")),
    ("jobset", {"conditions": [{"type": "Completed", "status": "True"}]}), ("argo", {"phase": "Succeeded"})])
def test_when_a_job_has_ended(name, status):
    assert ended(name, {"status": status})
    assert not ended(name, {"status": {}})


def test_the_pod_whose_success_counts_is_one_of_the_history():
    job = {"status": {"history": [{"outcome": "Lost", "index": 1, "podUID": "a"},
                                  {"outcome": "Succeeded", "index": 1, "podUID": "b"}]}}
    system = ALL["holdfast"](None, 2, 40)
    assert (system.pod_of(job, 0), system.pod_of(job, 1)) == ("", "b")


@pytest.mark.parametrize(("name", "more"), [
    ("kueue", {"workload": {"conditions": [
        {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no quota"}]}}),
    ("holdfast-lane", {"durablejob": {"waiting": {"reason": "Pending", "message": "no quota"}}})])
def test_what_stands_beside_a_job_says_why_it_waits(name, more):
    assert claims(name, {"job-1": {"status": {"completedIndexes": "0"}, **more}}) == [
        ("Succeeded", 1, ""), (None, 0, "Pending: no quota")]


def test_a_pod_is_known_by_its_command():
    def unit(words, labels=None, first="main"):
        containers = [{"name": first, "args": [] if first == "wait" else words}] + (
            [{"name": "main", "command": words}] if first == "wait" else [])
        return unit_of({"metadata": {"labels": labels or {}}, "spec": {"containers": containers}})

    assert unit(["/worker", "batch", "job-1", "-", "90"], {"batch.kubernetes.io/job-completion-index": "2"}) == ("job-1", 2)
    assert unit(["/argoexec", "--", "/worker", "argo", "job-1", "1", "90"], first="wait") == ("job-1", 1)
    assert unit(["/worker", "holdfast-pool", "-", "-", "90"]) is None
    assert unit(["sleep", "1"]) is None


@pytest.mark.parametrize(("status", "why"), [
    ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]},
     "Unschedulable: no room"),
    ({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Taint", "message": "deleting"}]},
     "Taint: deleting"),
    ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, "ContainerCreating: "),
    ({"conditions": [{"type": "Ready", "status": "False", "message": "not it"}]}, "")])
def test_what_a_pod_says(status, why):
    assert why_of({"status": status}) == why


def test_each_system_has_a_vendor_and_the_canaries_one_of_their_own():
    assert {kind.vendor for kind in CANARIES.values()} == {"canary"}
    assert {kind.vendor for kind in ALL.values()} == {"Holdfast", "Kubernetes", "Kueue", "JobSet", "Argo"}


@pytest.mark.parametrize("name,owner", [("batch-rescue", "batch"), ("kueue-rescue", "kueue"), ("jobset-rescue", "jobset"),
                                        ("argo-rescue", "argo")])
def test_a_rescued_job_is_the_same_job_with_the_label_in_its_pods_template(name, owner):
    with_label, without = (json.dumps((ALL | RESCUED)[one](None, 2, 40).job("job-1")).replace(f'"{one}"', '"system"')
                           for one in (name, owner))
    label = json.dumps(LABEL)
    assert with_label.count(label) == 1 and label not in without
    assert len(with_label) - len(without) == len(f', "metadata": {label}')
