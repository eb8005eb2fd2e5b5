"""etcd hangs for longer than lostAfterSeconds: watches stay open, quiet, and nobody can renew."""

import time

import pytest

from losses import REACTION, SLACK, created_at, pod_name, wait_attempt
from outages import NODES, WINDOW, assert_nothing_lost, outlast_the_window, run_on_each_node

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("operator")]


def test_while_etcd_hangs_no_window_runs_and_afterwards_a_dead_node_is_found_within_one(cluster, jobs):
    run_on_each_node(jobs)
    cluster.kill_node("node-2")
    cluster.pause("etcd")
    try:
        outlast_the_window()
    finally:
        cluster.resume("etcd")
    restored = time.time()
    offset = cluster.audit_offset()
    cluster.wait_apiserver_ready()
    assert_nothing_lost(cluster, jobs, NODES[:2], restored)
    status = wait_attempt(jobs, "node-2", 2, limit=60)
    # The next one may by now have been lost on the same node.
    entry = status["history"][0]
    assert (entry["outcome"], entry["reason"]) == ("Lost", "NodeSilent")
    took = created_at(cluster, offset, pod_name(jobs.get("node-2"), 2)) - restored
    assert WINDOW - 1 <= took <= WINDOW + REACTION + SLACK + 5
