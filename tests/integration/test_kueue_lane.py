"""batch/v1 Jobs that Holdfast runs, in LocalQueues of the real Kueue: rows of the second table in docs/kueue.md."""

import re

import yaml
from doc_rows import Rows
from holdfast import ROOT, runs
from kueue import PREEMPTS, PRIORITY, QUEUE, has
from lane import LANE, batch_job
from localcluster import wait_for

LIMIT = 60
DOCS = (ROOT / "docs/kueue.md").read_text()
OPERATOR_FLAGS = LANE
row = Rows()


def queued(name, annotations=None, queue_name="q", priority=None, **spec):
    """A Job whose pod asks for one CPU of this LocalQueue."""
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": "1"}}}
    body = batch_job(name, annotations=annotations or runs(900), pod={"containers": [container]}, **spec)
    labels = {QUEUE: queue_name, PRIORITY: priority}
    body["metadata"]["labels"] = {key: value for key, value in labels.items() if value}
    return body


def wait_running(batch, name, limit=LIMIT):
    """Its pods, one of which runs."""
    wait_for(f"a pod of Job {name} to run", lambda: any(
        pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in batch.pods(name)), limit)
    return batch.pods(name)


def cost(batch, name):
    status = batch.durable_of(name)["status"]
    return status["failures"], status["disruptions"]


@row("The quota is full")
def test_a_job_without_quota_is_suspended_and_has_no_pod(batch, queue):
    queue(1)
    batch.apply(queued("first"))
    wait_running(batch, "first")
    batch.apply(queued("second", runs(0)))
    batch.wait_condition("second", "Suspended")
    assert batch.durable_of("second") is None and "startTime" not in batch.status("second")
    batch.delete("first")
    batch.wait_condition("second", "Complete")


@row("There is quota")
def test_an_admitted_job_gets_the_node_selector_of_its_flavor(batch, queue, kueue):
    queue(1)
    batch.apply(queued("placed", runs(1)))
    [pod] = wait_running(batch, "placed")
    assert pod["spec"]["nodeSelector"] == {"pool": "batch"}
    batch.wait_condition("placed", "Complete")
    wait_for("Kueue to see its end", lambda: has(kueue.workload_of(batch.namespace, batch.get("placed")), "Finished"),
             LIMIT)


@row("A workload with a higher priority takes the quota")
def test_a_preempted_job_comes_back_and_spends_nothing(batch, queue):
    queue(1, **PREEMPTS)
    batch.apply(queued("modest", priority="low"))
    wait_running(batch, "modest")
    batch.apply(queued("urgent", runs(5), priority="urgent"))
    batch.wait_condition("modest", "Suspended")
    batch.wait_condition("urgent", "Complete")
    wait_running(batch, "modest")
    assert cost(batch, "modest") == (0, 0)
    assert not batch.status("modest").get("failed")


@row("An attempt fails or is lost")
def test_a_next_attempt_keeps_the_quota_of_its_job(batch, queue, kueue):
    queue(1)
    batch.apply(queued("fails", runs(3, "1,0"), backoffLimit=3))
    wait_running(batch, "fails")
    batch.apply(queued("waits", runs(0)))
    batch.wait_condition("fails", "Complete")
    assert cost(batch, "fails") == (1, 0)
    ended = batch.status("fails")["completionTime"]
    assert batch.wait_condition("waits", "Complete")["startTime"] >= ended


@row("The namespace has a LocalQueue named `default`")
def test_in_a_namespace_with_a_default_queue_the_pods_are_gated_too(batch, queue):
    queue(1, name="default")
    batch.apply(queued("twice", queue_name=None))
    wait_for("the gated pod", lambda: [pod["spec"].get("schedulingGates") is not None for pod in batch.pods("twice")]
             == [True], LIMIT)
    durable = batch.wait_durable("twice", lambda one: (one["status"].get("waiting") or {}).get("reason") == "PodGated")
    assert (durable["status"]["failures"], durable["status"]["disruptions"]) == (0, 0)


@row("A node dies, and the quota is full")
def test_a_dead_node_does_not_keep_the_quota(batch, queue, cluster):
    queue(1)
    batch.apply(queued("survivor", fields={"holdfast.dev/lostAfterSeconds": "15"}))
    [pod] = wait_running(batch, "survivor")
    cluster.kill_node(pod["spec"]["nodeName"])
    # Nor does a pod go there. The controller-manager would remove the taint of unreachable nodes for another 40 s.
    cluster.kubectl("cordon", pod["spec"]["nodeName"])
    wait_for("the next attempt to run elsewhere", lambda: any(
        other["status"].get("phase") == "Running" and other["spec"]["nodeName"] != pod["spec"]["nodeName"]
        for other in batch.pods("survivor")), LIMIT)
    assert cost(batch, "survivor") == (0, 1)


@row("The same, with Kueue's setting for it (below)")
def test_kueue_that_knows_durablejobs_counts_a_job_once(batch, queue, kueue, cluster):
    [config, rights] = [yaml.safe_load(block) for block in re.findall(r"(?:^    .*\n)+", DOCS, re.MULTILINE)
                        if "externalFrameworks" in block or "ClusterRole" in block]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(rights))
    cluster.kubectl("create", "clusterrolebinding", "kueue-durablejobs", "--clusterrole=kueue-durablejobs",
                    "--serviceaccount=kueue-system:kueue-controller-manager")
    frameworks = {"frameworks": ["batch/job", "pod"]}
    kueue.restart(integrations=frameworks | config["integrations"])
    queue(1, name="default")
    batch.apply(queued("once", runs(0), queue_name=None))
    batch.wait_condition("once", "Complete")
    assert len(kueue.workloads(batch.namespace)) == 1


def test_each_row_of_the_docs_has_a_test():
    rows = re.findall(r"^\| (.*?) \| .* \|$", DOCS.partition("## Jobs of batch/v1")[2], re.MULTILINE)
    assert sorted(rows) == sorted([*row.cells, "what happens"])
