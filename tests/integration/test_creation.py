"""Pods that the API server does not let the operator create, or not at once, or not as asked."""

import pytest

from holdfast import job, runs
from localcluster import wait_for
from localcluster.tools import k8s_minor
from losses import pod_name, pod_named, wait_attempt, wait_released
from refusals import (
    mutate_pods,
    no_deletion_of_pods,
    no_pods_by_pod_security,
    no_pods_by_policy,
    no_pods_by_quota,
    no_pods_by_webhook,
    pods_broken_in_passing,
)

pytestmark = pytest.mark.usefixtures("operator")

# Kubernetes 1.34 made them beta.
MUTATING = "v1alpha1" if k8s_minor() < 34 else "v1beta1"
CLUSTER = {"nodes": 1, "apiserver_flags": [
    "--feature-gates=MutatingAdmissionPolicy=true",
    f"--runtime-config=admissionregistration.k8s.io/{MUTATING}=true",
]}
NEVER_STARTS = {"holdfast-test/waiting": "ImagePullBackOff"}
# A refused creation is tried again after 5 s, doubling to 30 s.
RETRY_LIMIT = 90


def wait_refused(jobs, name, text, reason="PodCreationRefused"):
    """Until the job waits because its pod is refused, with these words; nothing is spent."""
    status = jobs.wait(name, lambda s: s.get("waiting", {}).get("reason") == reason, 60)
    assert text in status["waiting"]["message"]
    assert "retries the same pod" in status["waiting"]["nextAction"]
    assert_nothing_spent(status)
    wait_for(
        f"an event about {name}",
        lambda: any(event["reason"] == "PodRejected" and text in event["note"] for event in jobs.events(name)),
        60,
    )
    return status


def assert_nothing_spent(status):
    assert (status["phase"], status["attempt"]) == ("Running", 1)
    assert (status["failures"], status["disruptions"], status.get("history", [])) == (0, 0, [])


def assert_goes_on(jobs, name):
    """The same attempt's pod is created and ends the job."""
    status = jobs.wait_phase(name, "Succeeded", limit=RETRY_LIMIT)
    assert (status["attempt"], status["failures"], status["disruptions"]) == (1, 0, 0)
    assert jobs.conditions(name).get("Stalled", {"status": "False"})["status"] == "False"


def test_a_template_that_the_operators_cache_has_no_room_for_makes_pods_too(jobs):
    """It caches 16 KiB of texts for a job, and reads longer ones when it makes a pod."""
    large = job("large", annotations=runs(0, "1,0"), retryBackoff={"initialSeconds": 1, "maxSeconds": 1})
    large["spec"]["template"]["metadata"]["annotations"]["example.com/note"] = "x" * 17_000
    jobs.apply(large)
    assert jobs.wait_phase("large", "Succeeded")["attempt"] == 2
    assert all(pod["metadata"]["annotations"]["example.com/note"] for pod in jobs.pods("large"))


@pytest.mark.parametrize(
    "refusal, words",
    [
        pytest.param(no_pods_by_policy, "not on a Friday", id="policy"),
        pytest.param(no_pods_by_webhook, "nobody.example.com", id="webhook"),
        pytest.param(no_pods_by_pod_security, "violates PodSecurity", id="pod-security"),
    ],
)
def test_a_job_whose_pod_is_refused_waits_says_so_and_goes_on_with_the_same_attempt(jobs, refusal, words):
    with refusal(jobs):
        jobs.apply(job("refused", annotations=runs(0)))
        wait_refused(jobs, "refused", words)
    assert_goes_on(jobs, "refused")


def test_a_job_over_quota_waits_then_is_stalled_and_goes_on_when_the_quota_is_raised(jobs):
    with no_pods_by_quota(jobs):
        jobs.apply(job("over", annotations=runs(0), startDeadlineSeconds=3))
        wait_refused(jobs, "over", "exceeded quota")
        status = jobs.wait(
            "over",
            lambda s: any(condition["type"] == "Stalled" for condition in s.get("conditions", [])),
            60,
        )
        condition = jobs.conditions("over")["Stalled"]
        assert (condition["status"], condition["reason"]) == ("True", "PodCreationRefused")
        assert "exceeded quota" in condition["message"]
        assert_nothing_spent(status)
    assert_goes_on(jobs, "over")


def test_suspend_cancel_and_the_active_deadline_work_while_the_pod_is_refused(jobs):
    with no_pods_by_quota(jobs):
        jobs.apply(job("suspended", annotations=runs(0)))
        jobs.apply(job("cancelled"))
        jobs.apply(job("overdue", activeDeadlineSeconds=3))
        for name in ("suspended", "cancelled"):
            wait_refused(jobs, name, "exceeded quota")
        jobs.patch("suspended", suspend=True)
        jobs.patch("cancelled", cancel=True)
        status = jobs.wait_phase("suspended", "Suspended")
        assert (status["failures"], status["disruptions"]) == (0, 0)
        assert jobs.wait_phase("cancelled", "Cancelled")["history"][0]["outcome"] == "Cancelled"
        jobs.wait_phase("overdue", "Failed")
        assert jobs.conditions("overdue")["Failed"]["reason"] == "DeadlineExceeded"
    jobs.patch("suspended", suspend=False)
    status = jobs.wait_phase("suspended", "Succeeded", limit=RETRY_LIMIT)
    assert [entry["outcome"] for entry in status["history"]] == ["Suspended", "Succeeded"]


