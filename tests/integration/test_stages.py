"""Stages on a real API server: what follows what, what is told, and what it costs."""

import json
import time

import pytest

from holdfast import QUICK_LEASES, job, runs
from lives import BY_HAND, flush_audit, operator_writes
from localcluster import wait_for

pytestmark = pytest.mark.usefixtures("operator")
OPERATOR_LEASES = QUICK_LEASES
SOON = {"initialSeconds": 1, "factor": 1, "maxSeconds": 1, "jitterPercent": 0}
STAGE = "holdfast.dev/stage"
NOT_YET = {"rules": [{"action": "Defer", "deferSeconds": 1, "onExitCodes": {"operator": "In", "values": [75]}}]}


def stage(name, annotations=None, **fields):
    """A stage whose pod runs as its annotations say."""
    whole = job("x", annotations=annotations or runs(0), retryBackoff=SOON)["spec"]
    return {"name": name, **whole, **fields}


def phases(status):
    return {one["name"]: one["phase"] for one in status["stages"]}


def pod_of(jobs, name, stage_name):
    [pod] = [pod for pod in jobs.pods(name) if pod["metadata"]["labels"][STAGE] == stage_name]
    return pod


def variables(pod):
    return {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}


def test_stages_run_one_after_the_other_and_pass_their_results_on(jobs):
    says = runs(0) | {"holdfast-test/message": "proof-42 costs $(HOLDFAST_JOB_NAME)"}
    jobs.apply(job("chain", annotations=says, stages=[stage("second-one"), stage("third")]))
    status = jobs.wait_phase("chain", "Succeeded", limit=60)
    assert phases(status) == {"main": "Succeeded", "second-one": "Succeeded", "third": "Succeeded"}
    assert (status["stage"], status["attempt"]) == ("third", 3)
    assert status["stages"][0]["result"] == "proof-42 costs $(HOLDFAST_JOB_NAME)"
    assert [(entry["stage"], entry["attempt"]) for entry in status["history"]] == [
        ("main", 1), ("second-one", 2), ("third", 3)]
    given = variables(pod_of(jobs, "chain", "third"))
    assert given["HOLDFAST_STAGE"] == "third"
    # A kubelet makes one dollar of two, and leaves the rest alone.
    assert given["HOLDFAST_RESULT_MAIN"] == "proof-42 costs $$(HOLDFAST_JOB_NAME)"
    assert "HOLDFAST_RESULT_SECOND_ONE" not in given
    conditions = jobs.conditions("chain")
    assert conditions["ResultReady"]["status"] == conditions["Complete"]["status"] == "True"
    assert "Partial" not in conditions


def test_a_result_is_ready_before_it_is_refined_and_stays(jobs, cluster):
    jobs.apply(job("video", annotations=runs(0), stages=[
        stage("refine", runs(600), onFailure="Continue", backoffLimit=0)]))
    cluster.kubectl("-n", jobs.namespace, "wait", "--for=condition=ResultReady", "dj/video", "--timeout=60s")
    assert phases(jobs.status("video"))["refine"] in ("Pending", "Running")
    assert jobs.status("video")["phase"] != "Succeeded"
    jobs.wait("video", lambda s: phases(s)["refine"] == "Running", 60)
    jobs.end_pod(jobs.wait_running("video"), "Failed", 1)
    status = jobs.wait_phase("video", "Succeeded", "Failed", limit=60)
    assert (status["phase"], phases(status)["refine"]) == ("Succeeded", "Failed")
    assert jobs.conditions("video")["Partial"]["status"] == "True"
    assert "BackoffLimitExceeded" in status["stages"][1]["message"]


def test_after_a_failure_only_what_cleans_up_runs(jobs):
    jobs.apply(job("broken", annotations=runs(0, exit_code=1), backoffLimit=0, stages=[
        stage("next"), stage("clean-up", when="Always")]))
    status = jobs.wait_phase("broken", "Failed", limit=60)
    assert phases(status) == {"main": "Failed", "next": "Skipped", "clean-up": "Succeeded"}
    assert jobs.conditions("broken")["Failed"]["reason"] == "BackoffLimitExceeded"


def test_a_cancelled_job_cleans_up_and_is_cancelled(jobs):
    jobs.apply(job("stopped", annotations=runs(600), stages=[stage("next"), stage("clean-up", when="Always")]))
    jobs.wait_running("stopped")
    jobs.patch("stopped", cancel=True)
    status = jobs.wait_phase("stopped", "Cancelled", limit=60)
    assert phases(status) == {"main": "Failed", "next": "Skipped", "clean-up": "Succeeded"}


def test_a_suspended_job_goes_on_in_its_stage(jobs):
    jobs.apply(job("paused", annotations=runs(0), stages=[stage("next", runs(600))]))
    jobs.wait("paused", lambda s: s.get("stage") == "next" and s["phase"] == "Running", 60)
    jobs.patch("paused", suspend=True)
    jobs.wait_phase("paused", "Suspended", limit=60)
    jobs.patch("paused", suspend=False)
    status = jobs.wait("paused", lambda s: s["phase"] == "Running", 60)
    assert (status["stage"], phases(status)) == ("next", {"main": "Succeeded", "next": "Running"})


