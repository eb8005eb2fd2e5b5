"""Jobs that are deleted, with and without an operator there to see it, and made again."""

import pytest

from holdfast import FINALIZER, QUICK_LEASES, Jobs, job, place, runs
from lives import (
    BY_HAND,
    LONG_BACKOFF,
    SHORT_BACKOFF,
    budgets,
    finalizers,
    outcomes,
    remake_name,
    settle,
    wait_no_pods,
    wait_told,
    wait_until,
)
from localcluster import wait_for
from losses import SLACK, delete_pod, has_finalizer, new_namespace, pod_named, seconds_of

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES
MODES = ["Background", "Foreground"]
# Long enough to be seen.
SEEN_BACKOFF = {"initialSeconds": 6, "factor": 1, "maxSeconds": 6, "jitterPercent": 0}


def wait_gone(jobs, name):
    wait_for(f"job {name} to be gone", lambda: jobs.get(name) is None, 60)


@pytest.mark.parametrize("mode", MODES)
def test_a_running_job_takes_its_pod_with_it(jobs, mode):
    jobs.apply(job("runs"))
    jobs.wait_running("runs")
    jobs.delete("runs", mode)
    wait_gone(jobs, "runs")
    wait_no_pods(jobs)


@pytest.mark.parametrize("mode", MODES)
def test_a_finished_job_takes_all_its_pods_with_it(jobs, mode):
    jobs.apply(job("done", annotations=runs(0, "1,0"), retryBackoff=SHORT_BACKOFF))
    settle(jobs, "done")
    assert len(jobs.pods("done")) == 2
    jobs.delete("done", mode)
    wait_gone(jobs, "done")
    wait_no_pods(jobs)


def test_an_orphaned_pod_of_a_running_job_runs_on_without_owner_and_finalizer(jobs):
    jobs.apply(job("runs"))
    uid = jobs.wait_running("runs")["metadata"]["uid"]
    jobs.delete("runs", "Orphan")
    wait_gone(jobs, "runs")
    wait_for("the pod to be released", lambda: not finalizers(jobs), 60)
    (pod,) = jobs.pods()
    assert pod["metadata"]["uid"] == uid
    assert "deletionTimestamp" not in pod["metadata"]
    assert not pod["metadata"].get("ownerReferences")
    assert pod["status"]["phase"] == "Running"


def test_orphaned_pods_of_a_finished_job_stay(jobs):
    jobs.apply(job("done", annotations=runs(0)))
    settle(jobs, "done")
    jobs.delete("done", "Orphan")
    wait_gone(jobs, "done")
    (pod,) = jobs.pods()
    assert not pod["metadata"].get("finalizers") and not pod["metadata"].get("ownerReferences")


@pytest.mark.parametrize("mode", MODES + ["Orphan"])
def test_a_job_deleted_while_the_operator_is_down_keeps_no_pod_for_ever(operator, jobs, mode):
    jobs.apply(job("runs"))
    jobs.wait_running("runs")
    operator.kill()
    try:
        jobs.delete("runs", mode)
        wait_gone(jobs, "runs")
        assert finalizers(jobs)
    finally:
        operator.start()
    if mode == "Orphan":
        wait_for("the pod to be released", lambda: not finalizers(jobs), 60)
        assert "deletionTimestamp" not in jobs.pods()[0]["metadata"]
    else:
        wait_no_pods(jobs)


def test_suspended_and_waiting_jobs_are_deleted_without_a_trace(jobs):
    jobs.apply(job("sleeps", suspend=True))
    jobs.apply(job("backs-off", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF))
    jobs.apply(job("starts", pod=BY_HAND))
    jobs.wait_phase("sleeps", "Suspended")
    jobs.wait_phase("backs-off", "Backoff")
    jobs.wait_pod("starts", lambda pod: True)
    for name in ("sleeps", "backs-off", "starts"):
        jobs.delete(name)
    wait_for("all jobs to be gone", lambda: not jobs.list(), 60)
    wait_no_pods(jobs)


def test_a_job_that_is_being_deleted_starts_nothing_new(jobs):
    body = job("held", annotations=runs(0, 1), retryBackoff=SEEN_BACKOFF)
    body["metadata"]["finalizers"] = ["example.com/held"]
    jobs.apply(body)
    due = seconds_of(place(jobs.wait_phase("held", "Backoff"))["nextAttemptTime"])
    jobs.delete("held", "Foreground")
    wait_until(due + SLACK)
    held = jobs.get("held")
    assert held["metadata"]["deletionTimestamp"]
    attempt = held["status"]["attempt"]
    assert finalizers(jobs) == []
    jobs.api("PATCH", f"{jobs.path}/held", {"metadata": {"finalizers": None}},
             content_type="merge")  # fmt: skip
    wait_gone(jobs, "held")
    wait_no_pods(jobs)
    assert attempt == 1


