"""Workers that hang, and workers that are frozen and thawed when their turn is over, on a real kubelet."""

import time

from holdfast import place
from localcluster import wait_for
from real_jobs import dump, end_of, outcomes, shell_job, sleeps, wait_attempt_pod

DURATION = 10
PROGRESS = 15
RECONCILE = 1
TOKEN = "/var/run/secrets/holdfast.dev/token"
FAST_RETRY = {"initialSeconds": 1, "maxSeconds": 1, "jitterPercent": 0}


def beating(cluster, name, script, **spec):
    return shell_job(cluster, name, script, heartbeat={"leaseDurationSeconds": DURATION}, **spec)


def lease_of(jobs, name):
    """(path, Lease) of the job."""
    uid = jobs.get(name)["metadata"]["uid"]
    path = f"/apis/coordination.k8s.io/v1/namespaces/{jobs.namespace}/leases/holdfast-{uid}"
    return path, jobs.api("GET", path)


def wait_beating(jobs, name, pod, limit=60):
    """Until this pod's agent has renewed."""
    wait_for(f"a renewal by {pod['metadata']['name']}", lambda: (
        lambda spec: spec.get("holderIdentity", "").endswith(pod["metadata"]["uid"])
        and spec.get("renewTime"))(lease_of(jobs, name)[1]["spec"]), limit)


def test_a_worker_that_proves_life_and_progress_runs_to_its_end(cluster, jobs):
    jobs.apply(shell_job(
        cluster, "steady", "for n in 1 2 3 4 5 6; do /holdfast/agent progress \"$n of 6\"; sleep 4; done",
        heartbeat={"leaseDurationSeconds": DURATION, "progressDeadlineSeconds": PROGRESS}))
    jobs.wait("steady", lambda s: "of 6" in place(s).get("progress", ""), 60, "progress to be shown")
    status = end_of(jobs, "steady")
    # Written half a minute apart while it runs; what it said last is written with the end.
    assert (status["phase"], status["attempt"], place(status)["progress"]) == ("Succeeded", 1, "6 of 6"), dump(status)


def test_the_agent_is_in_memory_beside_a_small_worker_and_asks_its_probe(cluster, jobs):
    # The node's disk may hang; the program and the files of what must kill the child then may not.
    jobs.apply(shell_job(
        cluster, "small", 'set -e; [ "$(stat -f -c %T /holdfast)" = tmpfs ]; '
        "until /holdfast/agent check -- true; do sleep 0.1; done; "
        "/holdfast/agent check -- sh -c 'exit 7' || [ $? = 7 ]; "
        "printf 'one\\n\\033[1mline\\n' >$HOLDFAST_PROGRESS_FILE; sleep 2",
        container_fields={"resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "32Mi"}}},
        backoffLimit=0, heartbeat={"leaseDurationSeconds": DURATION}))
    status = end_of(jobs, "small")
    assert (status["phase"], status["attempt"]) == ("Succeeded", 1), dump(status)
    assert place(status)["progress"] == "one  [1mline", dump(status)


def test_a_child_that_hangs_is_replaced_within_its_progress_deadline(cluster, jobs, measured):
    jobs.apply(shell_job(
        cluster, "hung", f"[ $HOLDFAST_ATTEMPT = 1 ] || exit 0; {sleeps(100000)}", retryBackoff=FAST_RETRY,
        heartbeat={"leaseDurationSeconds": DURATION, "progressDeadlineSeconds": PROGRESS}))
    pod = jobs.wait_running("hung", limit=60)
    wait_beating(jobs, "hung", pod)
    began = time.monotonic()
    status = jobs.wait("hung", lambda s: s.get("history"), PROGRESS + 60, "the attempt to end")
    measured("child hangs, to the verdict", PROGRESS + RECONCILE, time.monotonic() - began)
    assert outcomes(status)[0][1] == "Hung", dump(status)
    status = end_of(jobs, "hung")
    assert (status["phase"], status["attempt"], status["failures"]) == ("Succeeded", 2, 1), dump(status)


def test_a_frozen_worker_that_is_thawed_after_its_successor_began_is_refused(cluster, nodes, jobs, measured):
    # The first attempt would succeed as soon as it may go on; its successor runs until it is told to end.
    # Until the pod's grace is over the kubelet leaves a frozen container alone.
    jobs.apply(beating(cluster, "thawed", "[ $HOLDFAST_ATTEMPT = 1 ] && trap 'exit 0' TERM; "
                       "sleep 100000 & wait $!", backoffLimit=0,
                       pod={"terminationGracePeriodSeconds": 120}))
    old = jobs.wait_running("thawed", limit=60)
    wait_beating(jobs, "thawed", old)
    token = cluster.kubectl("-n", jobs.namespace, "exec", old["metadata"]["name"], "-c", "main", "--",
                            "cat", TOKEN).stdout
    node = old["spec"]["nodeName"]
    container, _ = cluster.container_of(node, old)
    path, before = lease_of(jobs, "thawed")
    assert cluster.api_as(token, "PUT", f"{path}?dryRun=All", before)[0] in (200, 409)
    cluster.await_operators()
    fenced = cluster.metric("holdfast_fenced_outcomes_total")
    with cluster.frozen(node, container):
        began = time.monotonic()
        seen = wait_attempt_pod(jobs, "thawed", 2, DURATION + 60)
        measured("worker is frozen (cgroup freezer)", DURATION + RECONCILE, seen - began)
        new = jobs.wait_pod("thawed", lambda pod: pod["metadata"]["uid"] != old["metadata"]["uid"] and
                            pod["status"].get("phase") == "Running", 60)
        wait_beating(jobs, "thawed", new, 3 * DURATION)
        # What the old one would write with its own token when it wakes, and what it had read.
        status, answer = cluster.api_as(token, "PUT", path, {**before, "metadata": {
            **before["metadata"], "resourceVersion": lease_of(jobs, "thawed")[1]["metadata"]["resourceVersion"]}})
        assert (status, "fenced: " in str(answer)) in ((403, True), (422, True), (401, False)), answer
    old_path = f"{jobs.pods_path}/{old['metadata']['name']}"
    wait_for("the thawed pod to be gone", lambda: cluster.api("GET", old_path)[0] == 404, 60)
    status = jobs.status("thawed")
    assert (status["phase"], status["attempt"], status["disruptions"]) == ("Running", 2, 1), dump(status)
    assert lease_of(jobs, "thawed")[1]["spec"]["holderIdentity"].endswith(new["metadata"]["uid"])
    wait_for("the old pod's end to be counted as fenced", lambda: cluster.metric(
        "holdfast_fenced_outcomes_total") == fenced + 1, 60, poll=0.5)
    jobs.patch("thawed", cancel=True)
    assert end_of(jobs, "thawed")["phase"] == "Cancelled"
