"""batch/v1 Jobs that Holdfast runs: suspend and resume, deletion, names, and what the operator does when it dies."""

import subprocess

import pytest

from holdfast import QUICK_LEASES, Operator, job, operator_binary, runs
from lane import LANE, BatchJobs, batch_job
from lives import wait_until_collector_knows
from localcluster import wait_for

OPERATOR_FLAGS, OPERATOR_LEASES = LANE, QUICK_LEASES
LOST_AFTER = 15


def selected(batch, name):
    return batch.get(name)["spec"]["template"]["spec"].get("nodeSelector")


def hostname(node):
    return {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}}}


# -- suspend and resume ---------------------------------------------------------------------------


def test_a_job_that_is_suspended_has_no_durable_job_yet(batch):
    batch.apply(batch_job("waits", suspend=True, annotations=runs(0)))
    status = batch.wait_condition("waits", "Suspended")
    assert "startTime" not in status and batch.durable_of("waits") is None
    batch.patch("waits", {"spec": {"suspend": False}})
    status = batch.wait_condition("waits", "Complete")
    assert batch.conditions("waits")["Suspended"]["status"] == "False"
    assert batch.conditions("waits")["Suspended"]["reason"] == "JobResumed"
    assert status["startTime"]


def test_a_running_job_is_suspended_and_resumed_without_cost(batch):
    batch.apply(batch_job("stops"))
    batch.wait("stops", "active", lambda status: status.get("active") == 1)
    batch.patch("stops", {"spec": {"suspend": True}})
    status = batch.wait_condition("stops", "Suspended")
    assert not status.get("active") and "startTime" not in status
    batch.patch("stops", {"spec": {"suspend": False}})
    status = batch.wait("stops", "active again", lambda status: status.get("active") == 1)
    assert status["startTime"] and not status.get("failed")
    assert not batch.holds("stops", "Suspended")
    durable = batch.durable_of("stops")["status"]
    assert (durable["failures"], durable["disruptions"]) == (0, 0)


def test_what_kueue_does_reaches_the_pods(batch, cluster):
    """It suspends, clears startTime, changes the node selector, and resumes."""
    nodes = [node["metadata"]["name"] for node in cluster.api("GET", "/api/v1/nodes")[1]["items"]]
    batch.apply(batch_job("queued", suspend=True))
    batch.wait_condition("queued", "Suspended")
    for node in nodes[:2]:
        batch.patch("queued", {"spec": {"suspend": False, **hostname(node)["spec"]}})
        batch.wait("queued", "active", lambda status: status.get("active") == 1)
        wait_for(f"a pod on {node}", lambda: any(
            pod["spec"].get("nodeName") == node and "deletionTimestamp" not in pod["metadata"]
            for pod in batch.pods("queued")), 60)
        batch.patch("queued", {"spec": {"suspend": True}})
        batch.wait_condition("queued", "Suspended")
        job = batch.get("queued")
        job["status"].pop("startTime", None)
        batch.api("PUT", f"{batch.path}/queued/status", job)
    durable = batch.durable_of("queued")["status"]
    assert (durable["failures"], durable["disruptions"]) == (0, 0)


def test_parallelism_may_change_while_the_job_runs(batch):
    batch.apply(batch_job("wider", completions=4, parallelism=1))
    batch.wait("wider", "active", lambda status: status.get("active") == 1)
    batch.patch("wider", {"spec": {"parallelism": 3}})
    batch.wait("wider", "wider", lambda status: status.get("active") == 3)


