"""kubectl holdfast on jobs that run: waiting for their end, steering and retrying them."""

import re

import pytest
from holdfast import indexed, job, runs
from localcluster import wait_for
from plugin import Plugin

LIMIT = 60
pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture()
def plugin(cluster, namespace):
    return Plugin(cluster).within(namespace)


def test_wait_ends_with_the_outcome_as_its_exit_code(plugin):
    good = plugin("submit", "-f", "-", "--wait", input=job("good", annotations=runs(0)))
    assert good.code == 0, good.err
    assert good.out == "durablejob.holdfast.dev/good created\n"
    assert good.err.splitlines()[-1].startswith("durablejob.holdfast.dev/good: it is Succeeded")
    bad = plugin("submit", "-f", "-", "--wait", input=job("bad", annotations=runs(0, 3), backoffLimit=0))
    assert bad.code == 1, bad.err
    assert "it is Failed: BackoffLimitExceeded" in bad.err.splitlines()[-1]


def test_wait_sees_the_end_of_a_job_that_is_deleted_at_once(plugin, jobs):
    quick = job("quick", annotations=runs(0), ttlSecondsAfterFinished=0, suspend=True)
    process = plugin.start("submit", "-f", "-", "--wait", input=quick)
    while "it is Suspended" not in process.stderr.readline():  # from then on it sees all
        assert process.poll() is None
    jobs.patch("quick", suspend=False)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err


def test_wait_that_is_too_short_says_so_and_the_job_goes_on(plugin, jobs):
    late = plugin("submit", "-f", "-", "--wait", "--timeout", "2s", input=job("long", annotations=runs(600)))
    assert late.code == 2
    assert "has not ended after 2s, it is " in late.err.splitlines()[-1]
    assert jobs.status("long").get("phase") not in ("Failed", "Cancelled")


def test_wait_for_a_job_that_somebody_deletes_ends(plugin, jobs):
    process = plugin.start("submit", "-f", "-", "--key", "deleted", "--wait", input=job("x", annotations=runs(600)))
    name = wait_for("the job", lambda: next((one["metadata"]["name"] for one in jobs.list()), None), LIMIT)
    jobs.wait_running(name)
    assert "it is" in process.stderr.readline()  # before that it has not seen the job
    jobs.delete(name)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 2
    assert "somebody has deleted" in err.splitlines()[-1]


def test_suspend_resume_and_cancel(plugin, jobs):
    jobs.apply(job("steered", annotations=runs(600)))
    jobs.wait_running("steered")
    assert plugin("suspend", "steered").out == "durablejob.holdfast.dev/steered is being suspended\n"
    jobs.wait_phase("steered", "Suspended")
    again = plugin("suspend", "dj/steered")
    assert (again.code, again.out) == (0, "durablejob.holdfast.dev/steered is suspended already\n")
    assert plugin("resume", "steered").out == "durablejob.holdfast.dev/steered is resumed\n"
    jobs.wait_running("steered")
    cancelled = plugin("cancel", "steered", "--wait")
    assert cancelled.code == 0, cancelled.err
    assert jobs.status("steered")["phase"] == "Cancelled"
    late = plugin("suspend", "steered")
    assert late.code == 2 and "has ended, it is Cancelled" in late.line
    assert late.line.endswith(f"; to run it again: kubectl holdfast retry steered -n {jobs.namespace}")


def test_cancelled_meanwhile_is_exit_code_1_for_who_waits(plugin, jobs):
    process = plugin.start("submit", "-f", "-", "--wait", input=job("victim", annotations=runs(600)))
    wait_for("the job", lambda: jobs.get("victim"), LIMIT)
    jobs.wait_running("victim")
    assert plugin("cancel", "victim").code == 0
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 1, err
    assert "it is Cancelled" in err.splitlines()[-1]


def test_a_failed_job_is_retried_as_a_new_one(plugin, jobs):
    jobs.apply(job("flaky", annotations=runs(0, "1"), backoffLimit=0))
    jobs.wait_phase("flaky", "Failed")
    source = jobs.get("flaky")
    retried = plugin("retry", "flaky")
    name = re.fullmatch(r"durablejob.holdfast.dev/(flaky-retry-1-\w{5}) created, a retry of flaky\n", retried.out)[1]
    assert retried.code == 0
    made = jobs.get(name)
    assert made["metadata"]["annotations"] == {"holdfast.dev/retry-of": "flaky",
                                               "holdfast.dev/retry-of-uid": source["metadata"]["uid"]}
    assert made["spec"]["template"] == source["spec"]["template"]
    jobs.wait_phase(name, "Failed")
    again = plugin("retry", "flaky")
    assert again.code == 2 and f"kubectl holdfast retry {name}" in again.line
    assert re.fullmatch(r"durablejob.holdfast.dev/flaky-retry-2-\w{5}\n", plugin("retry", name, "-o", "name").out)


def test_a_job_that_is_made_again_has_a_retry_of_its_own(plugin, jobs):
    names = []
    for _ in range(2):
        jobs.apply(job("again", annotations=runs(0, "1"), backoffLimit=0))
        jobs.wait_phase("again", "Failed")
        names.append(plugin("retry", "again", "-o", "name").out)
        jobs.delete("again")
        wait_for("the job to be gone", lambda: not jobs.get("again"), LIMIT)
    assert names[0] != names[1]


def test_a_job_that_has_not_ended_is_not_retried(plugin, jobs):
    jobs.apply(job("busy", annotations=runs(600)))
    early = plugin("retry", "busy")
    assert early.code == 2 and "has not ended" in early.line and "kubectl holdfast cancel busy" in early.line


def test_retry_of_the_failed_indexes_runs_those_alone(plugin, jobs):
    bad = {"holdfast-test/run-for": "0s", "holdfast-test/exit-code": "1"}
    jobs.apply(indexed("sweep", 3, 3, annotations=bad, backoffLimitPerIndex=0, backoffLimit=100))
    status = jobs.wait_phase("sweep", "Failed")
    assert status["failedIndexes"] == "0-2"
    result = plugin("retry", "sweep", "--failed-indexes", "--wait")
    assert result.code == 1, result.err
    made = jobs.get(re.search(r"/(\S+) created", result.out)[1])
    assert made["spec"]["indexes"] == "0-2"
    assert made["status"]["failedIndexes"] == "0-2"


def test_retry_of_failed_indexes_is_refused_where_none_failed(plugin, jobs):
    jobs.apply(indexed("fine", 2, 2, annotations=runs(0)))
    jobs.wait_phase("fine", "Succeeded")
    result = plugin("retry", "fine", "--failed-indexes")
    assert result.code == 2 and "no index of durablejob.holdfast.dev/fine failed" in result.line


def test_a_wrong_flag_gets_one_line(plugin):
    for arguments, line in [
            (["cancel", "x", "--force"], "there is no flag --force; kubectl holdfast cancel --help shows what it takes"),
            (["cancel"], "something is missing: kubectl holdfast cancel JOB"),
            (["logs", "x", "--attempt", "two"], "--attempt takes a number from 0, not 'two'")]:
        result = plugin(*arguments)
        assert (result.code, result.line) == (2, line)
