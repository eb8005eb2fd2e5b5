"""What happens to a job whose pods do what they should, and what its pods look like."""

import re

import pytest

from holdfast import FINALIZER, job, place, runs
from lives import (BY_HAND, LONG_BACKOFF, STAYS, finalizers, settle, wait_events, wait_told)
from localcluster import wait_for
from losses import LOST_AFTER, pod_name, seconds_of
from replicas import SHARDS, shard_of

pytestmark = pytest.mark.usefixtures("operator")


def test_a_job_whose_pod_succeeds_is_succeeded(jobs):
    jobs.apply(job("hello", annotations=runs(0)))
    status = jobs.wait_phase("hello", "Succeeded")
    assert status["attempt"] == 1
    assert status["failures"] == 0
    assert status["completionTime"] >= status["startTime"]
    assert [entry["outcome"] for entry in status["history"]] == ["Succeeded"]
    assert status["history"][0]["exitCode"] == 0
    assert "waiting" not in status
    assert jobs.conditions("hello")["Complete"]["status"] == "True"


def test_what_is_on_record_of_an_attempt_is_what_its_pod_did(jobs):
    # That a pod runs is on record once it has for 3 s.
    jobs.apply(job("seen", annotations=runs(12)))
    running = wait_told(jobs, "seen", "PodRunning")
    pod = jobs.pod("seen")
    assert place(running)["nodeName"] == pod["spec"]["nodeName"]
    started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    # A kubelet's whole seconds may lie before the pod's creation, which no start does.
    assert 0 <= seconds_of(place(running)["startTime"]) - seconds_of(started) < 1
    status = settle(jobs, "seen")
    (entry,) = status["history"]
    assert (entry["podName"], entry["nodeName"]) == (place(status)["podName"], place(running)["nodeName"])
    assert entry["reason"] == "Completed"
    assert seconds_of(status["startTime"]) <= seconds_of(entry["startTime"])
    assert seconds_of(entry["startTime"]) <= seconds_of(entry["endTime"])
    assert status["observedGeneration"] == 1


# -- the pod -----------------------------------------------------------------------------------


