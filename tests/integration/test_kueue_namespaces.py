"""Kueue with settings of an installation that manages whole namespaces: rows of the table in docs/kueue.md."""

import re

import pytest
from holdfast import ROOT, runs
from kueue import Kueue
from localcluster import wait_for
from test_kueue import LIMIT, ROWS, cost, queued, row, wait_gated, wait_gated_attempt

MANAGED = {"matchLabels": {"batch": "managed"}}


@pytest.fixture(scope="module")
def kueue(cluster, operator):
    for node in ("node-0", "node-1", "node-2"):
        cluster.kubectl("label", "node", node, "pool=batch")
    with Kueue(cluster, feature_gates="FailureRecoveryPolicy=true", manageJobsWithoutQueueName=True,
               managedJobsNamespaceSelector=MANAGED) as kueue:
        kueue.flavor("batch", {"pool": "batch"})
        yield kueue


@pytest.fixture()
def managed(kueue, cluster, namespace):
    """The test's namespace is one of those."""
    cluster.kubectl("label", "namespace", namespace, "batch=managed")
    kueue.cluster_queue(namespace, {"batch": {"cpu": "1"}})
    kueue.local_queue(namespace, "q", namespace)


@row("Kueue manages whole namespaces, and a job there has no label")
@pytest.mark.usefixtures("managed")
def test_in_a_managed_namespace_a_job_without_a_label_waits_for_ever(jobs):
    jobs.apply(queued("plain", queue_name=None))
    assert cost(wait_gated(jobs, "plain")) == (0, 0)
    jobs.apply(queued("labelled"))
    jobs.wait_phase("labelled", "Succeeded")
    assert jobs.status("plain")["waiting"]["reason"] == "PodGated"


@row("A namespace that `managedJobsNamespaceSelector` leaves out")
def test_outside_the_managed_namespaces_kueue_leaves_jobs_alone(kueue, jobs):
    kueue.cluster_queue(jobs.namespace, {"batch": {"cpu": "0"}})
    kueue.local_queue(jobs.namespace, "q", jobs.namespace)
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
    assert sorted(rows) == sorted([*ROWS, "what happens", "what happens"])
