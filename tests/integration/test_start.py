"""Pods that are created and do not start."""

import pytest

from holdfast import job, place
from localcluster import wait_for
from losses import (
    REACTION,
    SLACK,
    assert_one_disruption,
    created_at,
    finish,
    pod_named,
    recoveries,
    scheduled,
    seconds_of,
    set_pod_status,
    time_text,
    wait_attempt,
)

pytestmark = pytest.mark.usefixtures("operator")

# Long enough for what a pod waits for to be seen.
DEADLINE = 10
NO_IMAGE = {"holdfast-test/waiting": "ImagePullBackOff"}


def test_a_pod_that_does_not_start_on_its_node_ends_as_a_start_timeout(cluster, operator, jobs):
    offset = cluster.audit_offset()
    jobs.apply(job("no-start", startDeadlineSeconds=DEADLINE, annotations=NO_IMAGE))
    waiting = jobs.wait("no-start", lambda s: s.get("waiting", {}).get("reason") == "ImagePullBackOff", 60)["waiting"]
    assert "StartTimeout" in waiting["nextAction"]
    pod = jobs.pod("no-start")
    bound = seconds_of(scheduled(pod)["lastTransitionTime"])
    assert bound + DEADLINE - 1 <= seconds_of(waiting["deadline"]) <= bound + DEADLINE + 1

    status = wait_attempt(jobs, "no-start", 2)
    assert_one_disruption(status, "StartTimeout", outcome="StartTimeout")
    took = created_at(cluster, offset, place(status)["podName"]) - created_at(cluster, offset, pod["metadata"]["name"])
    assert DEADLINE - 1 <= took <= DEADLINE + REACTION + SLACK
    recoveries(operator, "pod_never_started", at_least=1)
    wait_for(
        "an event that tells why",
        lambda: any(
            "ImagePullBackOff" in event["note"]
            for event in jobs.events("no-start")
            if event["reason"] == "AttemptStartTimeout"
        ),
        60,
    )
    wait_for("the first pod to be gone", lambda: not pod_named(jobs, pod["metadata"]["name"]), 60)


def test_a_pod_whose_image_never_comes_spends_disruptions_until_the_job_fails(jobs):
    jobs.apply(job("no-image", startDeadlineSeconds=DEADLINE, disruptionLimit=0, annotations=NO_IMAGE))
    jobs.wait("no-image", lambda s: s.get("waiting", {}).get("reason") == "ImagePullBackOff", 60)
    status = jobs.wait_phase("no-image", "Failed")
    assert (status["attempt"], status["failures"], status["disruptions"]) == (1, 0, 1)
    assert status["history"][0]["outcome"] == "StartTimeout"
    condition = jobs.conditions("no-image")["Failed"]
    assert condition["reason"] == "DisruptionLimitExceeded"
    assert "ImagePullBackOff" in condition["message"]
    wait_for("its pod to be gone", lambda: not jobs.pods("no-image"), 60)


def test_an_init_container_that_runs_is_a_start(jobs):
    # The twin tells when the deadline of both is over.
    fields = {"annotations": {"holdfast-test/start-after": "600s"}, "startDeadlineSeconds": DEADLINE}
    initial = {"initContainers": [{"name": "prepare", "image": "busybox:1.36"}]}
    jobs.apply(job("prepares", pod=initial, **fields))
    pod = jobs.wait_pod("prepares", lambda found: found["spec"].get("nodeName"))
    set_pod_status(
        jobs,
        pod,
        initContainerStatuses=[
            {
                "name": "prepare",
                "image": "x",
                "imageID": "x",
                "ready": False,
                "restartCount": 0,
                "state": {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}},
            }
        ],
    )
    jobs.apply(job("twin", **fields))
    wait_attempt(jobs, "twin", 2)
    status = jobs.wait("prepares", lambda s: s["waiting"]["reason"] == "PodRunning", 60)
    assert (status["attempt"], status["disruptions"]) == (1, 0)


