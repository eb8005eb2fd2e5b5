"""Warm workers on real kubelets: a pool's pods, the start of a job, and the loss of a worker and its node."""

import time

from localcluster import wait_for

from real_jobs import POD_SECURITY, container, dump, end_of, on

LEASE, REACTION = 10, 1
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
    wait_for(f"attempt {attempt} of {name}", lambda: jobs.status(name).get("attempt", 0) >= attempt, limit, poll=0.05)
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


def test_a_workers_node_that_loses_power_costs_the_lease(cluster, nodes, jobs, measured):
    victim, other = nodes
    make_pool(cluster, jobs, "there", pod=on(victim))
    jobs.apply(pooled("power", "[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; echo at work; sleep 1000", "there"))
    running_on(cluster, jobs, "power")
    with cluster.lost(victim, "kill", "start"):
        lost = time.monotonic()
        wait_for("the attempt to be lost", lambda: jobs.status("power").get("disruptions", 0) == 1, 120, poll=0.05)
        # Half of the shards may be the lost node's: then the take-over comes first.
        measured("a warm worker's node loses power", 18 + LEASE + REACTION, time.monotonic() - lost)
    status = end_of(jobs, "power", limit=240)
    assert status["phase"] == "Succeeded", dump(status)


def test_a_worker_that_is_deleted_finishes_its_job(cluster, jobs):
    make_pool(cluster, jobs)
    jobs.apply(pooled("finish", "echo at work; sleep 3"))
    pod = running_on(cluster, jobs, "finish")
    cluster.kubectl("-n", jobs.namespace, "delete", "pod", pod["metadata"]["name"], "--wait=false")
    status = end_of(jobs, "finish")
    assert [entry["outcome"] for entry in status["history"]] == ["Succeeded"], dump(status)
    wait_for("another worker", lambda: pool_status(jobs).get("idle", 0) >= 1, 120)


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
