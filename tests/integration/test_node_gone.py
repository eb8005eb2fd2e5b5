"""Nodes whose objects are deleted or never were there, and jobs that want their old pod to have
ended. All jobs are on the way at the same time."""

import types

import pytest

from holdfast import Jobs, job, place
from losses import (
    LOST_AFTER,
    REACTION,
    SLACK,
    assert_one_disruption,
    bind,
    created_at,
    finish,
    new_namespace,
    on_node,
    recoveries,
    seconds_of,
    wait_attempt,
    write_time,
)

START_DEADLINE = 10
OLD_POD_FIRST = {"podReplacementPolicy": "Failed", "startDeadlineSeconds": START_DEADLINE}


@pytest.fixture(scope="module")
def gone(cluster, operator):
    """node-0 is deleted, node-1 too but it comes back, node-2 is silent, and `ghost` never was."""
    jobs = Jobs(cluster, new_namespace(cluster, "gone"))
    for name, node in (("deleted", "node-0"), ("returns", "node-1")):
        jobs.apply(job(name, lostAfterSeconds=LOST_AFTER, pod=on_node(node)))
    jobs.apply(job("patient", lostAfterSeconds=LOST_AFTER, pod=on_node("node-2"), **OLD_POD_FIRST))
    jobs.apply(job("never", lostAfterSeconds=LOST_AFTER, pod={"schedulerName": "nobody"}))
    for name in ("deleted", "returns", "patient"):
        jobs.wait_running(name)
        jobs.wait(name, lambda s: place(s).get("nodeName"), 60)
    unbound = jobs.wait_pod("never", lambda pod: True)
    offset = cluster.audit_offset()
    cluster.kill_node("node-2")
    cluster.delete_node("node-0")
    cluster.delete_node("node-1")
    bind(jobs, unbound, "ghost")
    return types.SimpleNamespace(jobs=jobs, offset=offset)


def test_a_missing_node_is_told_of_and_one_that_comes_back_in_time_loses_nothing(cluster, gone):
    jobs = gone.jobs
    waiting = jobs.wait("returns", lambda s: s["waiting"]["reason"] == "NodeGone", 60)["waiting"]
    assert "node-1" in waiting["message"]
    deleted = write_time(cluster, gone.offset, "delete", "node-1", resource="nodes")
    assert LOST_AFTER - 2 <= seconds_of(waiting["deadline"]) - deleted <= LOST_AFTER + SLACK
    cluster.add_node("node-1", wait=False)
    status = jobs.wait("returns", lambda s: s["waiting"]["reason"] == "PodRunning", 60)
    assert (status["attempt"], status["disruptions"]) == (1, 0)
    assert finish(jobs, "returns")["attempt"] == 1


def test_an_attempt_whose_node_object_was_deleted_is_lost_in_time(cluster, operator, gone):
    status = wait_attempt(gone.jobs, "deleted", 2)
    assert_one_disruption(status, "NodeGone")
    assert status["history"][0]["nodeName"] == "node-0"
    deleted = write_time(cluster, gone.offset, "delete", "node-0", resource="nodes")
    took = created_at(cluster, gone.offset, place(status)["podName"]) - deleted
    assert LOST_AFTER - 1 <= took <= LOST_AFTER + REACTION + SLACK
    count, total = recoveries(operator, "node_gone", at_least=1)
    assert total / count <= LOST_AFTER + REACTION + SLACK


def test_an_attempt_bound_to_a_node_that_never_was_is_lost_in_time(cluster, gone):
    jobs = gone.jobs
    status = wait_attempt(jobs, "never", 2)
    assert_one_disruption(status, "NodeGone")
    assert status["history"][0]["nodeName"] == "ghost"
    bound = write_time(cluster, gone.offset, "create", status["history"][0]["podName"], subresource="binding")
    took = created_at(cluster, gone.offset, place(status)["podName"]) - bound
    assert LOST_AFTER - 1 <= took <= LOST_AFTER + REACTION + SLACK
    bind(jobs, jobs.pod("never"), "node-1")
    assert finish(jobs, "never")["attempt"] == 2


def test_with_policy_failed_a_dead_node_holds_the_next_attempt_back_until_its_object_is_deleted(cluster, gone):
    jobs = gone.jobs
    status = jobs.wait_phase("patient", "Backoff")
    assert [(entry["outcome"], entry["reason"]) for entry in status["history"]] == [("Lost", "NodeSilent")]
    assert status["waiting"]["reason"] == "OldPodNotEnded"
    assert status["history"][0]["podName"] in status["waiting"]["message"]
    assert "node-2" in status["waiting"]["message"]

    def stalled(current):
        return any(
            condition["type"] == "Stalled" and condition["status"] == "True"
            for condition in current.get("conditions", [])
        )

    status = jobs.wait("patient", stalled, START_DEADLINE + 60)
    assert (status["phase"], status["attempt"]) == ("Backoff", 1)
    offset = cluster.audit_offset()
    cluster.delete_node("node-2")
    status = wait_attempt(jobs, "patient", 2)
    deleted = write_time(cluster, offset, "delete", "node-2", resource="nodes")
    took = created_at(cluster, offset, place(status)["podName"]) - deleted
    assert LOST_AFTER - 1 <= took <= LOST_AFTER + REACTION + SLACK
    assert jobs.conditions("patient")["Stalled"]["status"] == "False"
    assert status["disruptions"] == 1
