"""Attempts that fail: back-off, budget and what is on record of them."""

import time

import pytest

from holdfast import QUICK_LEASES, job, place, runs
from lives import (
    BY_HAND,
    LONG_BACKOFF,
    SHORT_BACKOFF,
    budgets,
    flush_audit,
    outcomes,
    recorded,
    remake_name,
    settle,
    wait_events,
    wait_told,
)
from losses import REACTION, SLACK, created_at, seconds_of

pytestmark = pytest.mark.usefixtures("operator")

OPERATOR_LEASES = QUICK_LEASES
FAILS = runs(0, exit_code=3)


def backoffs(cluster, offset, jobs, name):
    """[(when recorded, nextAttemptTime)] of each time the job went into Backoff."""
    flush_audit(cluster, offset)
    found = []
    for at, status in recorded(cluster, offset, jobs, name):
        if status["phase"] == "Backoff" and (not found or found[-1][2] != status["attempt"]):
            found.append((at, seconds_of(place(status)["nextAttemptTime"]), status["attempt"]))
    return [(at, due) for at, due, _ in found]


def test_a_job_that_fails_twice_and_succeeds_is_succeeded(jobs):
    jobs.apply(job("third-time", annotations=runs(0, "1,7,0"), retryBackoff=SHORT_BACKOFF))
    status = settle(jobs, "third-time")
    assert status["phase"] == "Succeeded"
    assert budgets(status) == (3, 2, 0)
    assert outcomes(status) == ["Failed", "Failed", "Succeeded"]
    assert [entry["exitCode"] for entry in status["history"]] == [1, 7, 0]
    assert [entry["attempt"] for entry in status["history"]] == [1, 2, 3]
    assert all(entry["nodeName"] and entry["podName"] for entry in status["history"])
    assert len({pod["metadata"]["name"] for pod in jobs.pods("third-time")}) == 3
    wait_events(jobs, "third-time", "AttemptFailed", "AttemptFailed", "Completed")
    assert jobs.conditions("third-time")["Complete"]["status"] == "True"
    assert "Failed" not in jobs.conditions("third-time")


def test_after_backoff_limit_plus_one_failures_the_job_is_failed(jobs):
    jobs.apply(job("spent", annotations=FAILS, backoffLimit=2, retryBackoff=SHORT_BACKOFF))
    status = settle(jobs, "spent")
    assert status["phase"] == "Failed"
    assert budgets(status) == (3, 3, 0)
    assert outcomes(status) == ["Failed"] * 3
    assert [entry["exitCode"] for entry in status["history"]] == [3, 3, 3]
    assert {entry["reason"] for entry in status["history"]} == {"Error"}
    assert status["completionTime"] >= status["startTime"]
    assert "nextAttemptTime" not in place(status) and "waiting" not in status
    failed = jobs.conditions("spent")["Failed"]
    assert (failed["status"], failed["reason"]) == ("True", "BackoffLimitExceeded")
    assert "3 attempts failed, backoffLimit forgives 2" in failed["message"]
    assert "exit code 3" in failed["message"]
    assert "Complete" not in jobs.conditions("spent")
    wait_events(jobs, "spent", *["AttemptFailed"] * 3, "BackoffLimitExceeded")


