"""Nodes that fall silent under running and under terminating pods. One node dies, one goes away and
comes back, one stays; all jobs are on the way at the same time."""

import types

import pytest

from holdfast import Jobs, job, place
from localcluster import wait_for
from losses import (
    LOST_AFTER,
    REACTION,
    SLACK,
    assert_one_disruption,
    bind,
    created_at,
    delete_pod,
    finish,
    has_finalizer,
    new_namespace,
    on_node,
    pod_named,
    recoveries,
    seconds_of,
    wait_attempt,
    wait_renewals,
)

GRACE = 2
PATIENT = 40
# So much of a node that the scheduler prefers any other one for the next attempt.
LARGE = {
    "containers": [
        {"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": "24", "memory": "96Gi"}}}
    ]
}


@pytest.fixture(scope="module")
def silence(cluster, operator):
    """Jobs on three nodes; `dead` has just died, `away` too but it will come back."""
    jobs = Jobs(cluster, new_namespace(cluster, "silence"))
    jobs.apply(job("moves", lostAfterSeconds=LOST_AFTER, pod=LARGE))
    dead = jobs.wait_running("moves")["spec"]["nodeName"]
    away, alive = sorted({"node-0", "node-1", "node-2"} - {dead})
    # Half of it passes from the first word about the silent node to the verdict: it has to come back within that.
    jobs.apply(job("returns", lostAfterSeconds=PATIENT, pod=on_node(away)))
    jobs.apply(
        job(
            "pinned",
            lostAfterSeconds=LOST_AFTER,
            pod=on_node(dead),
            retryBackoff={"initialSeconds": 600, "maxSeconds": 600},
        )
    )
    jobs.apply(
        job(
            "stuck",
            lostAfterSeconds=LOST_AFTER,
            # Bound by hand: no later attempt goes to the dead node.
            pod={"schedulerName": "nobody", "terminationGracePeriodSeconds": GRACE},
        )
    )
    jobs.apply(
        job(
            "overstays",
            lostAfterSeconds=LOST_AFTER,
            annotations={"holdfast-test/ignore-delete": "true"},
            pod=dict(on_node(alive), terminationGracePeriodSeconds=GRACE),
        )
    )
    bind(jobs, jobs.wait_pod("stuck", lambda pod: True), dead)
    names = ("moves", "returns", "pinned", "stuck", "overstays")
    pods = {name: jobs.wait_running(name) for name in names}
    for name in pods:
        jobs.wait(name, lambda s: place(s).get("nodeName"), 60)
    wait_renewals(cluster, (dead, away))
    offset = cluster.audit_offset()
    cluster.kubectl("cordon", away)  # the next attempts of what is lost first would be lost there, too
    cluster.kill_node(away)
    cluster.kill_node(dead)
    for name in ("stuck", "overstays"):
        pods[name] = delete_pod(jobs, pods[name])
    return types.SimpleNamespace(jobs=jobs, pods=pods, dead=dead, away=away, offset=offset)


def report_late_success(silence, operator, name):
    """The old pod of `name` says that it succeeded; that is counted and changes nothing."""
    jobs, pod = silence.jobs, silence.pods[name]

    def is_left():
        found = pod_named(jobs, pod["metadata"]["name"])
        return found and "deletionTimestamp" in found["metadata"] and not has_finalizer(found)

    wait_for(f"the old pod of {name} to be told to go, and to be there without our finalizer", is_left, 60)
    before = operator.metric("holdfast_fenced_outcomes_total", pod_phase="Succeeded")
    history = jobs.status(name)["history"]
    jobs.end_pod(pod)
    wait_for(
        "the fenced outcome to be counted",
        lambda: operator.metric("holdfast_fenced_outcomes_total", pod_phase="Succeeded")
        == before + 1,
        60,
    )
    status = jobs.status(name)
    assert status["phase"] == "Running" and status["attempt"] == 2
    assert status["history"] == history


