"""The API server hangs for longer than lostAfterSeconds: nobody can renew meanwhile, and no attempt
is lost by that."""

import time

import pytest

from outages import NODES, assert_nothing_lost, outlast_the_window, run_on_each_node

pytestmark = pytest.mark.usefixtures("operator")


@pytest.mark.long  # the simulator has it too
def test_an_api_server_that_hangs_longer_than_the_window_loses_no_attempt(cluster, jobs):
    run_on_each_node(jobs)
    cluster.pause("kube-apiserver")
    try:
        outlast_the_window()
    finally:
        cluster.resume("kube-apiserver")
    restored = time.time()
    cluster.wait_apiserver_ready()
    assert_nothing_lost(cluster, jobs, NODES, restored)
