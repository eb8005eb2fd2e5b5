"""batch/v1 Jobs that Holdfast runs: how they end. The API server validates each status that the operator writes."""

import pytest

from fake_kubelet import FakeKubelet
from holdfast import runs
from lane import LANE, batch_job
from lives import flush_audit, operator_writes
from localcluster import wait_for

OPERATOR_FLAGS = LANE


def ended(batch, name, condition):
    """The Job's status once it has this condition, which the API server and kubectl must agree on."""
    status = batch.wait_condition(name, condition)
    assert not status.get("active")
    assert status["startTime"]
    assert ("completionTime" in status) == (condition == "Complete")
    assert status["ready"] == 0
    return status


def reason(batch, name, condition):
    return batch.conditions(name)[condition]["reason"]


def test_a_job_whose_pod_succeeds_is_complete(batch, cluster):
    batch.apply(batch_job("pi", annotations=runs(1)))
    status = ended(batch, "pi", "Complete")
    assert status["succeeded"] == 1 and not status.get("failed")
    assert status["completionTime"] >= status["startTime"]
    assert reason(batch, "pi", "SuccessCriteriaMet") == reason(batch, "pi", "Complete") == "CompletionsReached"
    cluster.kubectl("wait", "--for=condition=complete", "job/pi", "-n", batch.namespace, "--timeout=5s")
    durable = batch.durable_of("pi")
    assert durable["metadata"]["name"] == "pi" and durable["status"]["phase"] == "Succeeded"
    assert "ttlSecondsAfterFinished" not in durable["spec"]


def test_a_job_costs_three_writes_of_its_status_at_most(batch, cluster):
    """A pod has been created, it is ready, the end."""
    offset = cluster.audit_offset()
    batch.apply(batch_job("priced", annotations=runs(3)))
    ended(batch, "priced", "Complete")
    flush_audit(cluster, offset)
    writes = [(write.verb, write.what) for write in operator_writes(cluster, offset, batch.namespace)
              if write.name.startswith("priced")]
    assert 1 < writes.count(("update", "jobs/status")) <= 3, writes
    assert writes.count(("create", "durablejobs")) == 1
    assert batch.durable_of("priced")["status"]["settled"], "its own last write came before the Job's"


def test_pods_carry_the_labels_of_the_job(batch, cluster):
    batch.apply(batch_job("seen", labels={"app": "seen"}))
    wait_for("its pod", lambda: len(batch.pods("seen")) == 1, 60)
    (pod,) = batch.pods("seen")
    uid = batch.get("seen")["metadata"]["uid"]
    labels = pod["metadata"]["labels"]
    assert labels["app"] == labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "seen"
    assert labels["controller-uid"] == labels["batch.kubernetes.io/controller-uid"] == uid
    assert "batch.kubernetes.io/job-tracking" not in pod["metadata"]["finalizers"]
    batch.wait("seen", "active", lambda status: status.get("active") == 1)
    text = cluster.kubectl("describe", "job", "seen", "-n", batch.namespace).stdout
    assert "1 Active" in text and "DurableJobCreated" in text


def test_kubectl_logs_finds_the_pod_by_the_job(batch, cluster, tmp_path):
    with FakeKubelet(cluster, "node-of-logs", tmp_path) as kubelet:
        batch.apply(batch_job("talks", pod={"nodeName": "node-of-logs"}))
        wait_for("its pod", lambda: len(batch.pods("talks")) == 1, 60)
        kubelet.logs[batch.pods("talks")[0]["metadata"]["name"]] = "said by the pod\n"
        done = cluster.kubectl("logs", "job/talks", "-n", batch.namespace)
        assert done.stdout == "said by the pod\n"
        batch.delete("talks")
        wait_for("its pod to be deleted", lambda: all(
            "deletionTimestamp" in pod["metadata"] for pod in batch.pods("talks")), 60)
        for pod in batch.pods("talks"):  # no kubelet does it
            batch.api("DELETE", f"{batch.durable.pods_path}/{pod['metadata']['name']}",
                      {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}, expect=(200, 404))


def test_a_job_beyond_its_backoff_limit_is_failed(batch):
    batch.apply(batch_job("fails", annotations=runs(0, 1), backoffLimit=1))
    status = ended(batch, "fails", "Failed")
    assert status["failed"] == 2
    assert reason(batch, "fails", "FailureTarget") == reason(batch, "fails", "Failed") == "BackoffLimitExceeded"


def test_a_pod_failure_policy_ends_the_job(batch):
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    batch.apply(batch_job("fatal", annotations=runs(0, 42), backoffLimit=6, podFailurePolicy={"rules": rules}))
    ended(batch, "fatal", "Failed")
    assert reason(batch, "fatal", "Failed") == "PodFailurePolicy"


