"""Times that end an attempt, a job, or what is left of a job."""

import time

import pytest

from holdfast import QUICK_LEASES, indexed, job, place, runs
from lives import (
    BY_HAND,
    LONG_BACKOFF,
    SHORT_BACKOFF,
    budgets,
    finalizers,
    flush_audit,
    operator_writes,
    outcomes,
    settle,
    wait_events,
    wait_told,
    wait_until,
)
from localcluster import wait_for
from losses import REACTION, SLACK, seconds_of

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES
ROUNDING = 1  # times in status are whole seconds


def lasted(status):
    return seconds_of(status["completionTime"]) - seconds_of(status["startTime"])


def assert_out_of_time(jobs, name, seconds, limit=60):
    """The job ends as DeadlineExceeded so many seconds after its start; returns its status."""
    status = jobs.wait_phase(name, "Failed", limit=seconds + limit)
    assert seconds - ROUNDING <= lasted(status) <= seconds + REACTION + SLACK + ROUNDING
    failed = jobs.conditions(name)["Failed"]
    assert (failed["status"], failed["reason"]) == ("True", "DeadlineExceeded")
    assert "activeDeadlineSeconds" in failed["message"]
    return status


def assert_stopped(jobs, name):
    """No pod of the job runs on, and none carries our finalizer."""

    def stopped():
        return not finalizers(jobs, name) and all(
            pod["status"]["phase"] in ("Succeeded", "Failed") for pod in jobs.pods(name)
        )

    wait_for(f"the pods of {name} to be stopped", stopped, 60)


def test_active_deadline_ends_a_running_job_and_stops_its_pod(jobs):
    jobs.apply(job("runs-on", activeDeadlineSeconds=3))
    status = assert_out_of_time(jobs, "runs-on", 3)
    assert outcomes(status) == ["Cancelled"] and budgets(status) == (1, 0, 0)
    assert_stopped(jobs, "runs-on")
    wait_events(jobs, "runs-on", "DeadlineExceeded")


def test_active_deadline_ends_a_job_whose_pod_has_not_started(jobs):
    jobs.apply(job("starts-never", pod=BY_HAND, activeDeadlineSeconds=2))
    status = assert_out_of_time(jobs, "starts-never", 2)
    assert outcomes(status) == ["Cancelled"] and budgets(status) == (1, 0, 0)
    assert_stopped(jobs, "starts-never")


def test_active_deadline_ends_a_job_in_backoff(jobs):
    jobs.apply(job("backs-off", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF, activeDeadlineSeconds=10))
    status = jobs.wait_phase("backs-off", "Backoff")
    assert seconds_of(status["waiting"]["deadline"]) - seconds_of(status["startTime"]) == 10
    status = assert_out_of_time(jobs, "backs-off", 10)
    assert budgets(status) == (1, 1, 0)
    wait_events(jobs, "backs-off", "AttemptFailed", "DeadlineExceeded")


@pytest.mark.parametrize("count", [1, 3])
def test_a_success_counts_however_late_it_is_read(operator, jobs, count):
    name = f"late-{count}"
    jobs.apply(indexed(name, count, count, pod=BY_HAND, activeDeadlineSeconds=8))
    pods = wait_for("the pods", lambda: len(jobs.pods(name)) == count and jobs.pods(name), 60)
    start = seconds_of(jobs.status(name)["startTime"])
    operator.kill()
    try:
        for pod in pods:
            jobs.end_pod(pod)
        wait_until(start + 10)
    finally:
        operator.start()
    status = jobs.wait_phase(name, "Succeeded")
    assert status["succeeded"] == count and "FailureTarget" not in jobs.conditions(name)


def test_a_pod_without_labels_is_told_to_go_before_its_job_is_over(jobs):
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [9]}}
    jobs.apply(indexed("hidden", 3, 3, pod=BY_HAND, podFailurePolicy={"rules": [rule]}))
    pods = wait_for("the pods", lambda: len(jobs.pods("hidden")) == 3 and jobs.pods("hidden"), 60)
    hidden = pods[0]["metadata"]
    none = {"metadata": {"labels": {key: None for key in hidden["labels"]}}}
    jobs.api("PATCH", f"{jobs.pods_path}/{hidden['name']}", none, content_type="merge")
    jobs.end_pod(pods[2], "Failed", 9)
    jobs.wait_phase("hidden", "Failed")
    left = [pod["metadata"] for pod in jobs.pods("hidden") if pod["metadata"]["name"] == hidden["name"]]
    assert all("deletionTimestamp" in meta for meta in left)


