"""Suspend, resume and cancel, in every phase."""

import time
import types

import pytest

from holdfast import QUICK_LEASES, Jobs, job, place, runs
from lives import (
    BY_HAND,
    LONG_BACKOFF,
    STAYS,
    budgets,
    event_reasons,
    finalizers,
    outcomes,
    settle,
    wait_events,
    wait_observed,
    wait_told,
)
from localcluster import wait_for
from losses import LOST_AFTER, REACTION, SLACK, has_finalizer, new_namespace, pod_named, seconds_of

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES
GRACE = 2
# A pod that does not go when it is told to, and is waited for as long as any test takes.
HOLDS = {"annotations": STAYS, "lostAfterSeconds": 120}
SOON = {"terminationGracePeriodSeconds": GRACE}


@pytest.fixture(scope="module", autouse=True)
def doomed(cluster, operator):
    """A job on a node of its own: the node dies, then the job is cancelled. It takes its time while
    the file's other tests run."""
    node = "doomed"
    cluster.add_node(node)
    cluster.api("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}},
                content_type="merge")  # fmt: skip
    jobs = Jobs(cluster, new_namespace(cluster, "doomed"))
    jobs.apply(job("dead", lostAfterSeconds=LOST_AFTER, pod=dict(SOON, nodeName=node)))
    jobs.wait_running("dead")
    wait_told(jobs, "dead", "PodRunning")
    cluster.kill_node(node)
    jobs.patch("dead", cancel=True)
    return types.SimpleNamespace(jobs=jobs)


def patch_and_wait(jobs, name, phase, **spec):
    jobs.patch(name, **spec)
    return jobs.wait_phase(name, phase)


def assert_suspended(jobs, name):
    """The job says that it waits for the user, as batch/v1 does."""
    status = jobs.wait_phase(name, "Suspended")
    assert status["waiting"]["reason"] == "Suspended"
    assert "suspend" in status["waiting"]["nextAction"]
    # No attempt is open, and the next one need not wait once the job is resumed.
    for run in status.get("runs", []):
        assert seconds_of(run["nextAttemptTime"]) <= time.time() + 1
    condition = jobs.conditions(name)["Suspended"]
    assert (condition["status"], condition["reason"]) == ("True", "JobSuspended")
    return status


def assert_resumed(jobs, name, attempt):
    """The next attempt runs."""
    status = jobs.wait(name, lambda s: s.get("phase") == "Running" and s["attempt"] == attempt, 60)
    condition = jobs.conditions(name)["Suspended"]
    assert (condition["status"], condition["reason"]) == ("False", "JobResumed")
    return status


def assert_cancelled(jobs, name, attempt, history):
    """Cancelled for good, nothing runs on, one Event tells of it."""
    status = jobs.wait_phase(name, "Cancelled")
    assert status["attempt"] == attempt
    assert outcomes(status) == history
    assert status["completionTime"] and "waiting" not in status
    condition = jobs.conditions(name)["Cancelled"]
    assert (condition["status"], condition["reason"]) == ("True", "Cancelled")
    assert not {"Complete", "Failed"} & set(jobs.conditions(name))
    settle(jobs, name)
    wait_for("the Event", lambda: event_reasons(jobs, name).count("Cancelled") == 1, 60)
    return status


def in_pending(jobs, name):
    """A job in Pending: resumed while podReplacementPolicy holds it back for its old pod."""
    jobs.apply(job(name, podReplacementPolicy="Failed", pod=SOON, **HOLDS))
    jobs.wait_running(name)
    patch_and_wait(jobs, name, "Suspended", suspend=True)
    patch_and_wait(jobs, name, "Pending", suspend=False)
    return wait_told(jobs, name, "OldPodNotEnded")


# -- suspend and resume ------------------------------------------------------------------------


def test_a_job_created_suspended_starts_nothing_until_it_is_resumed(jobs):
    jobs.apply(job("later", suspend=True, annotations=runs(0)))
    assert budgets(assert_suspended(jobs, "later")) == (0, 0, 0)
    assert jobs.pods() == []
    jobs.patch("later", suspend=False)
    status = settle(jobs, "later")
    assert (status["phase"], budgets(status)) == ("Succeeded", (1, 0, 0))


