"""What docs/migrate.md and docs/uninstall.md tell people to type, typed: the move from batch/v1, and the end without
Helm."""

import json
import os
import subprocess

import pytest
from chart import NAMESPACE, ROOT
from doc_blocks import blocks
from holdfast import FINALIZER, GUARD_PATH, wait_for_guard
from localcluster import wait_for

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs"
BY_KUEUE = {"kueue.x-k8s.io/queue-name": "q"}


def block(page, heading, begins):
    """The fenced lines below this heading of the page that begin with this command."""
    [found] = [it for it in blocks(page, "sh", heading) if it.startswith(begins)]
    return found


def typed(cluster, script):
    path = f"{cluster.tools['kubectl'].parent}:{os.environ['PATH']}"
    return subprocess.run(["bash", "-uo", "pipefail", "-c", script], text=True, capture_output=True, timeout=120,
                          cwd=cluster.folder,
                          env={"PATH": path, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.folder)},
                          check=False)


def batch_job(name, pod=None, labels=None, **spec):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.36", "args": ["true"]}]}}
    template["spec"].update(pod or {})
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template, **spec},
            "metadata": {"name": name, "labels": labels or {}}}


@pytest.fixture(scope="module")
def moved(cluster):
    """Jobs in the cluster, with all that its controller writes into them, and the definition."""
    cluster.kubectl("apply", "-f", str(ROOT / "crds"))
    wait_for("DurableJobs to be served", lambda: cluster.kubectl("get", "dj", check=False).returncode == 0, 60)
    cluster.kubectl("apply", "-f", str(GUARD_PATH))
    wait_for_guard(cluster)
    jobs = [
        batch_job("plain"),
        batch_job("full", labels=BY_KUEUE, suspend=True, backoffLimit=2, activeDeadlineSeconds=60,
                  ttlSecondsAfterFinished=3600, podReplacementPolicy="Failed", pod={"volumes": [
                      {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}], "terminationGracePeriodSeconds": 5}),
        batch_job("one-of-one", completions=1, parallelism=1),
        batch_job("many", completions=3, parallelism=2),
        batch_job("indexed", completions=4, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1,
                  maxFailedIndexes=2, successPolicy={"rules": [{"succeededIndexes": "0-2", "succeededCount": 2}]}),
        batch_job("policy", podFailurePolicy={"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}),
        batch_job("in-place", pod={"restartPolicy": "OnFailure"}),
        batch_job("queue", parallelism=3),
    ]
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    cluster.kubectl("apply", "-f", str(ROOT / "examples/from-batch-job/job.yaml"))
    wait_for("the controller to have seen the jobs", lambda: "uncountedTerminatedPods" in cluster.kubectl(
        "get", "job", "plain", "-o", "json").stdout, 30)
    lines = block("migrate.md", "## Job", "kubectl get job pi ")
    return f'{lines.replace("get job pi ", "get job NAME ")}kubectl create -f durablejob.json\n'


@pytest.mark.parametrize("name", ["plain", "full", "one-of-one", "many", "indexed", "policy", "pi"])
def test_the_line_makes_a_durable_job_of_a_job(cluster, moved, name):
    done = typed(cluster, moved.replace("NAME", name))
    assert done.returncode == 0, done.stderr
    job = json.loads(cluster.kubectl("get", "job", name, "-o", "json").stdout)
    made = json.loads(cluster.kubectl("get", "dj", name, "-o", "json").stdout)
    assert "controller-uid" not in json.dumps(made)
    for field in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "podReplacementPolicy",
                  "suspend", "completions", "parallelism", "completionMode", "backoffLimitPerIndex",
                  "maxFailedIndexes", "podFailurePolicy", "successPolicy"):
        assert made["spec"].get(field) == job["spec"].get(field), field
    for field, value in job["spec"]["template"]["spec"].items():
        assert made["spec"]["template"]["spec"][field] == value, field


@pytest.mark.parametrize("name,field", [("queue", "spec.parallelism"), ("in-place", "restartPolicy")])
def test_what_a_durable_job_has_not_got_is_refused_by_name(cluster, moved, name, field):
    done = typed(cluster, moved.replace("NAME", name))
    assert done.returncode != 0 and field in done.stderr, done.stderr
    assert cluster.kubectl("get", "dj", name, check=False).returncode != 0


def test_all_jobs_of_a_namespace_are_moved_by_the_same_line(cluster, moved):
    cluster.kubectl("delete", "dj", "--all")
    done = typed(cluster, moved.replace("get job NAME", "get jobs"))
    made = cluster.kubectl("get", "dj", "-o", "name").stdout.split()
    assert sorted(name.rpartition("/")[2] for name in made) == [
        "full", "indexed", "many", "one-of-one", "pi", "plain", "policy"], done.stderr


def test_without_helm_the_lines_leave_no_finalizer_and_nothing_of_the_operator(cluster, moved):
    cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "charts/install.yaml"))
    cluster.kubectl("rollout", "status", "-n", NAMESPACE, "deployment/holdfast", "--timeout=60s")
    for name, finalizers in [("ours", [FINALIZER]), ("shared", ["example.com/other", FINALIZER]), ("free", [])]:
        pod = {"metadata": {"name": name, "finalizers": finalizers, "labels": {"holdfast.dev/job-uid": name}},
               "spec": {"containers": [{"name": "main", "image": "x"}]}}
        assert cluster.api("POST", PODS, pod)[0] == 201
    for name, finalizers in (("told", ["holdfast.dev/outbox"]), ("both", ["example.com/other", "holdfast.dev/outbox"])):
        job = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
               "metadata": {"name": name, "finalizers": finalizers},
               "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}}
        assert cluster.api("POST", JOBS, job)[0] == 201
    lines = block("uninstall.md", "## Without Helm", "kubectl -n holdfast-system scale")
    done = typed(cluster, "set -e\n" + lines)
    assert done.returncode == 0, done.stderr
    left = {name: cluster.api("GET", f"{PODS}/{name}")[1]["metadata"].get("finalizers", [])
            for name in ("ours", "shared", "free")}
    assert left == {"ours": [], "shared": ["example.com/other"], "free": []}
    left = {name: cluster.api("GET", f"{JOBS}/{name}")[1]["metadata"].get("finalizers", []) for name in ("told", "both")}
    assert left == {"told": [], "both": ["example.com/other"]}, done.stderr
    kinds = "role,rolebinding,clusterrole,clusterrolebinding,validatingadmissionpolicy," \
            "validatingadmissionpolicybinding"
    found = cluster.kubectl("get", kinds, "-A", "-o", "name").stdout.split()
    # Not the local cluster's own, for its dead nodes.
    assert [name for name in found if "holdfast" in name and "holdfast-test" not in name] == []
    assert cluster.kubectl("get", "dj", "-o", "name").stdout