def test_a_silent_node_is_told_of_and_one_that_comes_back_in_time_loses_nothing(cluster, silence):
    jobs = silence.jobs
    waiting = jobs.wait("returns", lambda s: s["waiting"]["reason"] == "NodeSilent", 60)["waiting"]
    assert silence.away in waiting["message"]
    assert "Lost" in waiting["nextAction"]
    last = seconds_of(cluster.node_lease(silence.away)["spec"]["renewTime"])
    assert PATIENT - 2 <= seconds_of(waiting["deadline"]) - last <= PATIENT + SLACK
    cluster.revive_node(silence.away, wait=False)
    cluster.kubectl("uncordon", silence.away)
    # It is looked at again when it would be lost.
    status = jobs.wait("returns", lambda s: s["waiting"]["reason"] == "PodRunning", PATIENT + 60)
    assert (status["attempt"], status["disruptions"], status["phase"]) == (1, 0, "Running")
    status = finish(jobs, "returns")
    assert (status["attempt"], [entry["outcome"] for entry in status["history"]]) == (1, ["Succeeded"])


def test_the_attempt_on_a_silent_node_is_lost_in_time_and_the_next_one_runs_on_another_node(cluster, operator, silence):
    jobs = silence.jobs
    status = wait_attempt(jobs, "moves", 2)
    assert_one_disruption(status, "NodeSilent")
    assert status["history"][0]["nodeName"] == silence.dead
    last = seconds_of(cluster.node_lease(silence.dead)["spec"]["renewTime"])
    took = created_at(cluster, silence.offset, place(status)["podName"]) - last
    assert LOST_AFTER <= took <= LOST_AFTER + REACTION + SLACK
    count, total = recoveries(operator, "node_silent", at_least=1)
    assert total / count <= LOST_AFTER + REACTION + SLACK
    pod = jobs.wait_running("moves")
    assert pod["spec"]["nodeName"] != silence.dead


def test_a_success_that_a_lost_attempts_pod_reports_later_does_not_count(operator, silence):
    report_late_success(silence, operator, "moves")
    status = finish(silence.jobs, "moves")
    assert (status["attempt"], status["failures"], status["disruptions"]) == (2, 0, 1)
    assert [entry["outcome"] for entry in status["history"]] == ["Lost", "Succeeded"]


def test_a_next_attempt_on_a_node_that_is_still_silent_is_lost_at_once_and_the_third_one_waits(silence):
    status = silence.jobs.wait_phase("pinned", "Backoff")
    assert (status["attempt"], status["failures"], status["disruptions"]) == (2, 0, 2)
    assert [entry["reason"] for entry in status["history"]] == ["NodeSilent"] * 2
    first, second = (seconds_of(entry["endTime"]) for entry in status["history"])
    assert second - first <= REACTION + SLACK
    assert status["waiting"]["reason"] == "RetryBackoff"


def test_a_pod_stuck_terminating_on_a_dead_node_is_lost_and_what_it_reports_later_does_not_count(
    cluster, operator, silence
):
    jobs, pod = silence.jobs, silence.pods["stuck"]
    status = wait_attempt(jobs, "stuck", 2)
    # The node and the pod's overstay run side by side.
    assert_one_disruption(status, {"NodeSilent", "PodStuckTerminating"})
    told = seconds_of(pod["metadata"]["deletionTimestamp"])
    assert (created_at(cluster, silence.offset, place(status)["podName"]) - told <= LOST_AFTER + REACTION + SLACK)
    report_late_success(silence, operator, "stuck")


def test_a_pod_that_overstays_its_grace_on_a_live_node_is_lost(cluster, operator, silence):
    jobs, pod = silence.jobs, silence.pods["overstays"]
    status = wait_attempt(jobs, "overstays", 2)
    assert_one_disruption(status, "PodStuckTerminating")
    grace_ended = seconds_of(pod["metadata"]["deletionTimestamp"])
    took = created_at(cluster, silence.offset, place(status)["podName"]) - grace_ended
    # The grace's end is cut to the second, and so is the server's time that it is compared to.
    assert LOST_AFTER - 2 <= took <= LOST_AFTER + REACTION + SLACK
    recoveries(operator, "pod_stuck_terminating", at_least=1)
    report_late_success(silence, operator, "overstays")
