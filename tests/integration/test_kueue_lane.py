"""batch/v1 Jobs that Holdfast runs, in LocalQueues of the real Kueue: rows of the second table in docs/kueue.md."""

import re
import shlex

import pytest
import yaml
from doc_blocks import blocks
from doc_rows import Rows
from holdfast import ROOT, is_running, runs
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
    wait_for(f"a pod of Job {name} to run", lambda: any(is_running(pod) for pod in batch.pods(name)), limit)
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
    batch.apply(queued("placed"))
    [pod] = wait_running(batch, "placed")
    assert pod["spec"]["nodeSelector"] == {"pool": "batch"}
    batch.durable.end_pod(pod)
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
    batch.apply(queued("fails", backoffLimit=3))
    [pod] = wait_running(batch, "fails")
    batch.apply(queued("waits", runs(0)))
    batch.durable.end_pod(pod, "Failed", 1)
    batch.durable.end_pod(batch.durable.wait_running("fails"))
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
    [config] = [yaml.safe_load(found) for found in re.findall(r"`(integrations: {externalFrameworks.*})`", DOCS)]
    [rights] = [block for block in blocks("kueue.md", "sh") if "clusterrolebinding" in block]
    *grants, _ = rights.replace("\\\n", "").splitlines()
    for grant in grants:
        cluster.kubectl(*shlex.split(grant)[1:])
    frameworks = {"frameworks": ["batch/job", "pod"]}
    kueue.restart(integrations=frameworks | config["integrations"])
    queue(1, name="default")
    batch.apply(queued("once", runs(0), queue_name=None))
    batch.wait_condition("once", "Complete")
    assert len(kueue.workloads(batch.namespace)) == 1


@row("The Job is admitted in part")
def test_a_job_that_is_admitted_in_part_is_whole_again_after_a_preemption(batch, queue):
    queue(3, **PREEMPTS)
    body = queued("part", runs(900), priority="low", completionMode="Indexed", completions=4, parallelism=4)
    body["metadata"]["annotations"] |= {"kueue.x-k8s.io/job-min-parallelism": "2",
                                        "kueue.x-k8s.io/job-completions-equal-parallelism": "true"}
    batch.apply(body)
    wait_running(batch, "part")
    durable = batch.wait_durable("part", lambda one: one["status"].get("active") == 3)
    assert (durable["spec"]["completions"], durable["spec"]["parallelism"]) == (3, 3)
    batch.apply(queued("urgent", runs(5), priority="urgent"))
    batch.wait_condition("part", "Suspended")
    assert batch.get("part")["spec"]["completions"] == 4
    batch.wait_durable("part", lambda one: one["spec"]["completions"] == 4)
    batch.wait_condition("urgent", "Complete")
    # Beside the urgent one Kueue admits it with two, after that one's end with three.
    durable = batch.wait_durable(
        "part", lambda one: one["status"].get("active") == one["spec"]["completions"] in (2, 3), 3 * LIMIT)
    job = batch.get("part")["spec"]
    assert (job["completions"], job["parallelism"]) == (durable["spec"]["completions"],) * 2
    assert "Failed" not in batch.conditions("part") and cost(batch, "part") == (0, 0)


@row("`parallelism` is above 1,000")
def test_a_job_that_could_never_be_ready_is_refused(batch, queue):
    queue(2000)
    batch.apply(queued("wide", runs(0), parallelism=1001, completions=1001))
    status = batch.wait_condition("wide", "Failed")
    assert batch.conditions("wide")["Failed"]["reason"] == "NotSupported" and not status.get("active")


TIMEOUT = 20
RUN = 60


@pytest.fixture(params=[False, True], ids=["admits-all", "blocks-admission"])
def patient(kueue, request):
    """Kueue evicts a Job whose pods are not ready in time. It admits the next one at once, or only after that."""
    kueue.restart(waitForPodsReady={"timeout": f"{TIMEOUT}s", "recoveryTimeout": f"{TIMEOUT}s",
                                    "blockAdmission": request.param})
    return kueue


@row("`waitForPodsReady` is on")
def test_a_job_with_ready_pods_runs_to_its_end_in_one_attempt(batch, queue, patient):
    def workload(name):
        return patient.workload_of(batch.namespace, batch.get(name))

    queue(2)
    names = ("first", "second")
    for name in names:
        batch.apply(queued(name, runs(RUN)))
    for name in names:
        wait_running(batch, name)
        wait_for(f"Kueue to see that Job {name} is ready", lambda: has(workload(name), "PodsReady"), TIMEOUT)
        assert (batch.status(name)["active"], batch.status(name)["ready"]) == (1, 1)
    for name in names:
        status = batch.wait_condition(name, "Complete", limit=RUN + LIMIT)
        assert status["ready"] == 0
        assert batch.durable_of(name)["status"]["attempt"] == 1 and cost(batch, name) == (0, 0)
        assert not has(workload(name), "Evicted")


def test_each_row_of_the_docs_has_a_test():
    rows = re.findall(r"^\| (.*?) \| .* \|$", DOCS.partition("## Jobs of batch/v1")[2], re.MULTILINE)
    assert sorted(rows) == sorted([*row.cells, "what happens"])