def container_status(name, state, **fields):
    return {"name": name, "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state} | fields


def test_an_image_that_is_missing_behind_an_init_container_is_a_start_timeout_too(cluster, jobs):
    jobs.apply(
        job(
            "behind",
            startDeadlineSeconds=DEADLINE,
            annotations={"holdfast-test/start-after": "600s"},
            pod={"initContainers": [{"name": "prepare", "image": "busybox:1.36"}]},
        )
    )
    pod = jobs.wait_pod("behind", lambda found: found["spec"].get("nodeName"))
    began = pod["metadata"]["creationTimestamp"]
    missing = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    offset = cluster.audit_offset()
    set_pod_status(
        jobs,
        pod,
        initContainerStatuses=[
            container_status("prepare", {"terminated": {"exitCode": 0, "startedAt": began, "finishedAt": began}})
        ],
        containerStatuses=[container_status("main", missing)],
    )
    waiting = jobs.wait("behind", lambda s: s["waiting"]["reason"] == "ImagePullBackOff", 60)["waiting"]
    assert waiting["message"] == "container main: no such image"
    assert "StartTimeout unless its next container runs" in waiting["nextAction"]
    status = wait_attempt(jobs, "behind", 2)
    assert_one_disruption(status, "StartTimeout", outcome="StartTimeout")
    assert created_at(cluster, offset, place(status)["podName"])


def test_a_start_deadline_that_is_raised_in_time_moves_the_deadline(jobs):
    jobs.apply(job("raised", startDeadlineSeconds=15, annotations=NO_IMAGE))
    jobs.wait("raised", lambda s: s.get("waiting", {}).get("reason") == "ImagePullBackOff", 60)
    created = seconds_of(jobs.pod("raised")["metadata"]["creationTimestamp"])
    jobs.patch("raised", startDeadlineSeconds=900)
    status = jobs.wait("raised", lambda s: seconds_of(s["waiting"]["deadline"]) > created + 800, 60)
    assert status["attempt"] == 1


def test_a_pod_that_starts_late_but_in_time_loses_nothing(jobs):
    jobs.apply(job("late", startDeadlineSeconds=60, annotations=NO_IMAGE))
    jobs.wait("late", lambda s: s.get("waiting", {}).get("reason") == "ImagePullBackOff", 60)
    pod = jobs.pod("late")
    set_pod_status(
        jobs,
        pod,
        phase="Running",
        containerStatuses=[
            {
                "name": "main",
                "image": "x",
                "imageID": "x",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": {
                    "running": {"startedAt": time_text(seconds_of(pod["metadata"]["creationTimestamp"]))},
                    "waiting": None,
                },
            }
        ],
    )
    status = jobs.wait("late", lambda s: s["waiting"]["reason"] == "PodRunning", 60)
    assert place(status)["nodeName"] == pod["spec"]["nodeName"]
    assert finish(jobs, "late")["attempt"] == 1


def test_with_policy_failed_the_next_attempt_starts_only_when_the_old_pod_has_ended(cluster, jobs):
    jobs.apply(
        job(
            "patient",
            startDeadlineSeconds=DEADLINE,
            podReplacementPolicy="Failed",
            annotations={**NO_IMAGE, "holdfast-test/ignore-delete": "true"},
        )
    )
    old = jobs.wait_pod("patient", lambda found: found["spec"].get("nodeName"))
    status = jobs.wait_phase("patient", "Backoff")
    assert status["waiting"]["reason"] == "OldPodNotEnded"
    assert old["metadata"]["name"] in status["waiting"]["message"]
    assert [entry["outcome"] for entry in status["history"]] == ["StartTimeout"]
    wait_for(
        "the old pod to be told to go",
        lambda: "deletionTimestamp" in pod_named(jobs, old["metadata"]["name"])["metadata"],
        60,
    )
    offset = cluster.audit_offset()
    jobs.end_pod(old, "Failed", 137)
    status = wait_attempt(jobs, "patient", 2)
    assert created_at(cluster, offset, place(status)["podName"])
    assert (status["failures"], status["disruptions"]) == (0, 1)