def test_completions_of_a_running_job_keep_their_old_number_until_it_is_suspended(batch):
    batch.apply(batch_job("elastic", completions=3, parallelism=3, completionMode="Indexed"))
    batch.wait("elastic", "active", lambda status: status.get("active") == 3)
    batch.patch("elastic", {"spec": {"completions": 2, "parallelism": 2}})
    batch.wait_condition("elastic", "ChangeRefused")
    assert "while the Job is suspended" in batch.conditions("elastic")["ChangeRefused"]["message"]
    durable = batch.wait_durable("elastic", lambda one: one["spec"]["parallelism"] == 2)
    assert durable["spec"]["completions"] == 3
    batch.patch("elastic", {"spec": {"suspend": True}})
    batch.wait_condition("elastic", "Suspended")
    batch.wait_durable("elastic", lambda one: one["spec"]["completions"] == 2)
    batch.wait("elastic", "taken back", lambda _: not batch.holds("elastic", "ChangeRefused"))
    # Kueue admits a part of a Job, and makes it whole again when it preempts the Job.
    batch.patch("elastic", {"spec": {"suspend": False, "completions": 1, "parallelism": 1}})
    batch.wait("elastic", "one active", lambda status: status.get("active") == 1)
    batch.patch("elastic", {"spec": {"suspend": True, "completions": 3, "parallelism": 3}})
    batch.wait_condition("elastic", "Suspended")
    batch.patch("elastic", {"spec": {"suspend": False}})
    batch.wait("elastic", "all active", lambda status: status.get("active") == 3)
    assert not batch.holds("elastic", "ChangeRefused") and not batch.holds("elastic", "Failed")


def test_a_change_that_is_refused_holds_up_no_other(batch):
    """batch/v1 takes a work queue, and a DurableJob does not."""
    batch.apply(batch_job("queue", parallelism=1))
    batch.wait("queue", "active", lambda status: status.get("active") == 1)
    batch.patch("queue", {"spec": {"parallelism": 3, "backoffLimit": 2, "suspend": True}})
    batch.wait_condition("queue", "Suspended")
    batch.wait_condition("queue", "ChangeRefused")
    assert batch.conditions("queue")["ChangeRefused"]["message"].startswith("parallelism: ")
    assert batch.durable_of("queue")["spec"]["backoffLimit"] == 2
    batch.wait("queue", "one Event",
               lambda _: [event["reason"] for event in batch.events("queue")].count("ChangeRefused") == 1)
    batch.patch("queue", {"spec": {"suspend": False, "activeDeadlineSeconds": 900}})
    batch.wait("queue", "active again", lambda status: status.get("active") == 1)
    assert batch.durable_of("queue")["spec"]["activeDeadlineSeconds"] == 900
    batch.patch("queue", {"spec": {"parallelism": 1}})
    batch.wait("queue", "taken back", lambda _: not batch.holds("queue", "ChangeRefused"))


def test_ranks_keep_their_names_beside_a_foreign_durable_job(batch):
    batch.durable.apply(job("ring", suspend=True))
    batch.apply(batch_job("ring", completions=2, parallelism=2, completionMode="Indexed"))
    wait_for("both pods", lambda: len(batch.pods("ring")) == 2, 60)
    assert {pod["spec"]["hostname"] for pod in batch.pods("ring")} == {"ring-0", "ring-1"}
    assert batch.durable_of("ring")["metadata"]["name"].startswith("ring-")


# -- deletion and names ---------------------------------------------------------------------------


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_job_takes_its_pods_along(batch, propagation):
    batch.apply(batch_job("goes"))
    batch.wait("goes", "active", lambda status: status.get("active") == 1)
    batch.delete("goes", propagation)
    wait_for("the Job, its DurableJob and its pods to be gone", lambda: batch.get("goes") is None
             and batch.durable.list() == [] and batch.pods("goes") == [], 60)


def test_a_job_that_is_created_again_at_once_is_a_job_of_its_own(batch):
    """Its name may still be the old DurableJob's."""
    uids = set()
    for _ in range(4):
        uids.add(batch.apply(batch_job("again", annotations=runs(0)))["metadata"]["uid"])
        batch.wait("again", "seen", lambda status: status.get("startTime"))
        batch.delete("again")
    batch.apply(batch_job("again", annotations=runs(0)))
    batch.wait_condition("again", "Complete")
    assert len(uids) == 4
    wait_for("the DurableJobs before it to be gone", lambda: len(batch.durable.list()) == 1, 60)


def test_an_orphaned_durable_job_runs_on(batch, cluster):
    wait_until_collector_knows(cluster, batch.durable.path, job("ownerless", suspend=True))
    batch.apply(batch_job("leaves", annotations=runs(6)))
    batch.wait("leaves", "active", lambda status: status.get("active") == 1)
    batch.delete("leaves", "Orphan")
    wait_for("the Job to be gone", lambda: batch.get("leaves") is None, 60)
    batch.durable.wait_phase("leaves", "Succeeded")
    assert not batch.durable.get("leaves")["metadata"].get("ownerReferences")


