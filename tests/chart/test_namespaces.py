"""An operator with the rights that the chart gives it for listed namespaces, one of which is deleted."""

import pytest
import yaml

from chart import NAMESPACE
from holdfast import Jobs, Operator, install, job, runs
from lane import LANE, BatchJobs, batch_job
from lives import settle
from localcluster import wait_for
from webhooks import serving, targets_flags

RIGHTS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:holdfast"


def listed(helm, cluster, *names):
    """Makes these namespaces, with the operator's rights in each. Flags of the operator, and its kubeconfig."""
    install(cluster)
    for name in names:
        cluster.kubectl("create", "namespace", name)
    objects = helm.objects({"watchNamespaces": list(names), "workerNamespaces": [], "batchJobs": {"enabled": True}})
    rights = [item for item in objects if item["kind"] in RIGHTS and not item["metadata"].get("annotations", {}).get(
        "helm.sh/hook")]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(rights))
    kubeconfig = cluster.kubeconfig_for(ACCOUNT, ["system:authenticated"], cluster.folder / "chart-account")
    return [f"--watch-namespace={name}" for name in names], kubeconfig


def may_ask_for(cluster, name):
    return cluster.kubectl("auth", "can-i", "get", f"namespaces/{name}", "--as", ACCOUNT, check=False).returncode == 0


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    """A target that takes nothing."""
    with serving(tmp_path_factory.mktemp("receivers"), [("chat", "localhost")]) as made:
        made["chat"].answers = [500]
        yield made["chat"]


def test_a_listed_namespace_that_is_deleted_keeps_nobody_elses_jobs(helm, cluster):
    flags, kubeconfig = listed(helm, cluster, "stays", "leaves")
    stays, leaves = Jobs(cluster, "stays"), Jobs(cluster, "leaves")
    with Operator(cluster, *flags, kubeconfig=kubeconfig) as operator:
        leaves.apply(job("before", annotations=runs(0)))
        settle(leaves, "before")
        cluster.kubectl("delete", "namespace", "leaves")
        operator.kill()
        operator.start()
        wait_for("its lists to be refused", lambda: "is forbidden" in operator.log(), 30)
        stays.apply(job("after", annotations=runs(0)))
        assert settle(stays, "after")["phase"] == "Succeeded"
        assert operator.get("/readyz")[0] == 200
        assert operator.get("/healthz")[0] == 200
        assert may_ask_for(cluster, "leaves"), "it cannot find out that its own Role went with the namespace"
        assert not may_ask_for(cluster, "default")


def test_a_listed_namespace_goes_although_a_target_was_not_told(helm, cluster, chat, tmp_path):
    """Kubernetes deletes the operator's Role there with all else."""
    flags, kubeconfig = listed(helm, cluster, "told-to-go")
    batch = BatchJobs(cluster, "told-to-go")
    with Operator(cluster, *flags, *LANE, *targets_flags(tmp_path, [chat.target("chat")]), kubeconfig=kubeconfig):
        batch.apply(batch_job("last", runs(0), fields={"holdfast.dev/notify": "chat"}))
        batch.wait_condition("last", "Complete")
        [durable] = batch.durable.list()
        assert len(durable["status"]["outbox"]) == 1
        assert "finalizers" not in durable["metadata"]
        cluster.api("DELETE", "/api/v1/namespaces/told-to-go")
        wait_for("the namespace to be gone", lambda: cluster.api("GET", "/api/v1/namespaces/told-to-go")[0] == 404, 50)