@pytest.mark.parametrize(
    "container, words",
    [
        pytest.param(
            {"volumeMounts": [{"name": "nothing", "mountPath": "/data"}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "nothing"',
            id="unknown-volume",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            "must be less than or equal to cpu limit",
            id="request-over-limit",
        ),
    ],
)
def test_an_invalid_template_fails_the_job_with_the_servers_message_and_spends_no_budget(jobs, container, words):
    jobs.apply(job("invalid", pod={"containers": [{"name": "main", "image": "x", **container}]}))
    status = jobs.wait_phase("invalid", "Failed")
    condition = jobs.conditions("invalid")["Failed"]
    assert (condition["status"], condition["reason"]) == ("True", "PodTemplateInvalid")
    assert words in condition["message"]
    assert (status["attempt"], status["failures"], status["disruptions"]) == (1, 0, 0)
    assert "waiting" not in status
    wait_for("an event", lambda: any(event["reason"] == "PodTemplateInvalid" for event in jobs.events("invalid")), 60)


def test_a_webhook_that_breaks_pods_for_a_while_fails_no_job(jobs):
    """The API server calls a field invalid that the template does not have."""
    with pods_broken_in_passing(jobs, MUTATING):
        jobs.apply(job("broken", annotations=runs(0)))
        status = wait_refused(jobs, "broken", "spec.activeDeadlineSeconds", reason="PodTemplateRefused")
        assert "PodTemplateInvalid if it is still refused" in status["waiting"]["nextAction"]
        assert status["waiting"]["deadline"]
    assert_goes_on(jobs, "broken")


def test_a_foreign_pod_of_the_same_name_is_waited_for_and_left_alone(jobs):
    created = jobs.apply(job("taken", annotations=runs(0), suspend=True))
    jobs.wait_phase("taken", "Suspended")
    name = pod_name(created, 1)
    jobs.api(
        "POST",
        jobs.pods_path,
        {
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "x"}], "terminationGracePeriodSeconds": 0},
        },
    )
    jobs.patch("taken", suspend=False)
    wait_refused(jobs, "taken", name, reason="PodNameTaken")
    foreign = jobs.api("GET", f"{jobs.pods_path}/{name}")
    assert "deletionTimestamp" not in foreign["metadata"]
    assert not foreign["metadata"].get("finalizers") and not foreign["metadata"].get("ownerReferences")
    jobs.api("DELETE", f"{jobs.pods_path}/{name}")
    assert_goes_on(jobs, "taken")


def test_a_lost_attempts_pod_that_may_not_be_deleted_holds_the_next_one_up_for_nothing(jobs):
    with no_deletion_of_pods(jobs):
        jobs.apply(job("kept-back", startDeadlineSeconds=3, annotations=NEVER_STARTS))
        first = jobs.wait_pod("kept-back", lambda pod: True)["metadata"]["name"]
        status = wait_attempt(jobs, "kept-back", 2)
        assert status["history"][0]["outcome"] == "StartTimeout"
        jobs.wait_pod("kept-back", lambda pod: pod["metadata"]["name"] != first)
        wait_for(
            "an event that tells of it",
            lambda: any(
                event["reason"] == "PodDeletionRefused" and "pods are kept here" in event["note"]
                for event in jobs.events("kept-back")
            ),
            60,
        )
    wait_for("the old pod to be gone", lambda: not pod_named(jobs, first), 90)


def test_what_admission_adds_to_a_pod_is_harmless(jobs):
    patch = (
        'Object{metadata: Object.metadata{labels: {"added-by": "policy"}, '
        'annotations: {"example.com/added": "yes"}}, '
        "spec: Object.spec{terminationGracePeriodSeconds: 7}}"
    )
    mutate_pods(jobs, MUTATING, "adds", patch)
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    wait_for(
        "the policy to be in force",
        lambda: jobs.api("POST", jobs.pods_path + "?dryRun=All", probe)["metadata"].get("labels"),
        60,
    )
    # A LimitRange adds as well: resources and an annotation.
    jobs.api(
        "POST",
        f"/api/v1/namespaces/{jobs.namespace}/limitranges",
        {
            "metadata": {"name": "defaults"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "10m"}, "default": {"cpu": "20m"}}]},
        },
    )
    jobs.apply(job("changed", annotations=runs(0)))
    status = jobs.wait_phase("changed", "Succeeded")
    assert (status["attempt"], status["failures"], status["disruptions"]) == (1, 0, 0)
    [pod] = jobs.pods("changed")
    assert pod["metadata"]["labels"]["added-by"] == "policy"
    wait_released(jobs, pod)