def test_a_durable_job_that_is_deleted_by_hand_fails_the_job(batch):
    batch.apply(batch_job("robbed"))
    batch.wait("robbed", "active", lambda status: status.get("active") == 1)
    batch.durable.delete("robbed")
    batch.wait_condition("robbed", "Failed")
    assert batch.conditions("robbed")["Failed"]["reason"] == "DurableJobDeleted"
    assert batch.durable_of("robbed") is None


def test_a_durable_job_that_is_cancelled_fails_the_job(batch):
    batch.apply(batch_job("stopped"))
    batch.wait("stopped", "active", lambda status: status.get("active") == 1)
    batch.durable.patch("stopped", cancel=True)
    status = batch.wait_condition("stopped", "Failed")
    assert batch.conditions("stopped")["Failed"]["reason"] == "Cancelled" and "completionTime" not in status


@pytest.mark.parametrize("name", ["taken", "with.dots"])
def test_a_name_that_does_not_do_gets_a_suffix(batch, name):
    if name == "taken":
        batch.durable.apply(job("taken"))
    batch.apply(batch_job(name, annotations=runs(0)))
    batch.wait_condition(name, "Complete")
    durable = batch.durable_of(name)["metadata"]["name"]
    assert durable != name and durable.startswith(name.replace(".", "-")[:40])
    assert batch.get(name)["metadata"]["annotations"]["holdfast.dev/durable-job"] == durable


def test_a_copy_of_a_job_is_a_job_of_its_own(batch):
    batch.apply(batch_job("first", annotations=runs(0)))
    batch.wait_condition("first", "Complete")
    copied = batch_job("second", annotations=runs(0), fields=batch.get("first")["metadata"]["annotations"])
    batch.apply(copied)
    batch.wait_condition("second", "Complete")
    assert batch.durable_of("second")["metadata"]["name"] == "second"


# -- trouble --------------------------------------------------------------------------------------


def test_a_job_survives_the_death_of_its_node(batch, cluster):
    batch.apply(batch_job("moves", fields={"holdfast.dev/lostAfterSeconds": str(LOST_AFTER)}))
    batch.wait("moves", "active", lambda status: status.get("active") == 1)
    wait_for("a node", lambda: any(pod["spec"].get("nodeName") for pod in batch.pods("moves")), 60)
    node = batch.pods("moves")[0]["spec"]["nodeName"]
    cluster.kill_node(node)
    try:
        # More than once, if the scheduler chooses the dead node again.
        batch.wait_durable("moves", lambda durable: durable["status"].get("disruptions", 0) >= 1, 120)
        assert not batch.status("moves").get("failed")
        assert "conditions" not in batch.status("moves")
    finally:
        # The scheduler does not know it as dead yet, and a pod there would stay for ever when it is deleted.
        cluster.revive_node(node)


def test_a_forged_record_of_another_jobs_durable_job_ends_the_forger(batch):
    batch.apply(batch_job("owner"))
    batch.wait("owner", "active", lambda status: status.get("active") == 1)
    durable = batch.durable_of("owner")
    batch.apply(batch_job("forger", suspend=True))
    batch.wait_condition("forger", "Suspended")
    uid = batch.get("forger")["metadata"]["uid"]
    batch.patch("forger", {"metadata": {"annotations": {
        "holdfast.dev/durable-job": durable["metadata"]["name"],
        "holdfast.dev/durable-job-uids": f"{uid}/{durable['metadata']['uid']}"}}})
    # It waits for the pods of what it claims.
    batch.wait_condition("forger", "FailureTarget")
    assert batch.conditions("forger")["FailureTarget"]["reason"] == "DurableJobDeleted"
    assert batch.status("owner")["active"] == 1
    batch.delete("owner")
    batch.wait_condition("forger", "Failed", 120)


