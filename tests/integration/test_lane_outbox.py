"""What Kubernetes deletes takes no event along: a DurableJob of the lane stays until its targets are told."""

import pytest
from holdfast import Operator, runs
from lane import LANE, batch_job
from localcluster import wait_for
from webhooks import serving, targets_flags

OUTBOX = "holdfast.dev/outbox"
NOTIFY = {"holdfast.dev/notify": "chat"}
LIMIT = 60


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("receivers"), [("chat", "localhost")]) as made:
        yield made["chat"]


@pytest.fixture(scope="module")
def flags(chat, tmp_path_factory):
    return targets_flags(tmp_path_factory.mktemp("targets"), [chat.target("chat")])


@pytest.fixture(scope="module")
def operator(cluster, flags):
    with Operator(cluster, *LANE, *flags) as operator:
        yield operator


def only_durable(batch):
    [durable] = batch.durable.list()
    return durable


def wait_deleted_and_held(batch, name):
    """Its Job is gone, and it waits for its target."""
    wait_for(f"Job {name} to be deleted", lambda: batch.get(name) is None, LIMIT)
    wait_for("its DurableJob to be deleted", lambda: "deletionTimestamp" in only_durable(batch)["metadata"], LIMIT)
    # The garbage collector removes its own finalizer after the pods.
    wait_for("nothing else to hold it", lambda: only_durable(batch)["metadata"]["finalizers"] == [OUTBOX], LIMIT)
    durable = only_durable(batch)
    assert len(durable["status"]["outbox"]) == 1
    return durable


def wait_gone(batch, limit=LIMIT):
    wait_for("the DurableJob to be gone", lambda: batch.durable.list() == [], limit)


def test_a_job_that_its_ttl_deletes_is_told_all_the_same(batch, chat):
    chat.answers = [500]
    batch.apply(batch_job("nightly", runs(0, 1), fields=NOTIFY, backoffLimit=0, ttlSecondsAfterFinished=0))
    durable = wait_deleted_and_held(batch, "nightly")
    pods = f"{batch.durable.pods_path}?labelSelector=holdfast.dev/job-uid={durable['metadata']['uid']}"
    wait_for("its pods to be deleted", lambda: batch.api("GET", pods)["items"] == [], LIMIT)
    chat.answers = [204]
    wait_gone(batch)
    assert chat.of("nightly")[-1].what == "Failed"


def test_what_the_next_job_of_a_cronjob_replaces_is_told_all_the_same(batch, chat):
    """A CronJob deletes its old Jobs as its history limits say: in the background."""
    chat.answers = [500]
    batch.apply(batch_job("old", runs(0), fields=NOTIFY))
    batch.wait_condition("old", "Complete")
    batch.delete("old")
    wait_deleted_and_held(batch, "old")
    chat.answers = [204]
    wait_gone(batch)
    assert chat.of("old")[-1].what == "Succeeded"


def test_a_job_that_is_deleted_before_its_end_goes_at_once(batch, chat):
    batch.apply(batch_job("early", runs(900), fields=NOTIFY))
    batch.wait("early", "active", lambda status: status.get("active") == 1)
    assert batch.durable_of("early")["metadata"]["finalizers"] == [OUTBOX]
    batch.delete("early")
    wait_gone(batch, 10)


def test_a_job_whose_targets_are_told_is_held_by_nothing(batch, chat):
    chat.answers = [204]
    batch.apply(batch_job("told", runs(0), fields=NOTIFY))
    batch.wait_condition("told", "Complete")
    wait_for("the finalizer to go", lambda: "finalizers" not in batch.durable_of("told")["metadata"], LIMIT)


def test_a_namespace_that_goes_waits_a_minute(batch, chat, cluster):
    chat.answers = [500]
    batch.apply(batch_job("last", runs(0), fields=NOTIFY))
    batch.wait_condition("last", "Complete")
    cluster.api("DELETE", f"/api/v1/namespaces/{batch.namespace}")
    wait_for("the DurableJob to be deleted", lambda: "deletionTimestamp" in only_durable(batch)["metadata"], LIMIT)
    wait_gone(batch, 100)
    wait_for("the namespace to be gone",
             lambda: cluster.api("GET", f"/api/v1/namespaces/{batch.namespace}")[0] == 404, LIMIT)


def test_an_operator_without_the_lane_releases_it_too(batch, chat, cluster, operator, flags):
    """Nor does it matter who owns it."""
    chat.answers = [500]
    batch.apply(batch_job("off", runs(0), fields=NOTIFY))
    batch.wait_condition("off", "Complete")
    operator.kill()
    batch.delete("off", "Orphan")
    wait_for("the Job to be gone", lambda: batch.get("off") is None, LIMIT)
    batch.durable.delete("off")
    chat.answers = [204]
    with Operator(cluster, *flags):
        wait_gone(batch)
    assert chat.of("off")[-1].what == "Succeeded"
