"""Warm workers on real kubelets: a pool's pods, the start of a job, and the loss of a worker and its node."""

import threading
import time

import pytest

from localcluster import wait_for

from real_jobs import POD_SECURITY, container, dump, end_of
from replicas import holders, shard_of

LEASE, REACTION = 10, 1
TAKE_OVER = 17
POOL = "small"
# The payload is a script: the pool's command runs it, and leaves with its exit code.
RUNS_ITS_PAYLOAD = 'payload=$(cat); eval "$payload"'


def make_pool(cluster, jobs, name=POOL, pod=None, **spec):
    template = {"spec": {"securityContext": POD_SECURITY, "restartPolicy": "Never",
                         "terminationGracePeriodSeconds": 10,
                         "containers": [container(cluster, RUNS_ITS_PAYLOAD)], **(pod or {})}}
    jobs.api("POST", f"/apis/holdfast.dev/v1alpha1/namespaces/{jobs.namespace}/workerpools", {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name},
        "spec": {"template": template, "leaseDurationSeconds": LEASE, **spec}})
    wait_for(f"pool {name} to have its workers", lambda: pool_status(jobs, name).get("idle", 0) >= spec.get(
        "minWorkers", 1), 120)


def pool_status(jobs, name=POOL):
    return jobs.api("GET", f"/apis/holdfast.dev/v1alpha1/namespaces/{jobs.namespace}/workerpools/{name}").get(
        "status", {})


def pooled(name, script, pool=POOL, **spec):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"workerPool": {"name": pool}, "payload": script, **spec}}


def worker_of(jobs, name):
    runs = jobs.status(name).get("runs") or [{}]
    return runs[0].get("workerName")


def wait_on_worker(jobs, name):
    return wait_for(f"{name} to be on a worker", lambda: worker_of(jobs, name), 60)


def wait_attempt(jobs, name, attempt, limit):
    jobs.wait(name, lambda s: s.get("attempt", 0) >= attempt, limit, f"attempt {attempt} of {name}")
    return time.monotonic()


def running_on(cluster, jobs, name):
    """The worker's pod, once it says that the command runs."""
    worker = wait_on_worker(jobs, name)
    wait_for(f"{name} to run", lambda: f"{name} 1] at work" in cluster.kubectl(
        "-n", jobs.namespace, "logs", worker, check=False).stdout, 60)
    return jobs.api("GET", f"{jobs.pods_path}/{worker}")


def test_a_job_runs_on_a_warm_worker_and_its_log_says_whose_lines_are_whose(cluster, jobs):
    make_pool(cluster, jobs)
    jobs.apply(pooled("first", "echo hello from $HOLDFAST_JOB_NAME; echo -n 42 > $HOLDFAST_RESULT_FILE"))
    status = end_of(jobs, "first")
    assert status["phase"] == "Succeeded", dump(status)
    worker = status["history"][0]["workerName"]
    # The worker may have run the job before its kubelet has said that it runs.
    wait_for("the line in the worker's log", lambda: "[first 1] hello from first" in cluster.kubectl(
        "-n", jobs.namespace, "logs", worker, check=False).stdout, 60)
    jobs.apply(pooled("fails", "exit 3", backoffLimit=0))
    status = end_of(jobs, "fails")
    assert (status["phase"], status["history"][0]["exitCode"]) == ("Failed", 3), dump(status)


