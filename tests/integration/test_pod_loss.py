"""Pods that go away before they have ended: deleted, evicted, preempted, rejected, stripped."""

import pytest

from holdfast import job, place
from localcluster import wait_for
from losses import (
    REACTION,
    SLACK,
    assert_one_disruption,
    created_at,
    delete_pod,
    ended_container,
    finish,
    pod_named,
    recoveries,
    seconds_of,
    set_pod_status,
    wait_attempt,
    wait_released,
    write_time,
)

pytestmark = pytest.mark.usefixtures("operator")

SHORT_BACKOFF = {"initialSeconds": 2, "factor": 2, "jitterPercent": 0}
# For a test that has to see the job in it.
SEEN_BACKOFF = {"initialSeconds": 6, "factor": 2, "jitterPercent": 0}


def start(jobs, name, **fields):
    """Applies a job, waits until its pod runs and returns the pod."""
    jobs.apply(job(name, **fields))
    return jobs.wait_running(name)


def assert_replaced(jobs, name, offset, pod, reason):
    """The attempt of `pod` is lost; its successor's pod was created within a second after kwok said
    that the containers had ended, and the job goes on to its end."""
    status = wait_attempt(jobs, name, 2)
    assert_one_disruption(status, reason)
    entry = status["history"][0]
    assert entry["podName"] == pod["metadata"]["name"]
    assert entry["nodeName"] == pod["spec"]["nodeName"]
    assert entry["exitCode"] == 143
    ended = write_time(jobs.cluster, offset, "patch", entry["podName"], subresource="status", user="kwok")
    created = created_at(jobs.cluster, offset, place(status)["podName"])
    assert created - ended <= REACTION + SLACK
    wait_for(
        f"an event that {name} lost its attempt",
        lambda: [event for event in jobs.events(name) if event["reason"] == "AttemptLost"],
        60,
    )
    wait_for(f"the old pod of {name} to be gone", lambda: not pod_named(jobs, entry["podName"]), 60)
    assert finish(jobs, name)["attempt"] == 2


def test_a_deleted_pod_is_lost_and_replaced_within_a_second(cluster, jobs):
    pod = start(jobs, "deleted")
    offset = cluster.audit_offset()
    delete_pod(jobs, pod)
    assert_replaced(jobs, "deleted", offset, pod, "PodDeleted")


def test_an_evicted_pod_is_lost_and_replaced_within_a_second(cluster, jobs):
    pod = start(jobs, "evicted")
    name = pod["metadata"]["name"]
    offset = cluster.audit_offset()
    jobs.api(
        "POST",
        f"{jobs.pods_path}/{name}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
    )
    assert_replaced(jobs, "evicted", offset, pod, "EvictionByEvictionAPI")


def test_a_preempted_pod_is_lost_and_replaced_within_a_second(cluster, jobs):
    cluster.add_node("small", labels={"size": "small"}, capacity={"cpu": "1"})
    for name, value in (("unimportant", -10), ("important", 1000)):
        cluster.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "resources": {"requests": {"cpu": "800m"}, "limits": {"cpu": "800m"}},
    }
    here = {"nodeSelector": {"size": "small"}, "containers": [container]}
    pod = start(jobs, "preempted", pod=dict(here, priorityClassName="unimportant"))
    offset = cluster.audit_offset()
    jobs.api(
        "POST",
        jobs.pods_path,
        {
            "metadata": {"name": "preemptor"},
            "spec": dict(here, priorityClassName="important", terminationGracePeriodSeconds=0),
        },
    )
    status = wait_attempt(jobs, "preempted", 2)
    waiting = jobs.wait("preempted", lambda s: s["waiting"]["reason"] == "PodUnschedulable", 60)["waiting"]
    assert "available" in waiting["message"]
    assert status["attempt"] == 2
    # The scheduler of 1.32 tells the pods that wait of those alone that leave a node.
    preemptor = f"{jobs.pods_path}/preemptor"
    wait_for("the preemptor to have its node", lambda: jobs.api("GET", preemptor)["spec"].get("nodeName"), 60)
    jobs.api("DELETE", preemptor)
    assert_replaced(jobs, "preempted", offset, pod, "PreemptionByScheduler")


def test_a_force_deleted_pod_is_lost(jobs):
    pod = start(jobs, "forced")
    delete_pod(jobs, pod, grace=0)
    assert_one_disruption(wait_attempt(jobs, "forced", 2), "PodDeleted")
    wait_released(jobs, pod)
    finish(jobs, "forced")


def test_a_pod_whose_finalizer_was_taken_off_and_that_vanished_is_lost(cluster, operator, jobs):
    pod = start(jobs, "vanished")
    name = pod["metadata"]["name"]
    jobs.api("PATCH", f"{jobs.pods_path}/{name}", {"metadata": {"finalizers": None}}, content_type="merge")
    offset = cluster.audit_offset()
    delete_pod(jobs, pod, grace=0)
    status = wait_attempt(jobs, "vanished", 2)
    assert_one_disruption(status, "PodGone")
    gone = write_time(cluster, offset, "delete", name)
    assert created_at(cluster, offset, place(status)["podName"]) - gone <= REACTION + SLACK
    recoveries(operator, "pod_vanished", at_least=1)
    finish(jobs, "vanished")


def test_a_pod_deleted_before_it_was_bound_is_lost(jobs):
    jobs.apply(job("unbound", pod={"nodeSelector": {"no": "where"}}))
    pod = jobs.wait_pod("unbound", lambda found: True)
    delete_pod(jobs, pod)
    assert_one_disruption(wait_attempt(jobs, "unbound", 2), "PodDeleted")
    wait_for("the unbound pod to be gone", lambda: not pod_named(jobs, pod["metadata"]["name"]), 60)