def test_an_indexed_job_says_which_indexes_are_complete(batch):
    batch.apply(batch_job("parts", annotations=runs(0), completions=5, parallelism=3, completionMode="Indexed"))
    status = ended(batch, "parts", "Complete")
    assert status["succeeded"] == 5 and status["completedIndexes"] == "0-4"
    assert "failedIndexes" not in status
    indexes = {pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in batch.pods("parts")}
    assert indexes == {"0", "1", "2", "3", "4"}


def test_an_indexed_job_of_one_index(batch):
    batch.apply(batch_job("single", annotations=runs(0, 1), completionMode="Indexed", completions=1,
                          backoffLimitPerIndex=0))
    status = ended(batch, "single", "Failed")
    assert status["failedIndexes"] == "0" and not status.get("completedIndexes")


def test_a_job_with_failed_indexes_says_which(batch):
    batch.apply(batch_job("some", annotations=runs(0, 1), completions=3, parallelism=3, completionMode="Indexed",
                          backoffLimitPerIndex=0))
    status = ended(batch, "some", "Failed")
    assert status["failedIndexes"] == "0-2"
    assert reason(batch, "some", "Failed") == "FailedIndexes"


def test_a_success_policy_ends_the_job(batch):
    batch.apply(batch_job("enough", annotations=runs(1), completions=4, parallelism=1, completionMode="Indexed",
                          successPolicy={"rules": [{"succeededCount": 1}]}))
    status = ended(batch, "enough", "Complete")
    assert reason(batch, "enough", "SuccessCriteriaMet") == "SuccessPolicy"
    assert status["succeeded"] < 4


def test_an_active_deadline_ends_the_job(batch):
    batch.apply(batch_job("slow", activeDeadlineSeconds=2))
    ended(batch, "slow", "Failed")
    assert reason(batch, "slow", "Failed") == "DeadlineExceeded"


@pytest.mark.parametrize("suspend", [False, True])
def test_a_job_without_completions_to_reach_is_complete_at_once(batch, suspend):
    batch.apply(batch_job("nothing", completions=0, suspend=suspend))
    ended(batch, "nothing", "Complete")
    assert batch.durable_of("nothing") is None


def test_the_ttl_is_the_jobs_alone(batch):
    batch.apply(batch_job("short", annotations=runs(0), ttlSecondsAfterFinished=1))
    wait_for("the Job to be deleted by its TTL", lambda: batch.get("short") is None, 60)
    wait_for("its DurableJob to be deleted", lambda: batch.durable.get("short") is None, 60)


def test_restart_policy_on_failure_runs_as_never(batch):
    batch.apply(batch_job("restarts", annotations=runs(0, "1,0"), pod={"restartPolicy": "OnFailure"}))
    status = ended(batch, "restarts", "Complete")
    assert status["failed"] == 1
    wait_for("an Event that says so", lambda: any(
        event["reason"] == "RestartPolicyNever" for event in batch.events("restarts")), 30)


@pytest.mark.parametrize("name, why, change", [
    ("workqueue", "completions", {"parallelism": 3}),
    ("typo", "names no field", {"fields": {"holdfast.dev/lostAfter": "60"}}),
    ("words", "whole number of seconds", {"fields": {"holdfast.dev/lostAfterSeconds": "a minute"}}),
    ("little", "lostAfterSeconds", {"fields": {"holdfast.dev/lostAfterSeconds": "1"}}),
    ("beats", "progressDeadlineSeconds must be", {"fields": {"holdfast.dev/heartbeat": '{"progressDeadlineSeconds": 20}'}}),
])
def test_a_job_that_cannot_be_mapped_is_failed_with_a_message(batch, name, why, change):
    batch.apply(batch_job(name, **change))
    ended(batch, name, "Failed")
    condition = batch.conditions(name)["Failed"]
    assert condition["reason"] == "NotSupported" and why in condition["message"]
    assert batch.durable_of(name) is None


def test_annotations_give_fields_that_only_holdfast_has(batch):
    fields = {"holdfast.dev/lostAfterSeconds": "60", "holdfast.dev/disruptionLimit": "3",
              "holdfast.dev/queue": "encode", "holdfast.dev/notify": "chat, mail"}
    batch.apply(batch_job("more", fields=fields))
    spec = batch.wait_durable("more")["spec"]
    assert (spec["lostAfterSeconds"], spec["disruptionLimit"]) == (60, 3)
    assert spec["queue"]["name"] == "encode" and spec["notify"] == ["chat", "mail"]
    assert spec["retryBackoff"]["initialSeconds"] == 1


def test_jobs_of_others_are_left_alone(batch):
    body = batch_job("builtin", annotations=runs(0))
    del body["spec"]["managedBy"]
    batch.apply(body)
    other = batch_job("other")
    other["spec"]["managedBy"] = "example.com/controller"
    batch.apply(other)
    batch.wait_condition("builtin", "Complete")
    assert batch.durable.list() == [] and batch.status("other") == {}