def test_a_deleted_job_starts_no_stage(jobs):
    jobs.apply(job("gone", annotations=runs(600), stages=[stage("clean-up", when="Always")]))
    jobs.wait_running("gone")
    jobs.delete("gone")
    wait_for("the job to be gone", lambda: jobs.cluster.api("GET", f"{jobs.path}/gone")[0] == 404, 60)
    assert all(pod["metadata"]["labels"][STAGE] == "main" for pod in jobs.pods("gone"))


def test_a_stage_of_many_runs_after_one_of_one_run(jobs):
    jobs.apply(job("wide", annotations=runs(0), stages=[
        stage("map", completions=20, parallelism=10, completionMode="Indexed"), stage("reduce")]))
    status = jobs.wait_phase("wide", "Succeeded", limit=90)
    assert (status["attempt"], phases(status)["map"]) == (22, "Succeeded")


def test_a_template_that_the_api_server_refuses_after_the_result_ends_its_stage_alone(jobs):
    bad = stage("later", onFailure="Continue")
    bad["template"]["spec"]["nodeSelector"] = {"not a label": "x"}
    jobs.apply(job("late", annotations=runs(0), stages=[bad]))
    status = jobs.wait_phase("late", "Succeeded", "Failed", limit=60)
    assert (status["phase"], phases(status)["later"]) == ("Succeeded", "Failed")
    assert "PodTemplateInvalid" in status["stages"][1]["message"]


def test_three_stages_of_one_run_cost_ten_writes_at_most(jobs, cluster):
    offset = cluster.audit_offset()
    # By hand: a pod that a slow kubelet lets run for a while costs a write more.
    by_hand = [stage(name) for name in ("two", "three")]
    for one in by_hand:
        one["template"]["spec"] |= BY_HAND
    jobs.apply(job("cheap", pod=BY_HAND, stages=by_hand))
    for name in ("main", "two", "three"):
        jobs.end_pod(jobs.wait_pod("cheap", lambda pod, name=name: pod["metadata"]["labels"][STAGE] == name))
    jobs.wait_phase("cheap", "Succeeded", limit=60)
    wait_for("its pods to be released", lambda: not any(
        pod["metadata"].get("finalizers") for pod in jobs.pods("cheap")), 60)
    flush_audit(cluster, offset)
    writes = [write for write in operator_writes(cluster, offset, jobs.namespace) if "events" not in write.what]
    assert len(writes) <= 3 * 3 + 1, writes


@pytest.mark.long
def test_900_deferrals_of_a_stage_cost_no_budget_and_two_writes_each(jobs, cluster):
    offset = cluster.audit_offset()
    jobs.apply(job("patient", annotations=runs(0), stages=[stage(
        "polls", runs(0, exit_code=",".join(["0"] + ["75"] * 900 + ["0"])), podFailurePolicy=NOT_YET, backoffLimit=0)]))
    status = jobs.wait_phase("patient", "Succeeded", "Failed", limit=900 * 6)
    assert (status["phase"], status["failures"], status["stages"][1]["deferrals"]) == ("Succeeded", 0, 900)
    assert len(json.dumps(jobs.get("patient")["status"])) < 64 * 1024
    writes = operator_writes(cluster, offset, jobs.namespace)
    statuses = [write for write in writes if write.what == "durablejobs/status"]
    assert len(statuses) <= 2 * 900 + 5, len(statuses)


# Where the operator is killed: after so many of its writes on the job.
@pytest.mark.parametrize("writes", [2, 5])
def test_an_operator_that_is_killed_between_two_writes_ends_the_job_the_same(jobs, operator, writes):
    name = f"killed-{writes}"
    jobs.apply(job(name, annotations=runs(0), stages=[
        stage("fails", runs(0, exit_code=1), onFailure="Continue", backoffLimit=0),
        stage("polls", runs(0, exit_code="0,0,75,0,0,0"), podFailurePolicy=NOT_YET),
        stage("clean-up", when="Always")]))
    versions, until = set(), time.monotonic() + 30
    while len(versions) < writes and time.monotonic() < until:
        versions.add(json.dumps(jobs.get(name).get("status"), sort_keys=True))
    operator.kill()
    operator.start()
    status = jobs.wait_phase(name, "Succeeded", "Failed", limit=120)
    assert (status["phase"], phases(status)) == ("Succeeded", {
        "main": "Succeeded", "fails": "Failed", "polls": "Succeeded", "clean-up": "Succeeded"}), status
    done = [entry["outcome"] for entry in status["history"] if entry.get("reason") != "PodNeverCreated"]
    # Which attempt is deferred goes by its number, and an intent that the kill left behind uses one up.
    assert (done.count("Succeeded"), done.count("Failed")) == (3, 1), status
    assert set(done) <= {"Deferred", "Failed", "Succeeded"}, status
