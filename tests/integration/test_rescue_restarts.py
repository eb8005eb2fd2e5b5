"""Pods of other controllers while the operator restarts, and on nodes that come back."""

import time

from holdfast import OPERATOR_USER, QUICK_LEASES, Operator
from lane import BatchJobs
from localcluster import wait_for
from losses import new_namespace, seconds_of, wait_renewals, write_time, write_times
from others import LABEL, other_job, wait_running
from real_cluster import moment, node_lease


def test_a_restarted_operator_goes_on_with_the_window(cluster):
    jobs = BatchJobs(cluster, new_namespace(cluster, "rescue-restart"))
    window = 40
    with Operator(cluster, "--rescue=on", leases=QUICK_LEASES) as first:
        jobs.apply(other_job("freed", LABEL, {"holdfast.dev/lostAfterSeconds": str(window)}))
        pod = wait_running(jobs, "freed")
        node = pod["spec"]["nodeName"]
        wait_renewals(cluster, (node,))
        offset = cluster.audit_offset()
        cluster.kubectl("cordon", node)
        cluster.kill_node(node)
        renewed = seconds_of(cluster.node_lease(node)["spec"]["renewTime"])
        leases = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases"
        wait_for("the window to be recorded", lambda: any(
            f'"silent/{node}"' in lease["metadata"].get("annotations", {}).get("holdfast.dev/windows", "")
            for lease in cluster.api("GET", leases)[1]["items"]), 60)
        first.kill()
    try:
        with Operator(cluster, "--rescue=on", leases=QUICK_LEASES):
            decided = write_time(cluster, offset, "patch", pod["metadata"]["name"], subresource="status",
                                 user=OPERATOR_USER)
    finally:
        cluster.kubectl("uncordon", node)
        cluster.revive_node(node)
    # Without the record, the window would start again: at least 15 s later.
    assert window - 1 <= decided - renewed <= window + 12


def test_a_node_that_comes_back_within_the_window_keeps_its_pods(cluster):
    jobs = BatchJobs(cluster, new_namespace(cluster, "rescue-back"))
    with Operator(cluster, "--rescue=on", leases=QUICK_LEASES):
        jobs.apply(other_job("lives", LABEL, {"holdfast.dev/lostAfterSeconds": "20"}))
        pod = wait_running(jobs, "lives")
        node = pod["spec"]["nodeName"]
        wait_renewals(cluster, (node,))
        offset = cluster.audit_offset()
        cluster.kill_node(node)
        wait_for("the node to be silent for most of the window",
                 lambda: time.time() - moment(node_lease(cluster, node)["spec"]["renewTime"]) > 14, 30, poll=0.2)
        cluster.revive_node(node)
        for _ in range(3):
            wait_renewals(cluster, (node,))
    assert write_times(cluster, offset, "patch", pod["metadata"]["name"], subresource="status", user=OPERATOR_USER) == []
    assert [one["metadata"]["uid"] for one in jobs.pods("lives")] == [pod["metadata"]["uid"]]
