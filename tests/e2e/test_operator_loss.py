"""Replicas of the operator go away while jobs run: no job notices, and what must be done is done in time."""

import time

import pytest

from holdfast import place
from localcluster import wait_for

from real_cluster import SYSTEM
from real_jobs import dump, end_of, on, shell_job, sleeps, wait_attempt_pod

LEASE, RETRY, RECONCILE = 15, 2, 1
TAKE_OVER = LEASE + RETRY + RECONCILE
MANY = 10


def delete_operators(cluster, count, *flags):
    names = [pod["metadata"]["name"] for pod in cluster.operators()[:count]]
    cluster.kubectl("-n", SYSTEM, "delete", "pod", *names, *flags)
    return names


def run_on(cluster, jobs, node, prefix, **spec):
    """Names of jobs that run there, whose second attempts succeed at once."""
    names = [f"{prefix}-{number}" for number in range(MANY)]
    for name in names:
        jobs.apply(shell_job(cluster, name, f"[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; {sleeps(100000)}",
                             pod=on(node), **spec))
    for name in names:
        jobs.wait_running(name, limit=120)
    return names


def assert_undisturbed(jobs, names, limit=180):
    for name in names:
        status = end_of(jobs, name, limit=limit)
        assert (status["phase"], status["attempt"], status.get("disruptions", 0),
                status.get("failures", 0)) == ("Succeeded", 1, 0, 0), f"{name}: {dump(status)}"


@pytest.mark.parametrize("count", [1, 2], ids=["one operator pod", "both operator pods"])
def test_jobs_do_not_notice_that_operator_pods_are_deleted(cluster, jobs, count):
    cluster.await_operators()
    names = [f"calm-{number}" for number in range(MANY)]
    for name in names:
        jobs.apply(shell_job(cluster, name, sleeps(25)))
    for name in names:
        jobs.wait_started(name, limit=120)
    delete_operators(cluster, count)
    assert_undisturbed(jobs, names)
    cluster.await_operators()


@pytest.mark.parametrize("flags", [(), ("--force", "--grace-period=0")], ids=["cleanly", "by force"])
def test_jobs_that_end_while_no_operator_is_there_have_their_outcome_when_one_is_back(cluster, jobs, flags):
    cluster.await_operators()
    names = [f"meanwhile-{number}" for number in range(MANY)]
    for name in names:
        jobs.apply(shell_job(cluster, name, sleeps(40)))
    for name in names:
        jobs.wait_running(name, limit=120)
    operators = [pod["metadata"]["name"] for pod in cluster.operators()]
    cluster.kubectl("-n", SYSTEM, "scale", "deployment/holdfast", "--replicas=0")
    try:
        cluster.kubectl("-n", SYSTEM, "delete", "pod", *operators, "--ignore-not-found", *flags)
        wait_for("all pods to end", lambda: all(pod["status"]["phase"] == "Succeeded" for pod in jobs.pods()), 120)
        assert not [name for name in names if jobs.status(name)["phase"] == "Succeeded"]
    finally:
        cluster.kubectl("-n", SYSTEM, "scale", "deployment/holdfast", "--replicas=2")
    cluster.await_operators()
    assert_undisturbed(jobs, names)


def test_an_operators_node_that_loses_power_costs_the_jobs_of_other_nodes_a_take_over(cluster, nodes, jobs, measured):
    cluster.spread_operators()
    victim, other = nodes
    names = run_on(cluster, jobs, other, "elsewhere")
    with cluster.lost(victim, "kill", "start"):
        lost = time.monotonic()
        for name in names:  # each needs its owner now, and half of them have none
            cluster.kubectl("-n", jobs.namespace, "delete", "pod", place(jobs.status(name))["podName"],
                            "--force", "--grace-period=0", "--wait=false")
        seen = [wait_attempt_pod(jobs, name, 2, 90) for name in names]
        measured("operator's node loses power", TAKE_OVER, max(seen) - lost)
        for name in names:
            status = end_of(jobs, name)
            assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 2, 1), dump(status)
    cluster.await_operators()


def test_a_node_that_takes_its_jobs_replica_along_costs_the_later_of_window_and_take_over(
    cluster, nodes, jobs, measured
):
    cluster.spread_operators()
    victim, _ = nodes
    names = run_on(cluster, jobs, victim, "together", lostAfterSeconds=LEASE)
    for name in names:
        jobs.wait(name, lambda s: place(s).get("nodeName") == victim, 60, "the node to be on record")
    with cluster.lost(victim, "kill", "start"):
        lost = time.monotonic()
        seen = [wait_attempt_pod(jobs, name, 2, 90) for name in names]  # half of them had their owner there
        measured("node of the job and of its operator", TAKE_OVER, max(seen) - lost)
    cluster.await_operators()
