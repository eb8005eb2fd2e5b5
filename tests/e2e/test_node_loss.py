"""A node of a running job goes away: for good, for a while, or only its kubelet."""

import threading
import time

import pytest

from holdfast import place
from localcluster import wait_for
from real_cluster import moment, node_lease
from real_jobs import dump, end_of, outcomes, shell_job, sleeps, wait_attempt_pod

RECONCILE = 1
# Longer than Kubernetes takes to mark the node: the next pod does not land on it.
PATIENT = 60


def last_renewal(cluster, node):
    """When the node last showed life, as time.monotonic() here. Its clock is this machine's."""
    return time.monotonic() - (time.time() - moment(node_lease(cluster, node)["spec"]["renewTime"]))


def fenced_by_replica(cluster):
    """{replica: successes of old attempts that it did not count}."""
    return wait_for("the replicas' metrics", lambda: {pod["metadata"]["name"]: cluster.metric_of(
        pod, "holdfast_fenced_outcomes_total", pod_phase="Succeeded") for pod in cluster.operators()}, 60)


def running_on(jobs, name):
    """The node on which the job's pod runs, once that is on record."""
    pod = jobs.wait_running(name, limit=60)
    node = pod["spec"]["nodeName"]
    jobs.wait(name, lambda s: place(s).get("nodeName") == node, 60, "the node to be on record")
    return node


def requeued(cluster, jobs, name, node, window):
    """Seconds from the node's last sign of life to the next attempt's pod."""
    seen = wait_attempt_pod(jobs, name, 2, window + 60)
    return seen - last_renewal(cluster, node)


def test_a_node_that_loses_power_costs_one_disruption_and_the_job_goes_on_elsewhere(cluster, nodes, jobs, measured):
    jobs.apply(shell_job(cluster, "survivor", sleeps(15), lostAfterSeconds=PATIENT))
    node = running_on(jobs, "survivor")
    with cluster.lost(node, "kill", "start"):
        measured("node loses power (docker kill)", PATIENT + RECONCILE,
                 requeued(cluster, jobs, "survivor", node, PATIENT))
        status = end_of(jobs, "survivor")
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 2, 1), dump(status)
    assert place(status)["nodeName"] != node
    assert outcomes(status)[0][1] == "Lost"


def test_a_node_that_pauses_for_20_seconds_costs_nothing(cluster, nodes, jobs):
    jobs.apply(shell_job(cluster, "patient", sleeps(30)))
    node = running_on(jobs, "patient")
    with cluster.lost(node, "pause", "unpause"):
        with pytest.raises(Exception, match="attempt 2"):
            wait_attempt_pod(jobs, "patient", 2, 20)
    status = end_of(jobs, "patient")
    assert (status["phase"], status["attempt"], status.get("disruptions", 0)) == ("Succeeded", 1, 0)


def test_what_a_node_says_that_comes_back_after_3_minutes_does_not_count(cluster, nodes, jobs, measured):
    # The first attempt would say that it succeeded, whenever it is asked to end; the others never end.
    jobs.apply(shell_job(
        cluster, "stale", "[ $HOLDFAST_ATTEMPT = 1 ] && trap 'exit 0' TERM; sleep 100000 & wait $!",
        lostAfterSeconds=PATIENT, backoffLimit=0))
    node = running_on(jobs, "stale")
    [old] = jobs.pods("stale")
    cluster.await_operators()
    fenced = fenced_by_replica(cluster)
    with cluster.lost(node, "pause", "unpause"):
        measured("node is cut off for 3 minutes (docker pause)", PATIENT + RECONCILE,
                 requeued(cluster, jobs, "stale", node, PATIENT))
        away = time.monotonic()
        jobs.wait("stale", lambda s: s["attempt"] == 2 and place(s).get("nodeName") not in (None, "", node), 60)
        wait_for("three minutes without the node", lambda: time.monotonic() - away > 180 - PATIENT, 180)
    path = f"{jobs.pods_path}/{old['metadata']['name']}"

    def gone():
        return cluster.api("GET", path)[0] == 404

    wait_for("the old pod to be gone", gone, 120, poll=0.5)
    # A replica that was started meanwhile begins at 0.
    wait_for("the old pod's success to be counted as fenced", lambda: sum(
        count - fenced.get(name, 0) for name, count in fenced_by_replica(cluster).items()) == 1, 60, poll=0.5)
    status = jobs.status("stale")
    assert (status["phase"], status["attempt"]) == ("Running", 2), dump(status)
    jobs.patch("stale", cancel=True)
    assert end_of(jobs, "stale")["phase"] == "Cancelled"


def test_a_kubelet_that_stops_leaves_a_container_behind_and_the_job_goes_on_elsewhere(cluster, nodes, jobs, measured):
    jobs.apply(shell_job(cluster, "orphan", sleeps(90), lostAfterSeconds=PATIENT))
    node = running_on(jobs, "orphan")
    [old] = jobs.pods("orphan")
    cluster.on_node(node, "systemctl", "stop", "kubelet")
    try:
        measured("kubelet stops", PATIENT + RECONCILE, requeued(cluster, jobs, "orphan", node, PATIENT))
        cluster.container_of(node, old)  # it runs on; nobody can tell it otherwise
    finally:
        cluster.on_node(node, "systemctl", "start", "kubelet")
        cluster.await_node(node)
    status = end_of(jobs, "orphan", limit=180)
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 2, 1), dump(status)


def test_a_drained_node_costs_one_disruption_and_no_time(cluster, nodes, jobs, measured):
    jobs.apply(shell_job(cluster, "moved", sleeps(20)))
    node = running_on(jobs, "moved")
    [old] = jobs.pods("moved")
    grace = old["spec"]["terminationGracePeriodSeconds"]
    cluster.kubectl("cordon", node)
    began = time.monotonic()
    drain = threading.Thread(target=cluster.kubectl, args=(
        "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"))
    drain.start()
    try:
        measured("node drained", grace + RECONCILE, wait_attempt_pod(jobs, "moved", 2, 60) - began)
    finally:
        drain.join()
        cluster.kubectl("uncordon", node)
        cluster.await_operators()
    status = end_of(jobs, "moved")
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 2, 1), dump(status)
    assert place(status)["nodeName"] != node