def test_a_running_job_that_is_suspended_stops_its_pod_and_spends_nothing(jobs):
    jobs.apply(job("runs"))
    pod = jobs.wait_running("runs")
    jobs.patch("runs", suspend=True)
    status = assert_suspended(jobs, "runs")
    assert budgets(status) == (1, 0, 0)
    assert outcomes(status) == ["Suspended"]
    wait_for("the pod to be gone", lambda: not pod_named(jobs, pod["metadata"]["name"]), 60)
    jobs.patch("runs", suspend=False)
    assert place(assert_resumed(jobs, "runs", 2))["podName"] != pod["metadata"]["name"]
    jobs.end_pod(jobs.wait_running("runs"))
    status = settle(jobs, "runs")
    assert (status["phase"], outcomes(status)) == ("Succeeded", ["Suspended", "Succeeded"])
    wait_events(jobs, "runs", "Completed")


def test_a_job_whose_pod_has_not_started_can_be_suspended(jobs):
    jobs.apply(job("starts", pod=BY_HAND))
    jobs.wait_pod("starts", lambda pod: True)
    jobs.patch("starts", suspend=True)
    assert outcomes(assert_suspended(jobs, "starts")) == ["Suspended"]
    wait_for("the pod to be gone", lambda: not jobs.pods(), 60)
    jobs.patch("starts", suspend=False)
    assert_resumed(jobs, "starts", 2)


def test_a_job_in_backoff_that_is_suspended_and_resumed_waits_no_longer(jobs):
    jobs.apply(job("backs-off", annotations=runs(0, "1,0"), retryBackoff=LONG_BACKOFF))
    jobs.wait_phase("backs-off", "Backoff")
    jobs.patch("backs-off", suspend=True)
    status = assert_suspended(jobs, "backs-off")
    assert outcomes(status) == ["Failed"]
    jobs.patch("backs-off", suspend=False)
    status = settle(jobs, "backs-off")
    assert (status["phase"], budgets(status)) == ("Succeeded", (2, 1, 0))


def test_a_pending_job_can_be_suspended_and_waits_for_its_old_pod_when_resumed(jobs):
    in_pending(jobs, "pends")
    jobs.patch("pends", suspend=True)
    assert budgets(assert_suspended(jobs, "pends")) == (1, 0, 0)
    jobs.patch("pends", suspend=False)
    assert wait_told(jobs, "pends", "OldPodNotEnded")["phase"] == "Pending"
    jobs.end_pod(jobs.pods("pends")[0], phase="Failed", exit_code=143)
    assert assert_resumed(jobs, "pends", 2)["failures"] == 0


def test_a_success_after_suspend_was_recorded_does_not_count(operator, jobs):
    before = operator.metric("holdfast_fenced_outcomes_total", pod_phase="Succeeded")
    jobs.apply(job("too-late", **HOLDS))
    pod = jobs.wait_running("too-late")
    jobs.patch("too-late", suspend=True)
    assert_suspended(jobs, "too-late")
    jobs.end_pod(pod)
    wait_for(
        "the fenced outcome to be counted",
        lambda: operator.metric("holdfast_fenced_outcomes_total", pod_phase="Succeeded")
        == before + 1,
        60,
    )
    wait_for("the pod to be released", lambda: not finalizers(jobs), 60)
    assert outcomes(assert_suspended(jobs, "too-late")) == ["Suspended"]
    jobs.patch("too-late", suspend=False)
    assert_resumed(jobs, "too-late", 2)


# -- cancel ------------------------------------------------------------------------------------


def test_a_job_created_cancelled_never_starts_anything(jobs):
    jobs.apply(job("never", cancel=True))
    assert_cancelled(jobs, "never", attempt=0, history=[])
    assert jobs.pods() == []


def test_a_running_job_that_is_cancelled_stops_its_pod(jobs):
    jobs.apply(job("runs"))
    pod = jobs.wait_running("runs")
    jobs.patch("runs", cancel=True)
    status = assert_cancelled(jobs, "runs", attempt=1, history=["Cancelled"])
    assert budgets(status) == (1, 0, 0)
    wait_for("the pod to be gone", lambda: not pod_named(jobs, pod["metadata"]["name"]), 60)
    wait_events(jobs, "runs", "Cancelled")


def test_a_job_whose_pod_has_not_started_can_be_cancelled(jobs):
    jobs.apply(job("starts", pod=BY_HAND))
    jobs.wait_pod("starts", lambda pod: True)
    jobs.patch("starts", cancel=True)
    assert_cancelled(jobs, "starts", attempt=1, history=["Cancelled"])
    wait_for("the pod to be gone", lambda: not jobs.pods(), 60)


