"""An operator with the rights that the chart gives it for listed namespaces, one of which is deleted."""

import pytest
import yaml

from chart import NAMESPACE
from holdfast import Jobs, Operator, install, job, runs
from lives import settle
from localcluster import wait_for

RIGHTS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:holdfast"


@pytest.fixture
def namespaces(helm, cluster):
    """Two of them, with the operator's rights in both."""
    install(cluster)
    for name in ("stays", "leaves"):
        cluster.kubectl("create", "namespace", name)
    objects = helm.objects({"watchNamespaces": ["stays", "leaves"], "workerNamespaces": []})
    rights = [item for item in objects if item["kind"] in RIGHTS and not item["metadata"].get("annotations", {}).get(
        "helm.sh/hook")]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(rights))
    return [Jobs(cluster, name) for name in ("stays", "leaves")]


def test_a_listed_namespace_that_is_deleted_keeps_nobody_elses_jobs(cluster, namespaces):
    stays, leaves = namespaces
    kubeconfig = cluster.kubeconfig_for(ACCOUNT, ["system:authenticated"], cluster.folder / "chart-account")
    flags = ["--watch-namespace=stays", "--watch-namespace=leaves"]
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
