"""Kueue with settings of an installation that manages whole namespaces: rows of the table in docs/kueue.md."""

import re

import pytest
from holdfast import ROOT, runs
from localcluster import wait_for
from test_kueue import cost, queued, row, wait_gated, wait_gated_attempt

KUEUE = {"feature_gates": "FailureRecoveryPolicy=true", "manageJobsWithoutQueueName": True,
         "managedJobsNamespaceSelector": {"matchLabels": {"batch": "managed"}}}


@pytest.fixture()
def managed(cluster, queue, namespace):
    """The test's namespace is one of those."""
    cluster.kubectl("label", "namespace", namespace, "batch=managed")
    queue(1)


@row("Kueue manages whole namespaces, and a job there has no label")
@pytest.mark.usefixtures("managed")
def test_in_a_managed_namespace_a_job_without_a_label_waits_for_ever(jobs):
    jobs.apply(queued("plain", queue_name=None))
    assert cost(wait_gated(jobs, "plain")) == (0, 0)
    jobs.apply(queued("labelled"))
    jobs.wait_phase("labelled", "Succeeded")
    assert jobs.status("plain")["waiting"]["reason"] == "PodGated"


@row("A namespace that `managedJobsNamespaceSelector` leaves out")
def test_outside_the_managed_namespaces_kueue_leaves_jobs_alone(kueue, queue, jobs):
    queue(0)
    jobs.apply(queued("plain", queue_name=None))
    jobs.apply(queued("labelled"))
    for name in ("plain", "labelled"):
        jobs.wait_phase(name, "Succeeded")
    assert kueue.workloads(jobs.namespace) == []


@row("The same, with Kueue's `FailureRecoveryPolicy`")
@pytest.mark.usefixtures("managed")
def test_kueue_can_give_the_quota_of_a_dead_node_back_by_itself(cluster, jobs):
    body = queued("survivor", runs(30) | {"kueue.x-k8s.io/safe-to-forcefully-delete": "true"}, lostAfterSeconds=15)
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    jobs.apply(body)
    node = jobs.wait_running("survivor")["spec"]["nodeName"]
    cluster.kill_node(node)
    wait_gated_attempt(jobs, "survivor", 2)
    wait_for("the next attempt to run", lambda: (jobs.pod("survivor") or {}).get("status", {}).get(
        "phase") == "Running", 240)
    assert cost(jobs.status("survivor")) == (0, 1)


def test_each_row_of_the_docs_has_a_test():
    rows = re.findall(r"^\| (.*?) \| .* \|$", (ROOT / "docs/kueue.md").read_text().partition("## Jobs of batch/v1")[0],
                      re.MULTILINE)
    assert sorted(rows) == sorted([*row.cells, "what happens", "what happens"])
