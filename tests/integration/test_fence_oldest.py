"""The fence's expressions are understood by the oldest Kubernetes that it is made for: this API
server, emulating that version, knows no CEL that came later."""

import pytest

from fence import JobLease, Pod, expect, install_fence, lease_path, renewed

CLUSTER = {"nodes": 0, "kwok": False, "scheduler": False, "audit": False,
           "apiserver_flags": ["--emulated-version=1.32"]}
pytestmark = pytest.mark.usefixtures("pinned_kubernetes")


def test_on_kubernetes_1_32_the_holder_renews_and_another_pod_does_not(cluster, namespace):
    assert cluster.api("GET", "/version")[1]["emulationMinor"] == "32"
    install_fence(cluster, [namespace])
    lease, holder, rival = (JobLease(cluster, namespace, "job"), Pod(cluster, namespace, "holder"),
                            Pod(cluster, namespace, "rival"))
    current = renewed(lease.grant(holder), progress="0", age="0")
    assert holder.client().api("PUT", lease.path, current)[0] == 200
    status, answer = rival.client().api("PUT", lease.path, renewed(lease.get()))
    assert status == 403, answer
    assert "fenced: only the pod that holds this Lease" in answer["message"]


def test_on_kubernetes_1_32_a_warm_worker_renews_and_another_pod_does_not(cluster, namespace):
    install_fence(cluster, [namespace])
    worker, rival = Pod(cluster, namespace, "worker"), Pod(cluster, namespace, "rival")
    path = lease_path(namespace, f"holdfast-worker-{worker.uid}")
    lease = expect(cluster.api("POST", lease_path(namespace), {
        "metadata": {"name": path.rpartition("/")[2]}, "spec": {"holderIdentity": worker.identity}}))
    lease = expect(worker.client().api("PUT", path, renewed(lease)))
    status, answer = rival.client().api("PUT", path, renewed(lease))
    assert status == 403, answer
    assert "fenced: only the pod with the UID in this Lease's name may renew it" in answer["message"]
