"""Attempts that are on record and whose pod was not created: whoever recorded them is gone."""

import signal
import time

import pytest

from holdfast import FINALIZER, OPERATOR_USER, Operator, job, place, runs
from localcluster import wait_for
from losses import (
    REACTION,
    SLACK,
    assert_one_disruption,
    created_at,
    delete_pod,
    finish,
    pod_name,
    pod_named,
    recoveries,
    time_text,
    wait_attempt,
    write_times,
)

# A member lease and a retry period: by then whoever recorded the attempt has stopped acting.
WAIT_FOR_ITS_WRITER = 17


def record_attempt(jobs, name, refused=None, ago=0):
    """What a replica that died before it created the pod leaves behind. Returns the pod's name."""
    created = jobs.apply(job(name))
    now = time_text(time.time() - ago)
    pod = pod_name(created, 1)
    created["status"] = {
        "phase": "Running",
        "attempt": 1,
        "runs": [{"index": 0, "attempt": 1, "podName": pod, "startTime": now,
                  **({"refused": refused} if refused else {})}],
        "startTime": now,
        "observedGeneration": 1,
        "waiting": {"reason": "PodStarting", "message": "as recorded", "nextAction": "as recorded"},
    }
    jobs.api("PUT", f"{jobs.path}/{name}/status", created)
    return pod


def create_late(jobs, name, pod):
    """The dead replica's request for the pod of attempt 1 arrives after all."""
    owner = jobs.get(name)
    labels = {
        "holdfast.dev/job-name": name,
        "holdfast.dev/job-uid": owner["metadata"]["uid"],
        "holdfast.dev/attempt": "1",
    }
    return jobs.api(
        "POST",
        jobs.pods_path,
        {
            "metadata": {
                "name": pod,
                "labels": labels,
                "annotations": {"holdfast.dev/intent": owner["status"]["runs"][0]["startTime"]},
                "finalizers": [FINALIZER],
                "ownerReferences": [
                    {
                        "apiVersion": "holdfast.dev/v1alpha1",
                        "kind": "DurableJob",
                        "name": name,
                        "uid": owner["metadata"]["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"},
        },
    )


def wait_all_held(operator):
    wait_for("the operator to hold all shards", lambda: operator.metric("holdfast_shards_held") == 32, 60)


def test_an_intent_that_a_dead_replica_left_behind_is_lost_as_soon_as_its_shard_is_taken(cluster, jobs):
    record_attempt(jobs, "left-behind", ago=WAIT_FOR_ITS_WRITER)
    offset = cluster.audit_offset()
    with Operator(cluster) as operator:
        wait_all_held(operator)
        taken = time.time()
        status = wait_attempt(jobs, "left-behind", 2)
        assert_one_disruption(status, "PodNeverCreated")
        assert created_at(cluster, offset, place(status)["podName"]) - taken <= REACTION + SLACK
        assert finish(jobs, "left-behind")["attempt"] == 2


@pytest.fixture()
def late_pod_jobs(cluster, jobs):
    """Three intents that another replica records while an operator holds the shards, which sees none of
    the jobs before."""
    with Operator(cluster) as operator:
        wait_all_held(operator)
        offset = cluster.audit_offset()
        operator.signal(signal.SIGSTOP)
        pods = {
            "bare": record_attempt(jobs, "bare"),
            "late": record_attempt(jobs, "late"),
            "refused": record_attempt(jobs, "refused", refused="exceeded quota"),
        }
        operator.signal(signal.SIGCONT)
        yield operator, pods, offset, time.time()


def test_another_replicas_intent_is_lost_after_its_writers_time_and_no_attempt_gets_two_pods(
    cluster, jobs, late_pod_jobs
):
    operator, pods, offset, began = late_pod_jobs

    # The writer of one lives: its pod appears in time, and is the attempt's.
    create_late(jobs, "late", pods["late"])

    # The run says that the creation was refused: then the same attempt is tried again at once.
    assert finish(jobs, "refused")["attempt"] == 1
    assert created_at(cluster, offset, pods["refused"]) - began <= REACTION + SLACK

    assert finish(jobs, "late")["attempt"] == 1

    status = wait_attempt(jobs, "bare", 2)
    assert_one_disruption(status, "PodNeverCreated")
    took = created_at(cluster, offset, place(status)["podName"]) - began
    assert WAIT_FOR_ITS_WRITER - 2 <= took <= WAIT_FOR_ITS_WRITER + REACTION + SLACK
    count, total = recoveries(operator, "intent_without_pod", at_least=1)
    assert count == 1 and WAIT_FOR_ITS_WRITER <= total <= WAIT_FOR_ITS_WRITER + REACTION + SLACK

    # Too late: it is of an old attempt.
    create_late(jobs, "bare", pods["bare"])
    wait_for("the late pod of the lost attempt to be gone", lambda: not pod_named(jobs, pods["bare"]), 60)
    assert finish(jobs, "bare")["attempt"] == 2
    assert not write_times(cluster, offset, "create", pods["bare"], user=OPERATOR_USER)
    assert not write_times(cluster, offset, "create", pods["late"], user=OPERATOR_USER)


def test_an_attempt_whose_pod_vanished_while_no_operator_ran_is_lost_when_one_starts(cluster, jobs):
    with Operator(cluster):
        jobs.apply(job("vanished"))
        jobs.wait_running("vanished")
        jobs.wait("vanished", lambda s: place(s).get("nodeName"), 60)
    pod = jobs.pod("vanished")
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    jobs.api("PATCH", path, {"metadata": {"finalizers": None}}, content_type="merge")
    delete_pod(jobs, pod, grace=0)
    with Operator(cluster):
        assert_one_disruption(wait_attempt(jobs, "vanished", 2), "PodGone")
        assert finish(jobs, "vanished")["attempt"] == 2


def test_a_restarted_operator_takes_up_running_attempts_and_creates_nothing_twice(cluster, jobs):
    names = [f"job-{number}" for number in range(5)]
    offset = cluster.audit_offset()
    with Operator(cluster):
        for name in names:
            jobs.apply(job(name, annotations=runs(8)))
        for name in names:
            jobs.wait_started(name)
    with Operator(cluster):
        for name in names:
            status = jobs.wait_phase(name, "Succeeded")
            assert (status["attempt"], status["disruptions"]) == (1, 0)
            created_at(cluster, offset, place(status)["podName"])