def test_a_job_in_backoff_is_cancelled_at_once(jobs):
    jobs.apply(job("backs-off", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF))
    jobs.wait_phase("backs-off", "Backoff")
    jobs.patch("backs-off", cancel=True)
    assert_cancelled(jobs, "backs-off", attempt=1, history=["Failed"])


def test_a_suspended_job_is_cancelled_at_once(jobs):
    jobs.apply(job("sleeps", suspend=True))
    assert_suspended(jobs, "sleeps")
    jobs.patch("sleeps", cancel=True)
    assert_cancelled(jobs, "sleeps", attempt=0, history=[])
    assert jobs.conditions("sleeps")["Suspended"]["status"] == "False"


def test_a_pending_job_is_cancelled_when_its_old_pod_has_ended(jobs):
    in_pending(jobs, "pends")
    patch_and_wait(jobs, "pends", "Cancelling", cancel=True)
    jobs.end_pod(jobs.pods("pends")[0], phase="Failed", exit_code=143)
    assert_cancelled(jobs, "pends", attempt=1, history=["Suspended"])


def test_a_cancelling_job_stays_so_whatever_else_is_asked_for(jobs):
    jobs.apply(job("leaves", pod=dict(SOON, terminationGracePeriodSeconds=60), **HOLDS))
    pod = jobs.wait_running("leaves")
    status = patch_and_wait(jobs, "leaves", "Cancelling", cancel=True)
    assert status["waiting"]["reason"] == "PodTerminating"
    jobs.patch("leaves", suspend=True, activeDeadlineSeconds=1, backoffLimit=0)
    assert wait_observed(jobs, "leaves")["phase"] == "Cancelling"
    jobs.end_pod(pod, phase="Failed", exit_code=143)
    assert_cancelled(jobs, "leaves", attempt=1, history=["Cancelled"])


def test_a_success_after_cancel_was_recorded_does_not_count(operator, jobs):
    before = operator.metric("holdfast_fenced_outcomes_total", pod_phase="Succeeded")
    jobs.apply(job("too-late", **HOLDS))
    pod = jobs.wait_running("too-late")
    patch_and_wait(jobs, "too-late", "Cancelling", cancel=True)
    jobs.end_pod(pod)
    assert_cancelled(jobs, "too-late", attempt=1, history=["Cancelled"])
    wait_for(
        "the fenced outcome to be counted",
        lambda: operator.metric("holdfast_fenced_outcomes_total", pod_phase="Succeeded") == before + 1,
        60,
    )


def test_a_job_on_a_dead_node_is_cancelled_after_its_grace_and_lost_after_seconds(doomed):
    jobs = doomed.jobs
    status = jobs.wait_phase("dead", "Cancelled", limit=GRACE + LOST_AFTER + 60)
    assert outcomes(status) == ["Cancelled"]
    wait_for("the pod to be released", lambda: not finalizers(jobs), 60)
    # It stays until the node is back or gone; by then its job is long free.
    pod = jobs.pods("dead")[0]
    assert not has_finalizer(pod)
    due = seconds_of(pod["metadata"]["deletionTimestamp"]) + LOST_AFTER
    assert due - 1 <= seconds_of(status["completionTime"]) <= due + REACTION + SLACK


# -- with the operator down. These stand last: a restart starts the dead node's window anew. -----


def test_suspend_and_resume_while_the_operator_is_down_costs_no_attempt(operator, jobs):
    jobs.apply(job("unnoticed"))
    wait_told(jobs, "unnoticed", "PodRunning")
    operator.kill()
    try:
        jobs.patch("unnoticed", suspend=True)
        jobs.patch("unnoticed", suspend=False)
    finally:
        operator.start()
    status = wait_observed(jobs, "unnoticed")
    assert (status["phase"], budgets(status)) == ("Running", (1, 0, 0))


def test_a_success_before_cancel_was_recorded_counts(operator, jobs):
    jobs.apply(job("in-time"))
    pod = jobs.wait_running("in-time")
    operator.kill()
    try:
        jobs.end_pod(pod)
        jobs.patch("in-time", cancel=True)
    finally:
        operator.start()
    status = settle(jobs, "in-time")
    assert (status["phase"], outcomes(status)) == ("Succeeded", ["Succeeded"])
