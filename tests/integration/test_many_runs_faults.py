"""Jobs of hundreds of runs on a real control plane, while an operator is killed again and again, a node with a
hundred runs dies, and the API server restarts: each index counts once, each attempt has one pod, budgets are exact."""

import collections
import random
import time

import pytest

from holdfast import QUICKEST_LEASES, Operator, indexed, runs
from localcluster import wait_for
from losses import LOST_AFTER

pytestmark = pytest.mark.long
ATTEMPT = "holdfast.dev/attempt"
RUNS = 300


def strike(jobs, name, times, trouble):
    """Strikes so often while the job runs, each time once some more runs have succeeded. Returns its last status."""
    rng = random.Random(7)
    for number in range(times):
        least = number * RUNS // (times + 10)
        jobs.wait(name, lambda s, least=least: s.get("attempt", 0) and s.get("succeeded", 0) >= least, 120)
        time.sleep(rng.uniform(0, 0.5))  # any moment between two of its writes
        assert jobs.status(name)["phase"] == "Running", "each strike is under the running job"
        trouble()
    return jobs.wait_phase(name, "Succeeded", limit=300)


def check_whole(jobs, name, status):
    """All indexes are complete, and nothing was counted twice or ran twice for one attempt."""
    assert status["completedIndexes"] == f"0-{RUNS - 1}"
    assert status["succeeded"] == RUNS and status["failures"] == 0
    pods = [pod["metadata"]["labels"] for pod in jobs.pods(name)]
    assert set(collections.Counter(labels[ATTEMPT] for labels in pods).values()) == {1}, "each attempt has one pod"
    assert status["attempt"] == RUNS + status["disruptions"], "each loss, and nothing else, costs an attempt"


def test_an_operator_that_is_killed_fifty_times_loses_and_repeats_no_run(cluster, jobs):
    with Operator(cluster, leases=QUICKEST_LEASES) as operator:
        def kill():
            operator.kill()
            operator.start()

        jobs.apply(indexed("killed", RUNS, 30, runs(30)))
        check_whole(jobs, "killed", strike(jobs, "killed", 50, kill))


def test_an_api_server_that_restarts_ten_times_loses_and_repeats_no_run(cluster, jobs):
    def restart():
        cluster.kill_apiserver()
        cluster.start_apiserver()

    with Operator(cluster):
        jobs.apply(indexed("restarted", RUNS, 30, runs(5)))
        status = strike(jobs, "restarted", 10, restart)
        check_whole(jobs, "restarted", status)
        assert status["disruptions"] == 0, "an outage of the API server loses nothing"


def test_a_node_that_dies_with_a_hundred_runs_costs_each_of_them_one_disruption(cluster, jobs):
    victim, *others = sorted(item["metadata"]["name"] for item in cluster.api("GET", "/api/v1/nodes")[1]["items"])
    try:
        with Operator(cluster):
            cluster.kubectl("cordon", *others)
            jobs.apply(indexed("nodes", RUNS, 100, runs(600), lostAfterSeconds=LOST_AFTER))
            wait_for("100 running pods", lambda: sum(
                pod["status"]["phase"] == "Running" for pod in jobs.pods("nodes")) == 100, 120)
            cluster.kubectl("uncordon", *others)
            cluster.kubectl("cordon", victim)
            cluster.kill_node(victim)
            began = time.monotonic()
            status = jobs.wait("nodes", lambda s: s["disruptions"] == 100 and s.get("active") == 100, 120)
            print(f"all 100 have their next attempt {time.monotonic() - began:.1f} s after the node's death")
            assert status["failures"] == 0 and status["attempt"] == 200
            assert [run.get("disruptions") for run in status["runs"]] == [1] * 100
            jobs.patch("nodes", cancel=True)
            jobs.wait_phase("nodes", "Cancelled", limit=120)
    finally:
        cluster.kubectl("uncordon", victim)
        cluster.revive_node(victim)
