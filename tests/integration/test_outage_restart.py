"""The API server is down for longer than lostAfterSeconds and is started again."""

import time

import pytest

from losses import REACTION, SLACK, created_at, pod_name, wait_attempt
from outages import NODES, WINDOW, assert_nothing_lost, come_back, outlast_the_window, run_on_each_node

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("operator")]


def test_only_the_node_that_died_before_the_server_did_is_lost_and_within_one_window_after_it(cluster, jobs):
    run_on_each_node(jobs)
    cluster.kill_node("node-2")
    cluster.kill_apiserver()
    outlast_the_window()
    come_back(cluster)
    restored = time.time()
    offset = cluster.audit_offset()
    assert_nothing_lost(cluster, jobs, NODES[:2], restored)
    status = wait_attempt(jobs, "node-2", 2)
    # The next one may by now have been lost on the same node.
    entry = status["history"][0]
    assert (entry["outcome"], entry["reason"]) == ("Lost", "NodeSilent")
    # The window starts anew when the watches are open again, which is as soon as it answers.
    took = created_at(cluster, offset, pod_name(jobs.get("node-2"), 2)) - restored
    assert took <= WINDOW + REACTION + SLACK + 5
