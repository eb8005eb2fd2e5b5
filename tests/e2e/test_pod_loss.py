"""A running job's container or pod goes away while its node lives."""

import time

from real_jobs import dump, end_of, outcomes, shell_job, sleeps, wait_attempt_pod

RECONCILE = 1
# What the kubelet leaves a container at the least, whatever grace it was told (minimumGracePeriodInSeconds).
KUBELET_GRACE = 2
FAST_RETRY = {"initialSeconds": 1, "maxSeconds": 1, "jitterPercent": 0}


def test_a_container_that_is_killed_is_a_failure_and_is_tried_again(cluster, nodes, jobs):
    jobs.apply(shell_job(cluster, "killed", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; sleep 100000",
                         retryBackoff=FAST_RETRY))
    pod = jobs.wait_running("killed", limit=60)
    node = pod["spec"]["nodeName"]
    _, pid = cluster.container_of(node, pod)
    cluster.on_node(node, "kill", "-KILL", str(pid))
    status = end_of(jobs, "killed")
    assert (status["phase"], status["attempt"], status["failures"]) == ("Succeeded", 2, 1), dump(status)
    [entry] = status["history"][:1]
    assert (entry["outcome"], entry["exitCode"]) == ("Failed", 137), dump(entry)


def test_a_pod_that_is_deleted_by_force_is_a_disruption_and_is_replaced_at_once(cluster, jobs, measured):
    jobs.apply(shell_job(cluster, "forced", f"[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; {sleeps(100000)}"))
    pod = jobs.wait_running("forced", limit=60)
    # As `kubectl delete --force` does. The finalizer keeps the pod until its container has ended.
    deleted = time.monotonic()
    jobs.api("DELETE", f"{jobs.pods_path}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    measured("pod deleted by force", KUBELET_GRACE + RECONCILE, wait_attempt_pod(jobs, "forced", 2, 30) - deleted)
    status = end_of(jobs, "forced")
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 2, 1), dump(status)
    assert outcomes(status)[0][1] == "Lost"


def test_a_pod_that_is_evicted_is_a_disruption_and_is_replaced_at_once(cluster, jobs, measured):
    jobs.apply(shell_job(cluster, "evicted", f"[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; {sleeps(100000)}"))
    pod = jobs.wait_running("evicted", limit=60)
    name = pod["metadata"]["name"]
    evicted = time.monotonic()
    jobs.api("POST", f"{jobs.pods_path}/{name}/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    measured("pod evicted", grace + RECONCILE, wait_attempt_pod(jobs, "evicted", 2, 30) - evicted)
    status = end_of(jobs, "evicted")
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Succeeded", 2, 1), dump(status)