def test_a_namespace_with_jobs_in_all_states_can_be_deleted(cluster):
    name = new_namespace(cluster, "doomed")
    jobs = Jobs(cluster, name)
    jobs.apply(job("runs"))
    jobs.apply(job("done", annotations=runs(0)))
    jobs.apply(job("backs-off", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF))
    jobs.apply(job("retries", annotations=runs(0, 1), retryBackoff=SHORT_BACKOFF))
    jobs.apply(job("sleeps", suspend=True))
    jobs.apply(job("starts", pod=BY_HAND))
    jobs.wait_running("runs")
    settle(jobs, "done")
    jobs.wait_phase("backs-off", "Backoff")
    jobs.wait_phase("sleeps", "Suspended")
    cluster.api("DELETE", f"/api/v1/namespaces/{name}")
    wait_for("the namespace to be gone", lambda: cluster.api("GET", f"/api/v1/namespaces/{name}")[0] == 404, 180)


# -- made again under the same name ------------------------------------------------------------


def assert_new_life(jobs, name, old):
    """The new job starts at attempt 1 and has nothing of the old one's."""
    status = settle(jobs, name)
    new = jobs.get(name)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert (status["phase"], budgets(status)) == ("Succeeded", (1, 0, 0))
    assert outcomes(status) == ["Succeeded"]
    assert place(status)["podName"] != place(old["status"])["podName"]

    def only_new():
        return {pod["metadata"]["labels"]["holdfast.dev/job-uid"] for pod in jobs.pods()} == {new["metadata"]["uid"]}

    wait_for("the old job's pods to be gone", only_new, 150)


@pytest.mark.parametrize("end", ["running", "finished"])
def test_a_job_made_again_under_its_name_starts_anew(jobs, end):
    again = job("again", annotations=runs(0))
    jobs.apply(job("again") if end == "running" else again)
    if end == "running":
        jobs.wait_running("again")
    else:
        settle(jobs, "again")
    old = jobs.get("again")
    remake_name(jobs, "again")
    jobs.apply(again)
    assert_new_life(jobs, "again", old)


@pytest.mark.parametrize("end", ["running", "finished", "unread"])
def test_a_job_made_again_while_the_operator_is_down_starts_anew(operator, jobs, end):
    again = job("again", annotations=runs(0))
    jobs.apply(again if end == "finished" else job("again"))
    if end == "finished":
        settle(jobs, "again")
    else:
        pod = jobs.wait_running("again")
    old = jobs.get("again")
    operator.kill()
    try:
        if end == "unread":
            jobs.end_pod(pod, phase="Failed", exit_code=1)
        remake_name(jobs, "again")
        jobs.apply(again)
    finally:
        operator.start()
    assert_new_life(jobs, "again", old)


def test_an_orphaned_pod_is_not_adopted_by_a_new_job_of_the_name(operator, jobs):
    jobs.apply(job("again"))
    orphan = jobs.wait_running("again")
    old = jobs.get("again")
    operator.kill()
    try:
        jobs.delete("again", "Orphan")
        wait_gone(jobs, "again")
        jobs.apply(job("again", annotations=runs(0)))
    finally:
        operator.start()
    status = settle(jobs, "again")
    assert (status["phase"], budgets(status)) == ("Succeeded", (1, 0, 0))
    assert place(status)["podName"] != place(old["status"])["podName"]
    pod = pod_named(jobs, orphan["metadata"]["name"])
    assert pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    assert not has_finalizer(pod)


# -- a pod that was deleted before its end was read ----------------------------------------------


@pytest.mark.parametrize("phase,exit_code", [("Succeeded", 0), ("Failed", 9)])
def test_the_end_of_a_pod_deleted_while_the_operator_is_down_is_still_read(operator, jobs, phase, exit_code):
    jobs.apply(job("read", backoffLimit=0))
    pod = jobs.wait_running("read")
    operator.kill()
    try:
        jobs.end_pod(pod, phase=phase, exit_code=exit_code)
        delete_pod(jobs, pod)
        held = pod_named(jobs, pod["metadata"]["name"])
        assert held["metadata"]["deletionTimestamp"]
        assert held["metadata"]["finalizers"] == [FINALIZER]
    finally:
        operator.start()
    status = jobs.wait_phase("read", "Succeeded", "Failed")
    assert (status["phase"], status["attempt"], status["disruptions"]) == (phase, 1, 0)
    assert outcomes(status) == [phase]
    assert status["history"][0]["exitCode"] == exit_code
    wait_no_pods(jobs)
