"""Pods that no node has: the real scheduler, and gates, keep them waiting."""

import pytest

from holdfast import QUICK_LEASES, job, runs
from lives import BY_HAND, settle, wait_until
from localcluster import wait_for
from losses import REACTION, SLACK, scheduled, seconds_of, wait_attempt

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES
DEADLINE = 6
NOWHERE = {"nodeSelector": {"no": "where"}}
GATED = {"schedulingGates": [{"name": "example.com/quota"}, {"name": "example.com/licence"}]}


def waits_for(reason):
    return lambda status: status.get("waiting", {}).get("reason") == reason


def remove_gates(jobs, pod):
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    return jobs.api("PATCH", path, {"spec": {"schedulingGates": None}}, content_type="merge")


def label(jobs, node, value):
    body = {"metadata": {"labels": {"no": value}}}
    jobs.api("PATCH", f"/api/v1/nodes/{node}", body, content_type="merge")


def assert_waits_at_no_cost(jobs, name, since, seconds):
    """Its first attempt is still the only one so many seconds later."""
    wait_until(since + seconds, lambda: jobs.status(name)["attempt"] == 1)
    status = jobs.status(name)
    assert (status["attempt"], status["failures"], status["disruptions"]) == (1, 0, 0)
    assert not status.get("history") and "deadline" not in status["waiting"]
    return status


def test_a_pod_that_cannot_be_scheduled_waits_without_limit_and_cost(cluster, jobs):
    jobs.apply(job("nowhere", startDeadlineSeconds=DEADLINE, annotations=runs(0), pod=NOWHERE))
    jobs.wait("nowhere", waits_for("PodUnschedulable"), 60)

    def says_what_the_scheduler_says():
        waiting, condition = jobs.status("nowhere")["waiting"], scheduled(jobs.pod("nowhere"))
        return (waiting["message"], waiting["since"]) == (condition["message"], condition["lastTransitionTime"])

    wait_for("the job to say what the scheduler says", says_what_the_scheduler_says, 60)
    pod = jobs.pod("nowhere")
    created = seconds_of(pod["metadata"]["creationTimestamp"])
    assert_waits_at_no_cost(jobs, "nowhere", created, DEADLINE + REACTION + SLACK)
    node = cluster.api("GET", "/api/v1/nodes")[1]["items"][0]["metadata"]["name"]
    label(jobs, node, "where")
    try:
        status = settle(jobs, "nowhere")
    finally:
        label(jobs, node, None)
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 1, 0)


def test_a_gated_pod_waits_without_limit_and_cost_and_its_jobs_time_stands_still(jobs):
    limits = {"startDeadlineSeconds": DEADLINE, "activeDeadlineSeconds": DEADLINE + 2}
    jobs.apply(job("gated", annotations=runs(600), pod=GATED, **limits))
    waiting = jobs.wait("gated", waits_for("PodGated"), 60)["waiting"]
    pod = jobs.pod("gated")
    assert waiting["message"].startswith(scheduled(pod)["message"])
    assert "example.com/quota, example.com/licence" in waiting["message"]
    assert waiting["since"] == pod["metadata"]["creationTimestamp"]
    created = seconds_of(waiting["since"])
    assert_waits_at_no_cost(jobs, "gated", created, DEADLINE + 2 + REACTION + SLACK)
    remove_gates(jobs, pod)
    status = jobs.wait("gated", waits_for("PodRunning"), 60)
    bound = seconds_of(scheduled(jobs.pod("gated"))["lastTransitionTime"])
    assert bound - created - 2 <= status["suspendedSeconds"] <= bound - created + 1
    status = jobs.wait_phase("gated", "Failed")
    assert status["history"][0]["outcome"] == "Cancelled"
    active = seconds_of(status["completionTime"]) - seconds_of(status["startTime"])
    active -= status["suspendedSeconds"]
    assert DEADLINE + 1 <= active <= DEADLINE + 2 + REACTION + SLACK


def test_a_gate_that_is_removed_while_no_operator_runs_is_counted_up_to_the_binding(operator, jobs):
    jobs.apply(job("unwatched", annotations=runs(600), pod=GATED, activeDeadlineSeconds=3600))
    jobs.wait("unwatched", waits_for("PodGated"), 60)
    pod = jobs.pod("unwatched")
    operator.kill()
    try:
        remove_gates(jobs, pod)
        running = jobs.wait_running("unwatched")
        bound = seconds_of(scheduled(running)["lastTransitionTime"])
        wait_until(bound + 5)
    finally:
        operator.start()
    status = jobs.wait("unwatched", waits_for("PodRunning"), 60)
    gated = bound - seconds_of(pod["metadata"]["creationTimestamp"])
    assert gated - 1 <= status["suspendedSeconds"] <= gated + 1


@pytest.mark.parametrize("pod", [NOWHERE, GATED], ids=["unschedulable", "gated"])
def test_the_schedule_deadline_ends_the_attempt_as_a_start_timeout(jobs, pod):
    jobs.apply(job("limited", scheduleDeadlineSeconds=DEADLINE, disruptionLimit=0, pod=pod))
    made = jobs.wait_pod("limited", lambda found: True)
    status = jobs.wait_phase("limited", "Failed")
    assert [entry["outcome"] for entry in status["history"]] == ["StartTimeout"]
    assert (status["failures"], status["disruptions"]) == (0, 1)
    took = seconds_of(status["completionTime"]) - seconds_of(made["metadata"]["creationTimestamp"])
    assert DEADLINE - 1 <= took <= DEADLINE + REACTION + SLACK
    failed = jobs.conditions("limited")["Failed"]
    assert "scheduleDeadlineSeconds" in failed["message"]
    assert scheduled(made).get("message", "") in failed["message"]


def test_the_start_deadline_begins_when_the_pod_is_bound(jobs):
    late = {"holdfast-test/waiting": "ImagePullBackOff"}
    jobs.apply(job("late", startDeadlineSeconds=DEADLINE, annotations=late, pod=GATED))
    jobs.wait("late", waits_for("PodGated"), 60)
    pod = jobs.pod("late")
    created = seconds_of(pod["metadata"]["creationTimestamp"])
    assert_waits_at_no_cost(jobs, "late", created, DEADLINE + SLACK)
    remove_gates(jobs, pod)
    bound = seconds_of(scheduled(jobs.wait_pod("late", lambda p: p["spec"].get("nodeName")))["lastTransitionTime"])
    status = wait_attempt(jobs, "late", 2)
    assert status["history"][0]["outcome"] == "StartTimeout"
    ended = seconds_of(status["history"][0]["endTime"])
    assert bound + DEADLINE - 1 <= ended <= bound + DEADLINE + REACTION + SLACK


def test_a_pod_that_no_scheduler_knows_sets_stalled_and_costs_nothing(jobs):
    jobs.apply(job("unknown", startDeadlineSeconds=DEADLINE, pod=BY_HAND))
    status = jobs.wait("unknown", waits_for("NoScheduler"), 60)
    assert "nobody" in status["waiting"]["message"]
    stalled = jobs.conditions("unknown")["Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "NoScheduler")
    assert (status["attempt"], status["disruptions"]) == (1, 0)
    jobs.end_pod(jobs.pod("unknown"))
    assert settle(jobs, "unknown")["phase"] == "Succeeded"
    assert jobs.conditions("unknown")["Stalled"]["status"] == "False"
