"""Pods have an etcd of their own (--etcd-servers-overrides=/pods#...): their resourceVersions have nothing to do with
those of jobs, queues and Leases, and are lower than all of them."""

import pytest
from holdfast import job, runs
from localcluster import wait_for
from queues import Queues, queue

CLUSTER = {"pods_apart": True}
LIMIT = 60


@pytest.fixture()
def queues(cluster, namespace):
    return Queues(cluster, namespace)


def version(cluster, path):
    status, listed = cluster.api("GET", path)
    assert status == 200
    return int(listed["metadata"]["resourceVersion"])


def lists_of_pods(cluster, offset, namespace):
    return [event for event in cluster.audit_events(offset)[0]
            if event["verb"] == "list" and event["requestURI"].startswith(f"/api/v1/namespaces/{namespace}/pods?")
            and event["user"]["username"].endswith("holdfast-operator")]


def test_a_queue_admits_jobs_that_wait_for_the_end_of_their_old_pods(cluster, operator, jobs, queues):
    assert version(cluster, "/api/v1/pods") < version(cluster, "/apis/holdfast.dev/v1alpha1/jobqueues")
    queues.apply(queue("encode", concurrency=1))
    names = ["first", "second", "third"]
    offset = cluster.audit_offset()
    for name in names:
        jobs.apply(job(name, annotations=runs(1, 1), queue={"name": "encode"}, podReplacementPolicy="Failed",
                       backoffLimit=1, retryBackoff={"initialSeconds": 1, "maxSeconds": 1}))
    for name in names:
        assert jobs.wait_phase(name, "Failed", limit=LIMIT)["attempt"] == 2
    wait_for("the queue to say that nothing runs", lambda: queues.status("encode").get("running") == 0, LIMIT)
    # Each rest of a job and each claim cost one or two.
    assert len(lists_of_pods(cluster, offset, jobs.namespace)) <= 30
