"""The action Defer: a pod that says "not yet" costs nothing, and the run asks again later."""

import time

import pytest

from holdfast import indexed, job, runs
from lives import BY_HAND, flush_audit, operator_writes
from record import ATTEMPT_LABEL as ATTEMPT

pytestmark = pytest.mark.usefixtures("operator")
NOT_YET = "75"


def policy(**fields):
    codes = {"operator": "In", "values": [int(NOT_YET)]}
    return {"rules": [{"action": "Defer", "onExitCodes": codes, **fields}]}


def test_a_job_that_is_deferred_asks_again_and_spends_nothing(jobs):
    began = time.time()
    jobs.apply(job("polls", annotations=runs(0, exit_code=f"{NOT_YET},{NOT_YET},0"), backoffLimit=0,
                   podFailurePolicy=policy(deferSeconds=5)))
    waiting = jobs.wait("polls", lambda s: s.get("waiting", {}).get("reason") == "Deferred", 60)["waiting"]
    assert "times in a row since" in waiting["message"] and waiting["deadline"], waiting
    status = jobs.wait_phase("polls", "Succeeded", limit=60)
    # A kubelet tells ends in whole seconds, and a deferral counts from that time.
    assert time.time() - began > 2 * (5 - 1)
    assert (status["failures"], status["disruptions"], status["attempt"]) == (0, 0, 3)
    deferred, succeeded = status["history"]
    assert (deferred["outcome"], deferred["count"], deferred["attempt"]) == ("Deferred", 2, 2)
    assert (deferred["exitCode"], succeeded["outcome"]) == (int(NOT_YET), "Succeeded")


def test_a_deferral_costs_two_status_writes(jobs, cluster):
    offset = cluster.audit_offset()
    # By hand: a pod that a slow kubelet lets run for a while costs a write more.
    jobs.apply(job("writes", pod=BY_HAND, podFailurePolicy=policy(deferSeconds=1)))
    for attempt in range(1, 7):
        pod = jobs.wait_pod("writes", lambda pod, attempt=attempt: pod["metadata"]["labels"][ATTEMPT] == str(attempt))
        jobs.end_pod(pod, *(["Failed", int(NOT_YET)] if attempt < 6 else []))
    jobs.wait_phase("writes", "Succeeded")
    flush_audit(cluster, offset)
    writes = operator_writes(cluster, offset, jobs.namespace)
    statuses = [write for write in writes if write.what == "durablejobs/status"]
    assert 2 * 5 <= len(statuses) <= 2 * 5 + 2, writes


def test_more_deferrals_in_a_row_than_the_limit_fail_the_job(jobs):
    jobs.apply(job("never", annotations=runs(0, exit_code=NOT_YET), podFailurePolicy=policy(deferSeconds=1, deferLimit=2)))
    status = jobs.wait_phase("never", "Failed", limit=60)
    assert jobs.conditions("never")["Failed"]["reason"] == "DeferLimitExceeded"
    assert (status["failures"], status["attempt"], status["history"][0]["count"]) == (0, 3, 3)


def test_a_deferred_run_holds_up_no_other(jobs):
    jobs.apply(indexed("some", 4, 1, runs(0, exit_code=f"{NOT_YET},0,0,0,0"), podFailurePolicy=policy(deferSeconds=2)))
    status = jobs.wait_phase("some", "Succeeded", limit=60)
    assert (status["completedIndexes"], status["attempt"]) == ("0-3", 5)
    assert [entry["outcome"] for entry in status["history"]] == ["Deferred"] + 4 * ["Succeeded"]