def test_why_an_attempt_failed_is_known_after_its_pod_is_gone(jobs):
    jobs.apply(job("evidence", pod=BY_HAND, backoffLimit=1, retryBackoff=SHORT_BACKOFF))
    pod = jobs.wait_pod("evidence", lambda pod: True)
    assert pod["spec"]["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
    said = "".join(f"line {number}\n" for number in range(400)) + "\x1b[31mno input\x1b[0m\n"
    end_with_message(jobs, pod, said[-2048:])
    jobs.wait("evidence", lambda s: s["attempt"] == 2, 60)
    wait_events(jobs, "evidence", "AttemptFailed")
    jobs.api("DELETE", f"{jobs.pods_path}/{pod['metadata']['name']}")
    end_with_message(jobs, jobs.wait_pod("evidence", lambda pod: not pod["status"].get("containerStatuses")), "")
    status = settle(jobs, "evidence")
    first, second = [entry["message"] for entry in status["history"]]
    assert first.startswith("container main ended with exit code 3\nline ")
    assert first.endswith("\nline 399\n [31mno input [0m") and len(first) > 1900, first
    assert second == "container main ended with exit code 3"
    [event] = [one for one in jobs.events("evidence") if one["action"] == "Retry"]
    words, _, link = event["note"].partition(" More: ")
    assert words.endswith("line 399  [31mno input [0m") and len(event["note"]) < 700
    assert link.endswith("/reasons.html#attemptfailed")


def end_with_message(jobs, pod, message):
    state = {"terminated": {"exitCode": 3, "reason": "Error", "message": message}}
    jobs.end_pod(pod, phase="Failed", exit_code=3, containerStatuses=[{
        "name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}])


def test_a_backoff_limit_of_zero_forgives_nothing(jobs):
    jobs.apply(job("once", annotations=FAILS, backoffLimit=0))
    status = settle(jobs, "once")
    assert (status["phase"], budgets(status)) == ("Failed", (1, 1, 0))


def test_kubectl_wait_sees_completion_and_failure(cluster, jobs):
    jobs.apply(job("good", annotations=runs(1)))
    jobs.apply(job("bad", annotations=FAILS, backoffLimit=0))

    def wait(condition, name, limit="60s"):
        return cluster.kubectl(
            "wait", "-n", jobs.namespace, f"--for=condition={condition}", f"--timeout={limit}",
            f"dj/{name}", check=False,
        )  # fmt: skip

    assert wait("Complete", "good").returncode == 0
    assert wait("Failed", "bad").returncode == 0
    assert wait("Complete", "bad", "1s").returncode != 0


def test_the_next_attempt_starts_at_the_time_that_is_on_record(cluster, jobs):
    offset = cluster.audit_offset()
    backoff = {"initialSeconds": 8, "factor": 1, "maxSeconds": 8, "jitterPercent": 0}
    jobs.apply(job("waits", annotations=runs(0, "1,0"), retryBackoff=backoff))
    status = wait_told(jobs, "waits", "RetryBackoff")
    assert (status["phase"], budgets(status)) == ("Backoff", (1, 1, 0))
    assert status["waiting"]["nextAction"] == "attempt 2 starts"
    assert status["waiting"]["deadline"][:19] == place(status)["nextAttemptTime"][:19]
    due = seconds_of(place(status)["nextAttemptTime"])
    status = settle(jobs, "waits")
    assert budgets(status) == (2, 1, 0)
    second = created_at(cluster, offset, place(status)["podName"])
    assert due <= second <= due + REACTION + SLACK


def test_backoff_grows_by_its_factor_up_to_its_longest(cluster, jobs):
    offset = cluster.audit_offset()
    backoff = {"initialSeconds": 1, "factor": 2, "maxSeconds": 3, "jitterPercent": 0}
    jobs.apply(job("grows", annotations=FAILS, backoffLimit=4, retryBackoff=backoff))
    settle(jobs, "grows")
    delays = [due - at for at, due in backoffs(cluster, offset, jobs, "grows")]
    # From the decision to the answer a moment passes, and on a busy machine more.
    assert len(delays) == 4
    for delay, wanted in zip(delays, [1, 2, 3, 3]):
        assert wanted - 1.5 < delay <= wanted + 0.1, delays


def test_jitter_only_shortens_the_backoff_and_never_below_its_share(cluster, jobs):
    offset = cluster.audit_offset()
    backoff = {"initialSeconds": 1000, "factor": 1, "maxSeconds": 1000, "jitterPercent": 50}
    names = [f"jitters-{number}" for number in range(6)]
    for name in names:
        jobs.apply(job(name, annotations=FAILS, retryBackoff=backoff))
    for name in names:
        jobs.wait_phase(name, "Backoff")
    delays = [due - at for name in names for at, due in backoffs(cluster, offset, jobs, name)]
    assert all(499 < delay <= 1000.1 for delay in delays), delays
    assert len({round(delay) for delay in delays}) > 1


def test_history_keeps_the_last_ten_attempts(jobs):
    jobs.apply(job("long", annotations=FAILS, backoffLimit=11, retryBackoff=SHORT_BACKOFF))
    status = settle(jobs, "long", limit=240)
    assert budgets(status) == (12, 12, 0)
    assert [entry["attempt"] for entry in status["history"]] == list(range(3, 13))


def test_a_backoff_limit_lowered_in_backoff_ends_the_job_at_once(jobs):
    jobs.apply(job("lowered", annotations=FAILS, retryBackoff=LONG_BACKOFF))
    jobs.wait_phase("lowered", "Backoff")
    jobs.patch("lowered", backoffLimit=0)
    status = jobs.wait_phase("lowered", "Failed")
    assert budgets(status) == (1, 1, 0)
    assert jobs.conditions("lowered")["Failed"]["reason"] == "BackoffLimitExceeded"
    assert len(jobs.pods("lowered")) == 1


def test_a_backoff_limit_raised_in_time_gives_more_attempts(jobs):
    jobs.apply(job("raised", pod=BY_HAND, backoffLimit=0, retryBackoff=SHORT_BACKOFF))
    pod = jobs.wait_pod("raised", lambda pod: True)
    jobs.patch("raised", backoffLimit=1)
    jobs.end_pod(pod, phase="Failed", exit_code=1)
    status = jobs.wait("raised", lambda s: s.get("attempt") == 2, 60)
    assert budgets(status) == (2, 1, 0)


def test_an_operator_that_was_killed_in_backoff_keeps_the_time_on_record(cluster, operator, jobs):
    offset = cluster.audit_offset()
    backoff = {"initialSeconds": 8, "maxSeconds": 8, "jitterPercent": 0}
    jobs.apply(job("resumes", annotations=runs(0, "1,0"), retryBackoff=backoff))
    due = seconds_of(place(jobs.wait_phase("resumes", "Backoff"))["nextAttemptTime"])
    operator.kill()
    operator.start()
    at_work = time.time()  # a busy machine takes longer than the back-off to get here
    status = settle(jobs, "resumes")
    assert budgets(status) == (2, 1, 0)
    created = created_at(cluster, offset, place(status)["podName"])
    assert due <= created <= max(due, at_work) + REACTION + SLACK


def test_the_container_that_ended_badly_tells_reason_and_exit_code(jobs):
    containers = [{"name": "main", "image": "x"}, {"name": "b", "image": "x"}]
    jobs.apply(job("killed", pod=dict(BY_HAND, containers=containers), backoffLimit=0))
    pod = jobs.wait_pod("killed", lambda pod: True)
    began = pod["metadata"]["creationTimestamp"]

    def ended(name, code, reason):
        terminated = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": began}
        return {
            "name": name, "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
            "state": {"terminated": terminated},
        }  # fmt: skip

    statuses = [ended("main", 0, "Completed"), ended("b", 137, "OOMKilled")]
    jobs.end_pod(pod, phase="Failed", containerStatuses=statuses)
    entry = settle(jobs, "killed")["history"][0]
    assert (entry["outcome"], entry["reason"], entry["exitCode"]) == ("Failed", "OOMKilled", 137)
    message = jobs.conditions("killed")["Failed"]["message"]
    assert "container b" in message and "137" in message


def test_a_failed_job_is_run_again_by_a_new_job_of_its_name(jobs):
    jobs.apply(job("again", annotations=FAILS, backoffLimit=0))
    settle(jobs, "again")
    remake_name(jobs, "again")
    jobs.apply(job("again", annotations=runs(0)))
    status = settle(jobs, "again")
    assert (status["phase"], budgets(status)) == ("Succeeded", (1, 0, 0))


def test_an_edit_that_puts_the_next_attempt_off_for_ever_puts_it_off_by_the_longest_back_off(cluster, jobs):
    backoff = {"initialSeconds": 10, "factor": 1, "maxSeconds": 10, "jitterPercent": 0}
    jobs.apply(job("put-off", annotations=runs(0, "1,0"), retryBackoff=backoff))
    path = f"{jobs.path}/put-off/status"
    for year, taken in ((2099, 200), (2200, 422), (9999, 422)):
        jobs.wait_phase("put-off", "Backoff")
        [run] = jobs.status("put-off")["runs"]
        status = {"runs": [{**run, "nextAttemptTime": f"{year}-01-01T00:00:00Z"}]}
        code, answer = cluster.api("PATCH", path, {"status": status}, content_type="merge")
        assert code == taken, answer
    jobs.wait_phase("put-off", "Succeeded")


def test_the_template_of_a_suspended_job_changes_and_its_next_attempt_runs_the_new_one(cluster, jobs):
    jobs.apply(job("mended", annotations=runs(600)))
    jobs.wait_running("mended")
    jobs.patch("mended", suspend=True)
    jobs.wait_phase("mended", "Suspended")
    template = job("mended", command=["other"], annotations=runs(0))["spec"]["template"]
    jobs.patch("mended", template=template)
    jobs.patch("mended", suspend=False)
    jobs.wait_phase("mended", "Succeeded")
    assert jobs.pod("mended")["spec"]["containers"][0]["command"] == ["other"]
    assert outcomes(jobs.status("mended")) == ["Suspended", "Succeeded"]
