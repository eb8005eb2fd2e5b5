"""Many nodes that fall silent together. The nodes are played by hand, so that the test says when
each of them renews its Lease."""

import contextlib
import http.client
import threading
import time
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
    new_namespace,
    seconds_of,
    set_running,
    wait_attempt,
)

# The test plays the nodes and the scheduler.
CLUSTER = {"nodes": 0, "kwok": False, "scheduler": False}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
RENEWAL_SECONDS = 1


class HandMadeNodes:
    """Nodes whose Leases are renewed each second, each until it is told to be silent."""

    def __init__(self, cluster, names):
        self._cluster = cluster
        self._lock = threading.Lock()
        self._alive = set(names)
        self._ended = threading.Event()
        for name in names:
            assert cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": name}})[0] == 201
            assert (
                cluster.api(
                    "POST",
                    LEASES,
                    {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}},
                )[0]
                == 201
            )
        self._renewer = threading.Thread(target=self._renew)
        self._renewer.start()

    def silence(self, *names):
        with self._lock:
            self._alive -= set(names)

    def wake(self, *names):
        with self._lock:
            self._alive |= set(names)

    def last_renewal(self, name):
        return seconds_of(self._cluster.node_lease(name)["spec"]["renewTime"])

    def end(self):
        self._ended.set()
        self._renewer.join()

    def _renew(self):
        while not self._ended.wait(RENEWAL_SECONDS):
            now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000000Z"
            with self._lock, contextlib.suppress(OSError, http.client.HTTPException):  # the next one comes soon
                for name in sorted(self._alive):
                    self._cluster.api("PATCH", f"{LEASES}/{name}", {"spec": {"renewTime": now}}, "merge")


@pytest.fixture(scope="module")
def outage(cluster, operator):
    """hand-0 falls silent by itself; when it has been for 12 s, all six others do, together."""
    nodes = HandMadeNodes(cluster, [f"hand-{number}" for number in range(7)])
    try:
        jobs = Jobs(cluster, new_namespace(cluster, "breaker"))
        for name, node in (("alone", "hand-0"), ("heals", "hand-1"), ("dies", "hand-6")):
            jobs.apply(job(name, lostAfterSeconds=LOST_AFTER))
            pod = jobs.wait_pod(name, lambda found: True)
            bind(jobs, pod, node)
            set_running(jobs, pod)
            jobs.wait(name, lambda s: place(s).get("nodeName"), 60)
        offset = cluster.audit_offset()
        nodes.silence("hand-0")
        # Or later than that, where the test is too slow to see it.
        jobs.wait("alone", lambda s: s["waiting"]["reason"] == "NodeSilent" or s["attempt"] > 1, 60)
        nodes.silence(*[f"hand-{number}" for number in range(1, 7)])
        yield types.SimpleNamespace(jobs=jobs, nodes=nodes, offset=offset)
    finally:
        nodes.end()


def test_a_node_that_dies_alone_among_many_is_found_within_one_window(cluster, outage):
    status = wait_attempt(outage.jobs, "alone", 2)
    assert_one_disruption(status, "NodeSilent")
    took = created_at(cluster, outage.offset, place(status)["podName"]) - outage.nodes.last_renewal("hand-0")
    assert LOST_AFTER <= took <= LOST_AFTER + 1 + REACTION + SLACK


def test_nodes_that_fell_silent_together_get_one_window_more_and_lose_nothing_if_they_wake_in_it(outage):
    jobs, nodes = outage.jobs, outage.nodes
    last = nodes.last_renewal("hand-1")
    wait_for("one window to be over for all", lambda: time.time() - last > LOST_AFTER + REACTION, 60)
    waiting = jobs.wait("heals", lambda s: s["waiting"]["reason"] == "NodeSilent", 60)["waiting"]
    assert jobs.status("heals")["attempt"] == 1
    jobs.wait(
        "heals",
        lambda s: seconds_of(s["waiting"]["deadline"]) - last >= 2 * LOST_AFTER - 2,
        60,
        f"the deadline in {waiting} to move by one window",
    )
    nodes.wake("hand-1", "hand-2", "hand-3")
    status = jobs.wait("heals", lambda s: s["waiting"]["reason"] == "PodRunning", 2 * LOST_AFTER + 60)
    assert (status["attempt"], status["disruptions"]) == (1, 0)


def test_a_node_that_died_with_most_others_is_found_within_two_windows(cluster, outage):
    status = wait_attempt(outage.jobs, "dies", 2, limit=120)
    assert_one_disruption(status, "NodeSilent")
    took = created_at(cluster, outage.offset, place(status)["podName"]) - outage.nodes.last_renewal("hand-6")
    assert 2 * LOST_AFTER <= took <= 2 * LOST_AFTER + 1 + REACTION + SLACK
    heals = outage.jobs.status("heals")
    assert (heals["phase"], heals["attempt"]) == ("Running", 1)
