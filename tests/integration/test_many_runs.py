"""Jobs of many runs on a real control plane: indexes, budgets, policies, losses, and what they cost."""

import collections
import time

import pytest

from holdfast import FINALIZER, indexed, job, runs
from lives import BY_HAND, SHORT_BACKOFF, finalizers, flush_audit, operator_writes, recorded
from localcluster import wait_for
from losses import LOST_AFTER

pytestmark = pytest.mark.usefixtures("operator")
INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod):
    return int(pod["metadata"]["labels"][INDEX])


def wait_pods(jobs, name, count, limit=60):
    """Pods of the job that have not ended, by index."""
    def alive():
        pods = [pod for pod in jobs.pods(name) if pod["status"]["phase"] not in ("Succeeded", "Failed")
                and not pod["metadata"].get("deletionTimestamp")]
        return pods if len(pods) == count else None

    return {index_of(pod): pod for pod in wait_for(f"{count} pods of {name}", alive, limit)}


def test_an_indexed_job_runs_each_index_once(jobs):
    jobs.apply(indexed("list", 12, 4, runs(0)))
    status = jobs.wait_phase("list", "Succeeded", limit=120)
    assert status["completedIndexes"] == "0-11"
    assert (status["completions"], status["succeeded"], status.get("failed", 0)) == ("12/12", 12, 0)
    assert "runs" not in status and not status["active"]
    pods = jobs.pods("list")
    assert sorted(index_of(pod) for pod in pods) == list(range(12))
    conditions = jobs.conditions("list")
    assert conditions["Complete"]["reason"] == conditions["SuccessCriteriaMet"]["reason"] == "CompletionsReached"
    assert all(entry["outcome"] == "Succeeded" for entry in status["history"])
    wait_for("all pods to be released", lambda: not finalizers(jobs, "list"), 60)


def test_each_pod_learns_its_index_as_in_batch_v1(jobs):
    jobs.apply(indexed("learn", 2, 2, pod=BY_HAND))
    pods = wait_pods(jobs, "learn", 2)
    for index, pod in pods.items():
        assert pod["metadata"]["annotations"][INDEX] == str(index)
        assert pod["spec"]["hostname"] == f"learn-{index}"
        environment = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
        assert environment["JOB_COMPLETION_INDEX"] == str(index)
        assert FINALIZER in pod["metadata"]["finalizers"]


def test_no_more_runs_are_open_than_parallelism_allows(cluster, jobs):
    offset = cluster.audit_offset()
    jobs.apply(job("wide", annotations=runs(1), completions=9, parallelism=3))
    jobs.wait_phase("wide", "Succeeded", limit=120)
    flush_audit(cluster, offset)
    assert max(sum("nextAttemptTime" not in run for run in status.get("runs", []))
               for _, status in recorded(cluster, offset, jobs, "wide")) == 3
    assert len(jobs.pods("wide")) == 9


def test_a_run_in_back_off_holds_up_no_other(jobs):
    jobs.apply(indexed("bad", 4, 1, pod=BY_HAND,
                       retryBackoff={"initialSeconds": 3600, "maxSeconds": 3600, "jitterPercent": 0}))
    jobs.end_pod(wait_pods(jobs, "bad", 1)[0], "Failed", 1)
    for index in (1, 2, 3):
        jobs.end_pod(wait_pods(jobs, "bad", 1)[index])
    status = jobs.wait("bad", lambda s: s.get("completedIndexes") == "1-3", 60)
    assert (status["phase"], status["failures"], status["waiting"]["reason"]) == ("Backoff", 1, "RetryBackoff")
    assert [run["index"] for run in status["runs"]] == [0]


def test_a_failed_index_ends_no_other_and_the_job_fails_at_the_end(jobs):
    jobs.apply(indexed("index", 3, 3, pod=BY_HAND, backoffLimitPerIndex=0))
    pods = wait_pods(jobs, "index", 3)
    jobs.end_pod(pods[1], "Failed", 1)
    jobs.wait("index", lambda s: s.get("failedIndexes") == "1" and s["phase"] == "Running", 60)
    jobs.end_pod(pods[0])
    jobs.end_pod(pods[2])
    status = jobs.wait_phase("index", "Failed")
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")
    assert jobs.conditions("index")["Failed"]["reason"] == "FailedIndexes"
    assert jobs.conditions("index")["FailureTarget"]["status"] == "True"