def test_a_pod_without_our_labels_is_still_ours_and_gets_them_back(jobs):
    pod = start(jobs, "stripped")
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    ours = {key: text for key, text in pod["metadata"]["labels"].items() if key.startswith("holdfast.dev/")}
    assert len(ours) == 4
    jobs.api("PATCH", path, {"metadata": {"labels": {key: None for key in ours}}}, content_type="merge")
    wait_for(
        "the labels to come back",
        lambda: ours.items()
        <= pod_named(jobs, pod["metadata"]["name"])["metadata"].get("labels", {}).items(),
        60,
    )
    status = finish(jobs, "stripped")
    assert (status["attempt"], status["disruptions"]) == (1, 0)


def test_a_deleted_pod_that_ends_with_exit_code_0_has_succeeded(jobs):
    pod = start(jobs, "in-time", annotations={"holdfast-test/term-exit-code": "0"})
    delete_pod(jobs, pod)
    status = jobs.wait_phase("in-time", "Succeeded")
    assert (status["attempt"], status["failures"], status["disruptions"]) == (1, 0, 0)
    assert status["history"][0]["exitCode"] == 0


# When the container ended by the kubelet's clock, in seconds after the deletion was asked for; its exit code.
ENDS_AROUND_A_DELETION = {
    "told-as-before": (-2, 143),
    "killed-in-it": (0, 137),
    "stopped-in-it": (0, 143),
    "failed-in-it": (0, 3),
    "failed-after": (2, 3),
}


@pytest.mark.parametrize("name", ENDS_AROUND_A_DELETION)
def test_a_pod_whose_deletion_showed_before_its_failure_is_lost_whatever_the_kubelets_clock_says(jobs, name):
    after, exit_code = ENDS_AROUND_A_DELETION[name]
    pod = start(jobs, name, annotations={"holdfast-test/ignore-delete": "true"}, retryBackoff=SHORT_BACKOFF)
    pod = delete_pod(jobs, pod)
    asked = (seconds_of(pod["metadata"]["deletionTimestamp"]) - pod["metadata"]["deletionGracePeriodSeconds"])
    jobs.end_pod(pod, "Failed", containerStatuses=ended_container(pod, exit_code, asked + after))
    status = wait_attempt(jobs, name, 2)
    assert status["history"][0]["outcome"] == "Lost"
    assert status["history"][0]["exitCode"] == exit_code
    assert (status["failures"], status["disruptions"]) == (0, 1)


def test_a_pod_that_ends_as_a_target_of_a_disruption_is_lost_whatever_its_exit_code(jobs):
    pod = start(jobs, "shutdown")
    jobs.end_pod(
        pod,
        "Failed",
        exit_code=1,
        conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
    )
    assert_one_disruption(wait_attempt(jobs, "shutdown", 2), "TerminationByKubelet")


def test_a_pod_that_the_kubelet_rejects_is_lost(jobs):
    jobs.apply(job("rejected", annotations={"holdfast-test/start-after": "600s"}))
    pod = jobs.wait_pod("rejected", lambda found: found["spec"].get("nodeName"))
    set_pod_status(jobs, pod, phase="Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")
    status = wait_attempt(jobs, "rejected", 2)
    assert_one_disruption(status, "OutOfcpu")
    assert "exitCode" not in status["history"][0]


def test_the_first_loss_goes_on_at_once_and_later_ones_in_a_row_wait_until_the_budget_is_spent(jobs):
    pod = start(jobs, "unlucky", disruptionLimit=2, retryBackoff=SEEN_BACKOFF)
    delete_pod(jobs, pod)
    assert wait_attempt(jobs, "unlucky", 2)["phase"] == "Running"

    delete_pod(jobs, jobs.wait_running("unlucky"))
    status = jobs.wait_phase("unlucky", "Backoff")
    assert status["waiting"]["reason"] == "RetryBackoff"
    due = seconds_of(place(status)["nextAttemptTime"])
    assert seconds_of(status["waiting"]["deadline"]) == int(due)
    assert 5 <= due - seconds_of(status["history"][1]["endTime"]) <= 6 + SLACK
    wait_attempt(jobs, "unlucky", 3)
    pod = jobs.wait_running("unlucky")
    assert 0 <= seconds_of(pod["metadata"]["creationTimestamp"]) - due + 1 <= REACTION + SLACK

    delete_pod(jobs, pod)
    status = jobs.wait_phase("unlucky", "Failed")
    assert (status["attempt"], status["failures"], status["disruptions"]) == (3, 0, 3)
    assert [entry["outcome"] for entry in status["history"]] == ["Lost"] * 3
    condition = jobs.conditions("unlucky")["Failed"]
    assert (condition["status"], condition["reason"]) == ("True", "DisruptionLimitExceeded")
    assert "disruptionLimit" in condition["message"]
    wait_for("all its pods to be gone", lambda: not jobs.pods("unlucky"), 60)


def test_a_failure_between_losses_ends_their_row(jobs):
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]
    pod = start(jobs, "mixed", retryBackoff=SHORT_BACKOFF)
    jobs.end_pod(pod, "Failed", 1, conditions=disrupted)
    wait_attempt(jobs, "mixed", 2)
    jobs.end_pod(jobs.wait_running("mixed"), "Failed", 1)
    wait_attempt(jobs, "mixed", 3)
    jobs.end_pod(jobs.wait_running("mixed"), "Failed", 1, conditions=disrupted)
    status = wait_attempt(jobs, "mixed", 4)
    assert [entry["outcome"] for entry in status["history"]] == ["Lost", "Failed", "Lost"]
    assert (status["phase"], status["failures"], status["disruptions"]) == ("Running", 1, 2)
    assert finish(jobs, "mixed")["attempt"] == 4