def test_the_pod_is_named_owned_and_held_as_promised(jobs):
    jobs.apply(job("made", pod=BY_HAND))
    pod = jobs.wait_pod("made", lambda pod: True)
    body = jobs.get("made")
    uid = body["metadata"]["uid"]
    assert pod["metadata"]["name"] == pod_name(body, 1) == place(body["status"])["podName"]
    assert pod["metadata"]["ownerReferences"] == [
        {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": "made", "uid": uid, "controller": True}
    ]
    assert pod["metadata"]["finalizers"] == [FINALIZER]
    assert pod["metadata"]["labels"] == {
        "holdfast.dev/job-name": "made",
        "holdfast.dev/job-uid": uid,
        "holdfast.dev/attempt": "1",
        "holdfast.dev/shard": f"{shard_of(uid)}-of-{SHARDS}",
    }
    assert pod["spec"]["restartPolicy"] == "Never"
    assert "finalizers" not in body["metadata"]


def environment(container):
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def test_every_container_and_init_container_has_the_fencing_token_in_its_environment(jobs):
    mine = [{"name": "HOLDFAST_ATTEMPT", "value": "77"}, {"name": "MINE", "value": "1"}]
    containers = {
        "initContainers": [
            {"name": "first", "image": "x"},
            {"name": "sidecar", "image": "x", "restartPolicy": "Always", "env": mine},
        ],
        "containers": [{"name": "main", "image": "x", "env": mine}, {"name": "b", "image": "x"}],
    }
    jobs.apply(job("told", pod=dict(BY_HAND, **containers)))
    spec = jobs.wait_pod("told", lambda pod: True)["spec"]
    ours = {
        "HOLDFAST_JOB_NAME": "told",
        "HOLDFAST_JOB_UID": jobs.get("told")["metadata"]["uid"],
        "HOLDFAST_ATTEMPT": "1",
    }
    for container in spec["initContainers"] + spec["containers"]:
        extra = {"MINE": "1"} if container["name"] in ("sidecar", "main") else {}
        assert environment(container) == {**ours, **extra}, container["name"]
        # Others' variables may refer to ours: those come first.
        assert [entry["name"] for entry in container["env"]][:3] == list(ours)


def test_the_second_attempt_carries_its_own_number(jobs):
    jobs.apply(job("twice", annotations=runs(0, "1,0"), retryBackoff={"initialSeconds": 1}))
    settle(jobs, "twice")
    first, second = jobs.pods("twice")
    for number, pod in (("1", first), ("2", second)):
        assert pod["metadata"]["labels"]["holdfast.dev/attempt"] == number
        assert environment(pod["spec"]["containers"][0])["HOLDFAST_ATTEMPT"] == number


def test_what_a_template_says_under_our_prefix_gives_way_and_all_else_stays(jobs):
    jobs.apply(
        job(
            "labelled",
            labels={"holdfast.dev/attempt": "9", "holdfast.dev/mine": "x", "app": "web"},
            annotations={"holdfast.dev/note": "x", "example.com/note": "kept"},
            pod=BY_HAND,
        )
    )
    meta = jobs.wait_pod("labelled", lambda pod: True)["metadata"]
    uid = jobs.get("labelled")["metadata"]["uid"]
    assert meta["labels"] == {
        "app": "web",
        "holdfast.dev/job-name": "labelled",
        "holdfast.dev/job-uid": uid,
        "holdfast.dev/attempt": "1",
        "holdfast.dev/shard": f"{shard_of(uid)}-of-{SHARDS}",
    }
    assert set(meta["annotations"]) == {"example.com/note", "holdfast.dev/intent"}
    assert meta["annotations"]["example.com/note"] == "kept"


def test_a_job_with_the_longest_name_runs(jobs):
    name = "n" * 63
    jobs.apply(job(name, annotations=runs(0)))
    status = settle(jobs, name)
    assert status["phase"] == "Succeeded"
    assert jobs.pods(name)[0]["metadata"]["labels"]["holdfast.dev/job-name"] == name


def test_an_ended_pod_stays_for_its_logs_and_is_held_by_nothing(jobs):
    jobs.apply(job("done", annotations=runs(0)))
    settle(jobs, "done")
    (pod,) = jobs.pods("done")
    assert "deletionTimestamp" not in pod["metadata"]
    assert not pod["metadata"].get("finalizers")


# -- what it says ------------------------------------------------------------------------------


def assert_told(status, phase, reason, *words):
    """The job says what it waits for and what happens next; returns `waiting`."""
    assert status["phase"] == phase
    waiting = status["waiting"]
    assert waiting["reason"] == reason
    assert waiting["nextAction"]
    text = waiting["message"] + " / " + waiting["nextAction"]
    assert all(word in text for word in words), text
    return waiting


def test_a_job_says_what_it_waits_for_in_every_phase_that_is_not_terminal(jobs):
    jobs.apply(job("starts", pod=dict(BY_HAND)))
    jobs.apply(job("nowhere", pod={"nodeSelector": {"no": "where"}}))
    jobs.apply(job("no-image", annotations={"holdfast-test/waiting": "ImagePullBackOff"}))
    jobs.apply(job("runs"))
    jobs.apply(job("limited", activeDeadlineSeconds=3000, attemptDeadlineSeconds=2000))
    jobs.apply(job("backs-off", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF))
    jobs.apply(job("sleeps", suspend=True))
    jobs.apply(job("leaves", annotations=STAYS, lostAfterSeconds=LOST_AFTER))
    pends = dict(annotations=STAYS, podReplacementPolicy="Failed", lostAfterSeconds=3600)
    jobs.apply(job("pends", **pends))

    status = wait_told(jobs, "starts", "PodStarting")
    waiting = assert_told(status, "Running", "PodStarting", place(status)["podName"])
    assert "deadline" not in waiting  # nobody knows when it will have a node

    status = wait_told(jobs, "nowhere", "PodUnschedulable")
    waiting = assert_told(status, "Running", "PodUnschedulable", "nodes are available")
    assert "deadline" not in waiting and waiting["since"]
    status = wait_told(jobs, "no-image", "ImagePullBackOff")
    assert assert_told(status, "Running", "ImagePullBackOff", "container main")["deadline"]

    status = wait_told(jobs, "runs", "PodRunning")
    waiting = assert_told(status, "Running", "PodRunning", place(status)["podName"], place(status)["nodeName"])
    assert "deadline" not in waiting

    status = wait_told(jobs, "limited", "PodRunning")
    waiting = assert_told(status, "Running", "PodRunning", "ends as DeadlineExceeded")
    started = seconds_of(place(status)["startTime"])
    assert abs(seconds_of(waiting["deadline"]) - started - 2000) <= 2

    status = jobs.wait_phase("backs-off", "Backoff")
    waiting = assert_told(status, "Backoff", "RetryBackoff", "attempt 1", "attempt 2 starts")
    assert waiting["deadline"][:19] == place(status)["nextAttemptTime"][:19]

    status = jobs.wait_phase("sleeps", "Suspended")
    assert "deadline" not in assert_told(status, "Suspended", "Suspended", "spec.suspend")

    jobs.wait_running("leaves")
    jobs.patch("leaves", cancel=True)
    status = jobs.wait("leaves", lambda s: s.get("waiting", {}).get("deadline"), 60)
    jobs.wait_phase("leaves", "Cancelling")
    status = jobs.wait("leaves", lambda s: "deadline" in s["waiting"], 60)
    assert_told(status, "Cancelling", "PodTerminating", place(status)["podName"], "Cancelled")

    pod = jobs.wait_running("pends")
    jobs.patch("pends", suspend=True)
    jobs.wait_phase("pends", "Suspended")
    jobs.patch("pends", suspend=False)
    status = wait_told(jobs, "pends", "OldPodNotEnded")
    assert_told(status, "Pending", "OldPodNotEnded", pod["metadata"]["name"])


def test_a_success_makes_one_event_and_so_does_what_did_not_go_as_asked(jobs):
    jobs.apply(job("succeeds", annotations=runs(1)))
    jobs.apply(job("expires", annotations=runs(0), ttlSecondsAfterFinished=600))
    jobs.apply(job("pauses"))
    jobs.apply(job("fails-once", annotations=runs(0, "1,0"), retryBackoff={"initialSeconds": 1}))
    jobs.apply(job("cancelled"))
    jobs.apply(job("too-long", activeDeadlineSeconds=2, pod=BY_HAND))
    jobs.wait_running("pauses")
    jobs.patch("pauses", suspend=True)
    jobs.wait_phase("pauses", "Suspended")
    jobs.patch("pauses", suspend=False)
    jobs.wait_running("cancelled")
    jobs.patch("cancelled", cancel=True)
    wait_told(jobs, "pauses", "PodRunning")
    jobs.end_pod(jobs.wait_running("pauses"))
    settle(jobs, "succeeds", "expires", "pauses", "fails-once", "cancelled", "too-long")
    wait_events(jobs, "fails-once", "AttemptFailed", "Completed")
    wait_events(jobs, "cancelled", "Cancelled")
    wait_events(jobs, "too-long", "DeadlineExceeded")
    for name in ("succeeds", "expires", "pauses"):
        wait_events(jobs, name, "Completed")
    [event] = [one for one in jobs.events("fails-once") if one["reason"] == "AttemptFailed"]
    assert event["type"] == "Warning" and event["action"] == "Retry"
    assert "attempt 1" in event["note"] and "exit code 1" in event["note"]
    assert event["regarding"]["uid"] == jobs.get("fails-once")["metadata"]["uid"]
    assert event["reportingController"] == "holdfast.dev/operator"


def table(text):
    """[{column: cell}] of kubectl's output; cells are as wide as their column."""
    lines = text.rstrip("\n").split("\n")
    heads = lines[0].split()
    starts = [found.start() for found in re.finditer(r"\S+", lines[0])] + [None]
    return heads, [{head: line[a:b].strip() for head, a, b in zip(heads, starts, starts[1:])} for line in lines[1:]]


def test_kubectl_get_prints_where_the_job_stands(cluster, jobs):
    jobs.apply(job("done", annotations=runs(1)))
    jobs.apply(job("waits", annotations=runs(0, 1), retryBackoff=LONG_BACKOFF))
    settle(jobs, "done")
    jobs.wait_phase("waits", "Backoff")
    node = place(jobs.status("waits"))["nodeName"]

    heads, rows = table(cluster.kubectl("get", "dj", "-n", jobs.namespace).stdout)
    assert heads == ["NAME", "PHASE", "COMPLETIONS", "STAGE", "ATTEMPT", "WAITING", "FAILURES", "AGE", "PROGRESS"]
    done, waits = rows
    assert list(done.values())[:7] == ["done", "Succeeded", "1/1", "", "1", "", "0"]
    assert list(waits.values())[:7] == ["waits", "Backoff", "0/1", "", "1", "RetryBackoff", "1"]

    heads, rows = table(cluster.kubectl("get", "djob", "-n", jobs.namespace, "-o", "wide").stdout)
    assert heads[8:] == ["NODE", "DEADLINE", "DISRUPTIONS", "STARTED", "COMPLETED", "PROGRESS"]
    assert (rows[1]["NODE"], rows[1]["DISRUPTIONS"]) == (node, "0")
    assert rows[1]["DEADLINE"] == jobs.status("waits")["waiting"]["deadline"] and not rows[0]["DEADLINE"]
    assert rows[0]["STARTED"] and rows[0]["COMPLETED"] and not rows[1]["COMPLETED"]

    # `all` lists them too.
    listed = cluster.kubectl("get", "all", "-n", jobs.namespace).stdout
    assert "durablejob.holdfast.dev/done" in listed


def test_many_jobs_at_once_all_end(jobs):
    names = [f"many-{number}" for number in range(40)]
    for name in names:
        jobs.apply(job(name, annotations=runs(0)))
    wait_for(
        "all jobs to succeed",
        lambda: all(j.get("status", {}).get("phase") == "Succeeded" for j in jobs.list()),
        120,
    )
    wait_for("all pods to be released", lambda: not finalizers(jobs), 60)
    assert all(j["status"]["attempt"] == 1 for j in jobs.list())
    assert len(jobs.pods()) == len(names)
