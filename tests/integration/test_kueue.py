"""DurableJobs whose pods the real Kueue admits, one by one: each row of the table in docs/kueue.md."""

from doc_rows import Rows
from holdfast import ROOT, job, runs
from kueue import GATE, PREEMPTS, PRIORITY, QUEUE, has
from localcluster import wait_for

SOON = {"initialSeconds": 1, "factor": 1, "maxSeconds": 1, "jitterPercent": 0}
# Kueue looks at those who wait a second after a workload has ended, and at a new one at once.
BEHIND_OTHERS = SOON | {"initialSeconds": 5, "maxSeconds": 5}
LIMIT = 60
# Of docs/kueue.md; also of test_kueue_namespaces.py.
row = Rows()


def queued(name, annotations=None, priority=None, queue_name="q", **spec):
    """A job whose pods ask for one CPU of this LocalQueue."""
    labels = ({QUEUE: queue_name} if queue_name else {}) | ({PRIORITY: priority} if priority else {})
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": "1"}}}
    return job(name, annotations=annotations or runs(0), labels=labels, pod={"containers": [container]},
               **{"retryBackoff": SOON} | spec)


def wait_gated(jobs, name, limit=LIMIT):
    return jobs.wait(name, lambda s: (s.get("waiting") or {}).get("reason") == "PodGated", limit)


def wait_gated_attempt(jobs, name, attempt):
    """Until the pod of this attempt is gated."""
    return jobs.wait(name, lambda s: s["attempt"] == attempt and s["waiting"]["reason"] == "PodGated", LIMIT)


def cost(status):
    return status["failures"], status["disruptions"]


def fill(jobs, name="holder", **spec):
    """A job that has the queue's one CPU until it is deleted."""
    jobs.apply(queued(name, runs(900), **spec))
    jobs.wait_running(name)


@row("The quota is full")
def test_a_job_without_quota_waits_without_cost_and_without_a_deadline(queue, jobs):
    queue(1)
    jobs.apply(queued("first", runs(12)))
    jobs.wait_running("first")
    jobs.apply(queued("second", runs(1), activeDeadlineSeconds=5))
    status = wait_gated(jobs, "second")
    assert GATE in status["waiting"]["message"]
    assert (status["phase"], status["attempt"], cost(status)) == ("Running", 1, (0, 0))
    status = jobs.wait_phase("second", "Succeeded", "Failed")
    assert (status["phase"], status["attempt"], cost(status)) == ("Succeeded", 1, (0, 0))
    assert status["suspendedSeconds"] > 5


@row("There is quota")
def test_an_admitted_pod_gets_the_node_selector_of_its_flavor(queue, jobs):
    queue(1)
    jobs.apply(queued("placed", runs(900)))
    pod = jobs.wait_running("placed")
    assert pod["spec"]["nodeSelector"] == {"pool": "batch"}
    assert pod["spec"]["nodeName"] in ("node-0", "node-1")


@row("A job has more open runs than quota")
def test_runs_of_one_job_never_have_more_than_the_quota(kueue, queue, jobs):
    queue(2)
    jobs.apply(queued("many", runs(1), completions=6, parallelism=6))
    most = 0

    def done():
        nonlocal most
        most = max(most, sum(has(w, "Admitted") and not has(w, "Finished") for w in kueue.workloads(jobs.namespace)))
        return jobs.status("many").get("phase") == "Succeeded"

    wait_for("the job to succeed", done, LIMIT)
    assert 1 <= most <= 2
    status = jobs.status("many")
    assert (status["succeeded"], cost(status)) == (6, (0, 0))


@row("A workload with a higher priority takes the quota")
def test_a_preempted_pod_comes_back_when_there_is_quota(queue, jobs):
    queue(1, **PREEMPTS)
    fill(jobs, "modest", priority="low")
    jobs.apply(queued("urgent", runs(5), priority="urgent"))
    wait_gated_attempt(jobs, "modest", 2)
    jobs.wait_phase("urgent", "Succeeded")
    jobs.wait_running("modest")
    status = jobs.status("modest")
    assert [entry["outcome"] for entry in status["history"]] == ["Lost"]
    assert cost(status) == (0, 1)


@row("The same, with a rule for it (below)")
def test_with_an_ignore_rule_a_preemption_spends_nothing(queue, jobs):
    queue(1, **PREEMPTS)
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "TerminationTarget", "status": "True"}]}]}
    fill(jobs, "modest", priority="low", podFailurePolicy=policy)
    jobs.apply(queued("urgent", runs(5), priority="urgent"))
    jobs.wait_phase("urgent", "Succeeded")
    jobs.wait_running("modest")
    status = jobs.status("modest")
    assert (status["attempt"], cost(status)) == (2, (0, 0))


@row("An attempt fails or is lost")
def test_a_next_attempt_queues_behind_those_who_wait(queue, jobs):
    queue(1)
    fill(jobs, "fails", retryBackoff=BEHIND_OTHERS)
    jobs.apply(queued("waits", runs(900)))
    wait_gated(jobs, "waits")
    jobs.end_pod(jobs.pod("fails"), "Failed", 1)
    jobs.wait_running("waits", 120)
    wait_gated_attempt(jobs, "fails", 2)
    jobs.delete("waits")
    jobs.end_pod(jobs.wait_running("fails"))
    assert cost(jobs.wait_phase("fails", "Succeeded")) == (1, 0)