def test_the_next_operator_goes_on(batch, operator):
    batch.apply(batch_job("handed", annotations=runs(12)))
    batch.wait("handed", "active", lambda status: status.get("active") == 1)
    batch.apply(batch_job("unseen", annotations=runs(0)))
    operator.kill()
    operator.start()
    batch.wait_condition("handed", "Complete", 90)
    batch.wait_condition("unseen", "Complete", 90)
    assert len(batch.durable.list()) == 2


def test_two_replicas_share_the_jobs(batch, operator, cluster):
    """A Job and its DurableJob may belong to different replicas, one of which dies."""
    names = [f"shared-{number}" for number in range(8)]
    with Operator(cluster, *LANE, leases=QUICK_LEASES) as second:
        wait_for("both replicas to hold shards", lambda: all(
            one.metric("holdfast_shards_held") == 16 for one in (operator, second)), 60)
        for name in names:
            batch.apply(batch_job(name, annotations=runs(8)))
        wait_for("all to be active", lambda: all(batch.status(name).get("active") == 1 for name in names), 60)
        second.kill()
        for name in names:
            status = batch.wait_condition(name, "Complete", 90)
            assert status["succeeded"] == 1
    assert len(batch.durable.list()) == len(names)


def test_others_may_write_the_job_at_any_time(batch):
    """Each write of the operator may conflict, and takes nothing of theirs away."""
    batch.apply(batch_job("busy", annotations=runs(4)))
    done = False
    for number in range(200):
        batch.patch("busy", {"metadata": {"labels": {"beat": str(number)}}})
        done = batch.holds("busy", "Complete")
        if done and number > 5:
            break
    assert done or batch.wait_condition("busy", "Complete")
    job_now = batch.get("busy")
    assert job_now["metadata"]["labels"]["beat"] == str(number)
    ours = [entry for entry in job_now["metadata"]["managedFields"] if entry.get("subresource") == "status"]
    assert ours and all("f:labels" not in entry["fieldsV1"].get("f:metadata", {}) for entry in ours)


# -- where it is switched on ----------------------------------------------------------------------


def stop(operator):
    if operator.process.poll() is None:
        operator.stop()


# The chart grants it with a selector.
SEE_NAMESPACES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: see-namespaces}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: see-namespaces}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: see-namespaces}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: holdfast-operator}
"""


def test_only_the_selected_namespaces_jobs_are_run(batch, operator, cluster):
    stop(operator)
    cluster.api("PATCH", f"/api/v1/namespaces/{batch.namespace}", {"metadata": {"labels": {"team": "video"}}},
                content_type="merge")
    cluster.kubectl("apply", "-f", "-", input=SEE_NAMESPACES)
    other = BatchJobs(cluster, "default")
    other.apply(batch_job("not-selected", annotations=runs(0)))
    with Operator(cluster, "--batch-jobs=team=video", leases=QUICK_LEASES):
        batch.apply(batch_job("selected", annotations=runs(0)))
        batch.wait_condition("selected", "Complete")
        assert other.status("not-selected") == {}
        cluster.api("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"team": "video"}}},
                    content_type="merge")
        other.wait_condition("not-selected", "Complete")


def test_an_operator_without_the_switch_looks_at_no_job(batch, operator, cluster):
    stop(operator)
    with Operator(cluster, leases=QUICK_LEASES) as off:
        batch.apply(batch_job("waits", annotations=runs(0)))
        batch.durable.apply(job("runs", annotations=runs(0)))
        batch.durable.wait_phase("runs", "Succeeded")
        assert batch.status("waits") == {}
        assert not any("batch-jobs" in sample for sample in off.metrics())


def test_uninstalling_fails_the_jobs_that_nobody_else_can_run(batch, cluster, operator):
    if operator.process.poll() is not None:
        operator.start()
    batch.apply(batch_job("running"))
    batch.wait("running", "active", lambda status: status.get("active") == 1)
    batch.apply(batch_job("suspended", suspend=True))
    batch.wait_condition("suspended", "Suspended")
    operator.stop()
    done = subprocess.run([operator_binary(), "release-pods", f"--kubeconfig={operator.kubeconfig}", "--batch-jobs=all"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("running", "suspended"):
        condition = batch.conditions(name)["Failed"]
        assert (condition["status"], condition["reason"]) == ("True", "HoldfastUninstalled")
        assert "spec.managedBy" in condition["message"]
    operator.start()