def test_suspended_time_does_not_count_towards_the_active_deadline(jobs):
    limit = 12  # on a busy machine the suspension takes some of it
    jobs.apply(job("pauses", activeDeadlineSeconds=limit))
    start = seconds_of(wait_told(jobs, "pauses", "PodRunning")["startTime"])
    jobs.patch("pauses", suspend=True)
    jobs.wait_phase("pauses", "Suspended")
    # Past the deadline that it would have had.
    wait_until(start + limit + 3 + SLACK, lambda: jobs.status("pauses")["phase"] == "Suspended")
    jobs.patch("pauses", suspend=False)
    status = jobs.wait_phase("pauses", "Running")
    suspended = status["suspendedSeconds"]
    assert suspended >= 5
    status = jobs.wait_phase("pauses", "Failed")
    assert status["suspendedSeconds"] == suspended
    active = lasted(status) - suspended
    assert limit - ROUNDING <= active <= limit + REACTION + SLACK + ROUNDING


def test_an_active_deadline_that_is_lowered_counts_at_once(jobs):
    jobs.apply(job("lowered", activeDeadlineSeconds=3600))
    status = wait_told(jobs, "lowered", "PodRunning")
    wait_until(seconds_of(status["startTime"]) + 2)
    lowered = time.time()
    jobs.patch("lowered", activeDeadlineSeconds=1)
    status = jobs.wait_phase("lowered", "Failed")
    assert seconds_of(status["completionTime"]) - lowered <= REACTION + SLACK
    assert jobs.conditions("lowered")["Failed"]["reason"] == "DeadlineExceeded"


def test_an_active_deadline_that_is_raised_gives_more_time(jobs):
    jobs.apply(job("raised", activeDeadlineSeconds=12, annotations=runs(15)))
    wait_told(jobs, "raised", "PodRunning")
    jobs.patch("raised", activeDeadlineSeconds=600)
    assert settle(jobs, "raised")["phase"] == "Succeeded"


def test_a_job_that_ends_before_its_deadlines_is_untouched_by_them(jobs):
    jobs.apply(job("in-time", annotations=runs(0), activeDeadlineSeconds=60, attemptDeadlineSeconds=60))
    assert settle(jobs, "in-time")["phase"] == "Succeeded"


def test_each_attempt_may_run_for_the_attempt_deadline_and_spends_a_failure(jobs):
    jobs.apply(job("too-long", attemptDeadlineSeconds=2, backoffLimit=1, retryBackoff=SHORT_BACKOFF))
    status = jobs.wait_phase("too-long", "Failed")
    assert budgets(status) == (2, 2, 0)
    assert outcomes(status) == ["DeadlineExceeded", "DeadlineExceeded"]
    assert {entry["reason"] for entry in status["history"]} == {"AttemptDeadlineExceeded"}
    for entry in status["history"]:
        ran = seconds_of(entry["endTime"]) - seconds_of(entry["startTime"])
        assert 2 - ROUNDING <= ran <= 2 + REACTION + SLACK + ROUNDING
    assert jobs.conditions("too-long")["Failed"]["reason"] == "BackoffLimitExceeded"
    assert_stopped(jobs, "too-long")
    wait_events(jobs, "too-long", *["AttemptDeadlineExceeded"] * 2, "BackoffLimitExceeded")


def test_an_attempt_that_was_too_long_is_followed_by_one_that_counts(jobs):
    jobs.apply(job("second", attemptDeadlineSeconds=8, retryBackoff=SHORT_BACKOFF))
    jobs.wait("second", lambda s: s.get("attempt") == 2, 60)
    jobs.patch("second", attemptDeadlineSeconds=600)
    jobs.end_pod(jobs.wait_running("second"))
    status = settle(jobs, "second")
    assert (status["phase"], budgets(status)) == ("Succeeded", (2, 1, 0))
    assert outcomes(status) == ["DeadlineExceeded", "Succeeded"]


