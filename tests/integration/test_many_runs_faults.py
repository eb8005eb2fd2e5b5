"""Jobs of hundreds of runs on a real control plane, while an operator is killed again and again, a node with a
hundred runs dies, and the API server restarts: each index counts once, each attempt has one pod, budgets are exact."""

import collections
import itertools
import random
import time

import pytest

from holdfast import QUICKEST_LEASES, Operator, job, runs
from localcluster import wait_for
from losses import LOST_AFTER

pytestmark = pytest.mark.long
INDEX, ATTEMPT = "batch.kubernetes.io/job-completion-index", "holdfast.dev/attempt"
RUNS = 300


def indexed(name, parallelism, annotations, **spec):
    return job(name, annotations=annotations, completions=RUNS, parallelism=parallelism, completionMode="Indexed",
               **spec)


def check_whole(jobs, name, status):
    """All indexes are complete, and nothing was counted twice or ran twice for one attempt."""
    assert status["phase"] == "Succeeded" and status["completedIndexes"] == f"0-{RUNS - 1}"
    assert status["succeeded"] == RUNS and status["failures"] == 0
    pods = [pod["metadata"]["labels"] for pod in jobs.pods(name)]
    assert set(collections.Counter(labels[ATTEMPT] for labels in pods).values()) == {1}, "each attempt has one pod"
    # Each attempt was of one run; all but the last of a run were lost.
    assert status["attempt"] == RUNS + status["disruptions"], "each loss, and nothing else, costs an attempt"


def test_an_operator_that_is_killed_fifty_times_loses_and_repeats_no_run(cluster, jobs):
    operator = Operator(cluster, leases=QUICKEST_LEASES)
    operator.start()
    rng = random.Random(7)
    try:
        jobs.apply(indexed("killed", 30, runs(10)))
        for _ in range(50):
            time.sleep(rng.uniform(0.2, 1.5))
            operator.kill()
            operator.start()
        status = jobs.wait_phase("killed", "Succeeded", limit=300)
    finally:
        operator.kill()
    check_whole(jobs, "killed", status)


def test_an_api_server_that_restarts_ten_times_loses_and_repeats_no_run(cluster, jobs):
    operator = Operator(cluster)
    operator.start()
    try:
        jobs.apply(indexed("restarted", 30, runs(5)))
        for _ in range(10):
            time.sleep(4)
            cluster.kill_apiserver()
            cluster.start_apiserver()
        status = jobs.wait_phase("restarted", "Succeeded", limit=300)
    finally:
        operator.kill()
    check_whole(jobs, "restarted", status)
    assert status["disruptions"] == 0, "an outage of the API server loses nothing"


def test_a_node_that_dies_with_a_hundred_runs_costs_each_of_them_one_disruption(cluster, jobs):
    nodes = sorted(item["metadata"]["name"] for item in cluster.api("GET", "/api/v1/nodes")[1]["items"])
    operator = Operator(cluster)
    operator.start()
    try:
        others = nodes[1:]
        for node in others:
            cluster.kubectl("cordon", node)
        jobs.apply(indexed("nodes", 100, runs(600), lostAfterSeconds=LOST_AFTER))
        wait_for("100 running pods", lambda: sum(
            pod["status"]["phase"] == "Running" for pod in jobs.pods("nodes")) == 100, 120)
        for node in others:
            cluster.kubectl("uncordon", node)
        cluster.kubectl("cordon", nodes[0])
        cluster.kill_node(nodes[0])
        began = time.monotonic()
        status = jobs.wait("nodes", lambda s: s["disruptions"] == 100 and s.get("active") == 100, 120)
        print(f"all 100 have their next attempt {time.monotonic() - began:.1f} s after the node's death")
        assert status["failures"] == 0 and status["attempt"] == 200
        assert [run.get("disruptions") for run in status["runs"]] == list(itertools.repeat(1, 100))
        jobs.patch("nodes", cancel=True)
        jobs.wait_phase("nodes", "Cancelled", limit=120)
    finally:
        operator.kill()
        cluster.kubectl("uncordon", nodes[0])
        cluster.revive_node(nodes[0])