def test_a_workers_process_that_is_killed_costs_a_second(cluster, jobs, measured):
    make_pool(cluster, jobs, minWorkers=2)
    jobs.apply(pooled("killed", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; echo at work; sleep 1000"))
    pod = running_on(cluster, jobs, "killed")
    node = pod["spec"]["nodeName"]
    _, pid = cluster.container_of(node, pod)
    cluster.on_node(node, "kill", "-9", str(pid))
    wait_for("the pod to have ended", lambda: jobs.api("GET", f"{jobs.pods_path}/{pod['metadata']['name']}")[
        "status"]["phase"] == "Failed", 60, poll=0.05)
    seen = time.monotonic()
    measured("a worker's process is killed", REACTION, wait_attempt(jobs, "killed", 2, 60) - seen)
    status = end_of(jobs, "killed")
    assert [entry["reason"] for entry in status["history"]][0] == "WorkerLost", dump(status)


def test_a_worker_that_is_frozen_is_cut_off_and_its_command_is_dead_when_it_thaws(cluster, jobs, measured):
    make_pool(cluster, jobs, minWorkers=2)
    jobs.apply(pooled("frozen", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; echo at work; sleep 1000"))
    pod = running_on(cluster, jobs, "frozen")
    node = pod["spec"]["nodeName"]
    runs, _ = cluster.container_of(node, pod)
    with cluster.frozen(node, runs):
        began = time.monotonic()
        measured("a warm worker is frozen", LEASE + REACTION, wait_attempt(jobs, "frozen", 2, 90) - began)
    wait_for("the worker to end", lambda: all(
        one["metadata"]["name"] != pod["metadata"]["name"] or one["status"]["phase"] in ("Failed", "Succeeded")
        for one in jobs.api("GET", jobs.pods_path)["items"]), 60)
    assert end_of(jobs, "frozen")["phase"] == "Succeeded"


def test_a_command_without_progress_is_hung(cluster, jobs, measured):
    make_pool(cluster, jobs)
    progress = 10
    jobs.apply(pooled("hung", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; echo at work; sleep 1000",
                      heartbeat={"progressDeadlineSeconds": progress},
                      retryBackoff={"initialSeconds": 1, "maxSeconds": 1, "jitterPercent": 0}))
    running_on(cluster, jobs, "hung")
    began = time.monotonic()
    wait_for("the attempt to end", lambda: jobs.status("hung").get("failures", 0) == 1, 60, poll=0.05)
    measured("a warm worker's command hangs", progress + REACTION, time.monotonic() - began)
    assert end_of(jobs, "hung")["phase"] == "Succeeded"


def node_of_owner(cluster, namespace):
    """The node of the replica that works on the namespace's pools."""
    shard = shard_of(namespace)

    def node():
        replica = holders(cluster)[shard]
        return next((pod["spec"]["nodeName"] for pod in cluster.operators() if pod["metadata"]["name"] == replica), None)

    return wait_for(f"a replica to hold shard {shard}", node, 60)


# With the worker goes the replica that judges it, or the other one. Its successor watches the worker's silence anew.
@pytest.mark.parametrize("together, bound", [(False, LEASE + REACTION), (True, TAKE_OVER + LEASE + REACTION)],
                         ids=["alone", "together with its operator"])
def test_a_workers_node_that_loses_power(cluster, nodes, jobs, measured, together, bound):
    cluster.spread_operators()
    spread = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                             "whenUnsatisfiable": "DoNotSchedule",
                                             "labelSelector": {"matchLabels": {"holdfast.dev/worker-pool": POOL}}}]}
    make_pool(cluster, jobs, pod=spread, minWorkers=2, slotsPerWorker=2)
    # Three jobs for two times two slots: each worker has one at least. One of the survivor's makes room.
    names = [f"power-{number}" for number in range(3)]
    for name in names:
        jobs.apply(pooled(name, "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; echo at work; sleep 1000"))
    places = {name: running_on(cluster, jobs, name)["spec"]["nodeName"] for name in names}
    # Not before: replicas that have just come still balance their shards.
    owner = node_of_owner(cluster, jobs.namespace)
    victim = next(node for node in nodes if (node == owner) == together)
    lost = next(name for name in names if places[name] == victim)
    survives = next(name for name in names if places[name] != victim)
    jobs.patch(survives, cancel=True)
    jobs.wait_phase(survives, "Cancelled")
    with cluster.lost(victim, "kill", "start"):
        killed = time.monotonic()
        measured(f"a warm worker's node loses power{' with its operator' if together else ''}", bound,
                 wait_attempt(jobs, lost, 2, 90) - killed)
        status = end_of(jobs, lost)
    assert status["phase"] == "Succeeded", dump(status)
    assert [entry["outcome"] for entry in status["history"]] == ["Lost", "Succeeded"], dump(status)


def test_a_worker_that_is_deleted_finishes_its_job(cluster, jobs):
    make_pool(cluster, jobs, stopGraceSeconds=2)
    jobs.apply(pooled("finish", "echo at work; sleep 3"))
    pod = running_on(cluster, jobs, "finish")
    cluster.kubectl("-n", jobs.namespace, "delete", "pod", pod["metadata"]["name"], "--wait=false")
    status = end_of(jobs, "finish")
    assert [entry["outcome"] for entry in status["history"]] == ["Succeeded"], dump(status)
    wait_for("another worker", lambda: pool_status(jobs).get("idle", 0) >= 1, 120)


# A command says on its log that SIGTERM came, and goes on.
DEAF = "trap 'echo SIGTERM at {name}' TERM; echo at work; while true; do sleep 0.1; done"


def test_a_drained_node_leaves_commands_sigterm_and_a_moment(cluster, jobs, nodes):
    make_pool(cluster, jobs, minWorkers=2, stopGraceSeconds=60, pod={"terminationGracePeriodSeconds": 3600})
    jobs.apply(pooled("drained", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; " + DEAF.format(name="drained")))
    pod = running_on(cluster, jobs, "drained")
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    drain = threading.Thread(target=cluster.kubectl, args=(
        "drain", node, "--grace-period=10", "--ignore-daemonsets", "--delete-emptydir-data", "--force",
        f"--pod-selector=holdfast.dev/worker-pool={POOL}", "--timeout=60s"))
    drain.start()
    try:
        wait_for("SIGTERM in the command's log", lambda: "SIGTERM at drained" in cluster.kubectl(
            "-n", jobs.namespace, "logs", name, check=False).stdout, 30, poll=0.2)
    finally:
        drain.join()
        cluster.kubectl("uncordon", node)
    status = end_of(jobs, "drained")
    assert [entry["outcome"] for entry in status["history"]] == ["Lost", "Succeeded"], dump(status)
    assert status["history"][0]["reason"] == "WorkerStopped", dump(status)


# More than the limit, in a process of the command's own. With cgroup v2 the kernel kills all of the container, so the
# worker with its other commands. With v1 it kills that process alone.
EATS = "echo at work; head -c 200m /dev/zero | tail"
LIMITED = {"requests": {"cpu": "1m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}}


def limited(cluster):
    return {"containers": [container(cluster, RUNS_ITS_PAYLOAD, resources=LIMITED)]}


def kills_the_container(cluster, jobs):
    """Whether the nodes have cgroup v2, as a worker sees it."""
    [pod] = jobs.api("GET", f"{jobs.pods_path}?labelSelector=holdfast.dev/worker-pool={POOL}")["items"]
    return cluster.kubectl("-n", jobs.namespace, "exec", pod["metadata"]["name"], "-c", "main", "--", "test", "-e",
                           "/sys/fs/cgroup/cgroup.controllers", check=False).returncode == 0


def check_out_of_memory(status, whole):
    entry = status["history"][-1]
    assert (entry["outcome"], entry["exitCode"]) == ("Failed", 137), dump(status)
    assert not whole or entry["reason"] == "OOMKilled", dump(status)
    assert status["phase"] == "Failed", dump(status)


def test_a_command_alone_on_its_worker_that_runs_out_of_memory_has_failed(cluster, jobs):
    make_pool(cluster, jobs, pod=limited(cluster), slotsPerWorker=2)
    whole = kills_the_container(cluster, jobs)
    jobs.apply(pooled("eater", EATS, backoffLimit=0))
    status = end_of(jobs, "eater")
    check_out_of_memory(status, whole)
    assert len(status["history"]) == 1 and status.get("disruptions", 0) == 0, dump(status)


def test_of_commands_that_run_out_of_memory_together_the_guilty_one_is_found(cluster, jobs):
    make_pool(cluster, jobs, pod=limited(cluster), slotsPerWorker=2, maxWorkers=2)
    whole = kills_the_container(cluster, jobs)
    jobs.apply(pooled("innocent", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; echo at work; sleep 1000"))
    running_on(cluster, jobs, "innocent")
    jobs.apply(pooled("guilty", EATS, backoffLimit=0))
    status = end_of(jobs, "guilty")
    check_out_of_memory(status, whole)
    reasons = [entry["reason"] for entry in status["history"]]
    innocent = jobs.status("innocent")
    if not whole:
        assert len(reasons) == 1, dump(status)
        assert (innocent["phase"], innocent["attempt"]) == ("Running", 1), dump(innocent)
        return
    assert reasons == ["WorkerOOMKilled", "OOMKilled"], dump(status)
    innocent = end_of(jobs, "innocent")
    assert innocent["phase"] == "Succeeded", dump(innocent)
    assert [entry["reason"] for entry in innocent["history"]] == ["WorkerOOMKilled", "Completed"], dump(innocent)


def test_a_pool_grows_by_what_waits_and_shrinks_again(cluster, jobs):
    make_pool(cluster, jobs, "elastic", minWorkers=1, maxWorkers=3, idleSeconds=3)
    for number in range(3):
        jobs.apply(pooled(f"grow-{number}", "echo at work; sleep 15", "elastic"))
    most = 0

    def all_ended():
        nonlocal most
        most = max(most, pool_status(jobs, "elastic").get("workers", 0))
        return all(jobs.status(f"grow-{number}").get("phase") == "Succeeded" for number in range(3))

    wait_for("the jobs to end", all_ended, 180, poll=0.5)
    assert most == 3
    status = wait_for("the pool to shrink", lambda: (
        lambda seen: seen if seen.get("workers") == 1 and not seen.get("draining") else None)(
            pool_status(jobs, "elastic")), 120)
    assert status["idle"] == 1, status