def test_the_time_before_the_start_is_no_part_of_the_attempt_deadline(jobs):
    jobs.apply(job("late", annotations={"holdfast-test/start-after": "4s"}, attemptDeadlineSeconds=2))
    status = jobs.wait("late", lambda s: s.get("failures") == 1, 60)
    entry = status["history"][0]
    assert seconds_of(entry["startTime"]) - seconds_of(status["startTime"]) >= 4 - ROUNDING
    ran = seconds_of(entry["endTime"]) - seconds_of(entry["startTime"])
    assert 2 - ROUNDING <= ran <= 2 + REACTION + SLACK + ROUNDING


def deletion_of(cluster, offset, jobs, name):
    """The operator's delete of the job itself. A pod's end that shows before the job's may have it
    sent again; that one finds nothing."""

    def found():
        return [
            write
            for write in operator_writes(cluster, offset, jobs.namespace)
            if (write.verb, write.what, write.name) == ("delete", "durablejobs", name)
            and write.code != 404
        ]

    wait_for(f"the deletion of job {name}", found, 60)
    flush_audit(cluster, offset)
    writes = found()
    assert len(writes) == 1
    return writes[0]


@pytest.mark.parametrize("exit_code", [0, 1], ids=["succeeded", "failed"])
def test_a_finished_job_and_its_pods_are_deleted_when_their_time_is_over(cluster, jobs, exit_code):
    offset = cluster.audit_offset()
    time_to_live = 8  # for its end to be seen
    made = jobs.apply(
        job("expires", annotations=runs(0, exit_code), backoffLimit=0, ttlSecondsAfterFinished=time_to_live)
    )
    status = jobs.wait_phase("expires", "Succeeded", "Failed")
    write = deletion_of(cluster, offset, jobs, "expires")
    due = seconds_of(status["completionTime"]) + time_to_live
    assert due <= write.at <= due + REACTION + SLACK + ROUNDING
    assert write.body["preconditions"]["uid"] == made["metadata"]["uid"]
    assert write.body["preconditions"]["resourceVersion"]
    wait_for("job and pods to be gone", lambda: not jobs.get("expires") and not jobs.pods(), 60)


def test_a_time_to_live_of_zero_deletes_the_job_as_soon_as_it_has_ended(jobs):
    jobs.apply(job("at-once", annotations=runs(0), ttlSecondsAfterFinished=0))
    wait_for("job and pods to be gone", lambda: not jobs.list() and not jobs.pods(), 60)


def test_a_time_to_live_that_is_set_later_counts_from_the_end(operator, jobs):
    jobs.apply(job("stays", annotations=runs(0)))
    status = settle(jobs, "stays")
    wait_until(seconds_of(status["completionTime"]) + 2, lambda: jobs.get("stays") is not None)
    jobs.patch("stays", ttlSecondsAfterFinished=1)
    operator.kill()
    operator.start()  # and walks over the finished jobs, as else each ten minutes
    wait_for("the job to be gone", lambda: jobs.get("stays") is None, 60)


def test_a_job_whose_time_is_over_while_the_operator_is_down_is_deleted_when_it_is_back(operator, jobs):
    jobs.apply(job("expires", annotations=runs(0), ttlSecondsAfterFinished=8))
    status = jobs.wait_phase("expires", "Succeeded")
    operator.kill()
    try:
        wait_until(seconds_of(status["completionTime"]) + 8, lambda: jobs.get("expires") is not None)
    finally:
        operator.start()
    wait_for("job and pods to be gone", lambda: not jobs.list() and not jobs.pods(), 60)


def test_deadlines_that_pass_while_the_operator_is_down_count_when_it_is_back(operator, jobs):
    jobs.apply(job("active", activeDeadlineSeconds=10))
    jobs.apply(job("attempt", attemptDeadlineSeconds=10, backoffLimit=0))
    for name in ("active", "attempt"):
        jobs.wait_running(name)
    operator.kill()
    try:
        # A kubelet's start of the pod is later than the attempt's record.
        wait_until(seconds_of(place(jobs.status("attempt"))["startTime"]) + 13)
    finally:
        operator.start()
    assert jobs.wait_phase("active", "Failed")["history"][0]["reason"] == "RunsStopped"
    assert jobs.conditions("active")["Failed"]["reason"] == "DeadlineExceeded"
    assert jobs.wait_phase("attempt", "Failed")["history"][0]["reason"] == ("AttemptDeadlineExceeded")
