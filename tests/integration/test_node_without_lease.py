"""Nodes that never had a Lease, as those of some virtual kubelets and simulators."""

import time

import pytest

from holdfast import job, place
from lives import wait_until
from losses import LOST_AFTER, REACTION, SLACK, bind, created_at

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def add_node(cluster, name):
    """A node that nobody plays."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    assert cluster.api("POST", "/api/v1/nodes", node)[0] == 201
    say_ready(cluster, name, "True")


def say_ready(cluster, name, status):
    """As its kubelet does; Unknown: as the node controller does."""
    condition = {"type": "Ready", "status": status, "reason": "Test", "message": "",
                 "lastHeartbeatTime": now(), "lastTransitionTime": now()}
    answer = cluster.api("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}}, "strategic")
    assert answer[0] == 200, answer


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@pytest.fixture()
def on_nodes(cluster, operator, jobs):
    """job -> node: its pod is bound there, and stays."""
    def apply(**nodes):
        for name, node in nodes.items():
            jobs.apply(job(name, lostAfterSeconds=LOST_AFTER, pod={"schedulerName": "nobody"}))
            bind(jobs, jobs.wait_pod(name, lambda pod: True), node)
    yield apply


def test_a_node_that_never_had_a_lease_is_judged_by_its_ready_condition(cluster, jobs, on_nodes):
    add_node(cluster, "virtual")
    add_node(cluster, "deprived")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
             "metadata": {"name": "deprived"}, "spec": {"holderIdentity": "deprived"}}
    assert cluster.api("POST", LEASES, lease)[0] == 201
    on_nodes(virtual="virtual", deprived="deprived")
    assert cluster.api("DELETE", f"{LEASES}/deprived")[0] == 200
    bound = time.time()
    # One whose Lease went away counts as silent. The breaker may add a window: healthy nodes renew each 10 s,
    # which is more than half of this one.
    jobs.wait("deprived", lambda s: s["attempt"] == 2, 2 * LOST_AFTER + 60)
    wait_until(bound + 2 * LOST_AFTER, lambda: jobs.status("virtual")["attempt"] == 1)
    offset = cluster.audit_offset()
    say_ready(cluster, "virtual", "Unknown")
    said = time.time()
    waiting = jobs.wait("virtual", lambda s: s["waiting"]["reason"] == "NodeSilent", LOST_AFTER)["waiting"]
    assert waiting["message"] == "node virtual's Ready condition is Unknown"
    status = jobs.wait("virtual", lambda s: s["attempt"] == 2, LOST_AFTER + 60)
    found = created_at(cluster, offset, place(status)["podName"])
    assert LOST_AFTER - 1 <= found - said <= LOST_AFTER + REACTION + SLACK
    entry = status["history"][0]
    assert (entry["outcome"], entry["reason"]) == ("Lost", "NodeSilent")


def test_a_node_that_is_ready_again_loses_nothing(cluster, jobs, on_nodes):
    add_node(cluster, "flaky")
    on_nodes(flaky="flaky")
    say_ready(cluster, "flaky", "Unknown")
    jobs.wait("flaky", lambda s: s["waiting"]["reason"] == "NodeSilent", LOST_AFTER)
    say_ready(cluster, "flaky", "True")
    wait_until(time.time() + LOST_AFTER + SLACK, lambda: jobs.status("flaky")["attempt"] == 1)