@row("The namespace has a LocalQueue named `default`")
def test_a_namespace_with_a_default_queue_needs_no_label(queue, jobs):
    queue(1, name="default")
    jobs.apply(queued("first", runs(900), queue_name=None))
    assert jobs.wait_running("first")["metadata"]["labels"][QUEUE] == "default"
    jobs.apply(queued("second", queue_name=None))
    wait_gated(jobs, "second")


@row("A job without label, and no LocalQueue `default`")
def test_without_a_label_and_a_default_queue_kueue_leaves_a_job_alone(kueue, jobs):
    jobs.apply(queued("free", queue_name=None))
    jobs.wait_phase("free", "Succeeded")
    assert kueue.workloads(jobs.namespace) == []


@row("You suspend the job")
def test_a_suspended_job_gives_its_quota_back(kueue, queue, jobs):
    queue(1)
    fill(jobs)
    jobs.apply(queued("next", runs(900)))
    wait_gated(jobs, "next")
    jobs.patch("holder", suspend=True)
    jobs.wait_phase("holder", "Suspended")
    jobs.wait_running("next")
    jobs.patch("holder", suspend=False)
    assert cost(wait_gated(jobs, "holder")) == (0, 0)


@row("You cancel or delete a job whose pod is gated")
def test_a_gated_job_is_cancelled_or_deleted_at_once(kueue, queue, jobs):
    queue(1)
    fill(jobs)
    for name in ("cancelled", "deleted"):
        jobs.apply(queued(name))
        wait_gated(jobs, name)
    jobs.patch("cancelled", cancel=True)
    jobs.wait_phase("cancelled", "Cancelled")
    jobs.delete("deleted", "Foreground")
    wait_for("the job to be gone", lambda: jobs.get("deleted") is None, LIMIT)
    wait_for("the pods to be gone", lambda: len(jobs.pods()) == 1, LIMIT)
    wait_for("their workloads to be gone", lambda: len(kueue.workloads(jobs.namespace)) == 1, LIMIT)


@row("The job also has a [JobQueue](queues.md)")
def test_a_job_holds_its_permit_while_its_pod_is_gated(cluster, queue, jobs):
    queue(1)
    cluster.api("POST", jobs.path.replace("durablejobs", "jobqueues"), {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "JobQueue", "metadata": {"name": "one"},
        "spec": {"concurrency": 1}})
    fill(jobs)
    jobs.apply(queued("gated", queue={"name": "one"}))
    wait_gated(jobs, "gated")
    jobs.apply(queued("queued", queue={"name": "one"}))
    jobs.wait("queued", lambda s: (s.get("waiting") or {}).get("reason") == "Queued", LIMIT)
    jobs.delete("holder")
    jobs.wait_phase("queued", "Succeeded")


def group(total):
    return {"kueue.x-k8s.io/pod-group-name": "gang"}, {"kueue.x-k8s.io/pod-group-total-count": str(total)}


@row("Runs of a pod group")
def test_runs_of_a_pod_group_start_together_or_not_at_all(kueue, queue, jobs):
    queue(2)
    fill(jobs)
    labels, annotations = group(2)
    gang = queued("gang", runs(3) | annotations, completions=2, parallelism=2)
    gang["spec"]["template"]["metadata"]["labels"] |= labels
    jobs.apply(gang)
    wait_for("both pods to be gated", lambda: len(jobs.pods("gang")) == 2, LIMIT)
    wait_gated(jobs, "gang")
    [workload] = [w for w in kueue.workloads(jobs.namespace) if w["metadata"]["name"] == "gang"]
    assert not has(workload, "Admitted")
    jobs.delete("holder")
    assert cost(jobs.wait_phase("gang", "Succeeded")) == (0, 0)


@row("A run of a pod group fails")
def test_a_failed_run_of_a_pod_group_is_replaced(kueue, queue, jobs):
    queue(2)
    labels, annotations = group(2)
    gang = queued("gang", runs(1, "1,0,0,0") | annotations, completions=2, parallelism=2)
    gang["spec"]["template"]["metadata"]["labels"] |= labels
    jobs.apply(gang)
    status = jobs.wait_phase("gang", "Succeeded", "Failed")
    assert (status["phase"], cost(status)) == ("Succeeded", (1, 0))


@row("Kueue is away")
def test_while_kueue_is_away_no_pod_starts_and_nothing_is_spent(kueue, cluster, queue, jobs):
    queue(1)
    cluster.kill("kueue")
    cluster.wait_ended("kueue")
    jobs.apply(queued("patient"))
    jobs.wait("patient", lambda s: "webhook" in (s.get("waiting") or {}).get("message", ""), LIMIT)
    kueue.start()
    status = jobs.wait_phase("patient", "Succeeded", limit=120)
    assert cost(status) == (0, 0)


@row("A node dies, and the quota is full")
def test_a_pod_on_a_dead_node_keeps_its_quota_until_it_is_gone(cluster, queue, jobs):
    queue(1)
    jobs.apply(queued("survivor", runs(30), lostAfterSeconds=15))
    node = jobs.wait_running("survivor")["spec"]["nodeName"]
    cluster.kill_node(node)
    cluster.kubectl("cordon", node)
    status = wait_gated_attempt(jobs, "survivor", 2)
    assert [entry["outcome"] for entry in status["history"]] == ["Lost"]
    assert [pod["metadata"].get("deletionTimestamp") is not None for pod in jobs.pods("survivor")] == [True, False]
    # What an admin says of a node that is surely off.
    cluster.kubectl("taint", "node", node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    status = jobs.wait_phase("survivor", "Succeeded", limit=120)
    assert (status["attempt"], cost(status)) == (2, (0, 1))