def test_a_failure_policy_fails_the_job_once_its_other_pods_are_down(jobs):
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    jobs.apply(indexed("policy", 3, 3, runs(600), podFailurePolicy={"rules": [rule]}))
    wait_for("three running pods", lambda: sum(p["status"]["phase"] == "Running" for p in jobs.pods("policy")) == 3, 60)
    pods = {index_of(pod): pod for pod in jobs.pods("policy")}
    jobs.end_pod(pods[1], "Failed", 42)
    status = jobs.wait_phase("policy", "Failed")
    failed = jobs.conditions("policy")["Failed"]
    assert failed["reason"] == "PodFailurePolicy"
    assert "exit code 42 matching FailJob rule at index 0" in failed["message"]
    assert status["failures"] == 1
    for pod in jobs.pods("policy"):
        assert pod["status"]["phase"] in ("Succeeded", "Failed"), "the job ends only when no pod of it runs"


def test_an_ignored_failure_costs_nothing(jobs):
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    jobs.apply(indexed("ignored", 1, 1, pod=BY_HAND, backoffLimit=0, disruptionLimit=0,
                       podFailurePolicy={"rules": [rule]}))
    jobs.end_pod(wait_pods(jobs, "ignored", 1)[0], "Failed", 137,
                 conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}])
    jobs.wait("ignored", lambda s: s.get("attempt") == 2, 60)
    status = jobs.status("ignored")
    assert (status["failures"], status["disruptions"], status["phase"]) == (0, 0, "Running")


def test_a_success_policy_ends_the_job_early(jobs):
    jobs.apply(indexed("sweep", 5, 3, pod=BY_HAND,
                       successPolicy={"rules": [{"succeededIndexes": "0-4", "succeededCount": 1}]}))
    pods = wait_pods(jobs, "sweep", 3)
    jobs.end_pod(pods[2])
    status = jobs.wait_phase("sweep", "Succeeded")
    assert status["completedIndexes"] == "2"
    assert jobs.conditions("sweep")["Complete"]["reason"] == "SuccessPolicy"


def test_suspend_and_parallelism_keep_what_is_completed(jobs):
    jobs.apply(indexed("change", 6, 2, pod=BY_HAND))
    pods = wait_pods(jobs, "change", 2)
    jobs.end_pod(pods[0])
    jobs.wait("change", lambda s: s.get("completedIndexes") == "0", 60)
    jobs.patch("change", suspend=True)
    jobs.wait_phase("change", "Suspended")
    jobs.patch("change", suspend=False, parallelism=4)
    assert sorted(wait_pods(jobs, "change", 4)) == [1, 2, 3, 4]
    jobs.patch("change", parallelism=1)
    assert sorted(wait_pods(jobs, "change", 1)) == [1]
    jobs.patch("change", parallelism=0)
    status = jobs.wait("change", lambda s: s["waiting"]["reason"] == "Paused", 60)
    assert status["phase"] == "Pending"
    jobs.patch("change", parallelism=1)
    assert sorted(wait_pods(jobs, "change", 1)) == [1]
    status = jobs.status("change")
    assert (status["failures"], status["disruptions"], status["completedIndexes"]) == (0, 0, "0")


def test_cancel_stops_every_run(jobs):
    jobs.apply(indexed("stop", 8, 4, runs(600)))
    wait_pods(jobs, "stop", 4)
    jobs.patch("stop", cancel=True)
    jobs.wait_phase("stop", "Cancelled")
    assert all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in jobs.pods("stop"))


def test_a_dead_node_costs_each_of_its_runs_one_disruption(cluster, jobs):
    jobs.apply(indexed("nodes", 30, 30, runs(600), lostAfterSeconds=LOST_AFTER))
    wait_for("30 running pods", lambda: sum(p["status"]["phase"] == "Running" for p in jobs.pods("nodes")) == 30, 120)
    by_node = collections.Counter(pod["spec"]["nodeName"] for pod in jobs.pods("nodes"))
    victim, held = by_node.most_common(1)[0]
    cluster.kubectl("cordon", victim)
    cluster.kill_node(victim)
    began = time.monotonic()
    status = jobs.wait("nodes", lambda s: s["disruptions"] == held and s.get("active") == 30, 120)
    assert time.monotonic() - began < 2 * LOST_AFTER + 20
    assert status["failures"] == 0
    lost = [run for run in status["runs"] if run.get("disruptions")]
    assert len(lost) == held and all(run["disruptions"] == 1 for run in lost)
    jobs.patch("nodes", cancel=True)
    cluster.kubectl("uncordon", victim)
    cluster.revive_node(victim)


def test_many_runs_share_their_status_writes(cluster, jobs):
    offset = cluster.audit_offset()
    jobs.apply(indexed("cheap", 200, 50, runs(0)))
    jobs.wait_phase("cheap", "Succeeded", limit=120)
    wait_for("all pods to be released", lambda: not finalizers(jobs, "cheap"), 60)
    flush_audit(cluster, offset)
    writes = [w for w in operator_writes(cluster, offset, jobs.namespace)
              if w.what.split("/")[0] in ("pods", "durablejobs") and w.name.startswith("cheap")]
    assert len(writes) <= 2.3 * 200, collections.Counter((w.verb, w.what) for w in writes)
