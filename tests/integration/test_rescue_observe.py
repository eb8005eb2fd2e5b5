"""rescue.mode observe: what would be freed is written down, and nothing else is written."""

import json

import pytest
from holdfast import OPERATOR_USER, QUICK_LEASES, Operator
from lane import BatchJobs
from localcluster import wait_for
from losses import new_namespace, wait_renewals
from others import WINDOW, other_job, wait_running
from plugin import Plugin

JOURNAL = "/api/v1/namespaces/holdfast-system/configmaps/holdfast-rescue-journal"
RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: holdfast-observer, namespace: holdfast-system}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, create, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: holdfast-observer, namespace: holdfast-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: holdfast-observer}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: holdfast-operator}
"""


def entries(cluster):
    status, found = cluster.api("GET", JOURNAL)
    return json.loads(found["data"]["journal.json"]) if status == 200 else []


@pytest.fixture(scope="module")
def observed(cluster):
    """A Job without any label, on a node that falls silent."""
    cluster.kubectl("apply", "-f", "-", input=RIGHTS)
    jobs = BatchJobs(cluster, new_namespace(cluster, "observe"))
    with Operator(cluster, "--rescue=observe", leases=QUICK_LEASES) as operator:
        offset = cluster.audit_offset()
        jobs.apply(other_job("hangs"))
        pod = wait_running(jobs, "hangs")
        node = pod["spec"]["nodeName"]
        wait_renewals(cluster, (node,))
        cluster.kubectl("cordon", node)
        cluster.kill_node(node)
        wait_for("the pod to be written down", lambda: entries(cluster), 120)
        yield jobs, pod, node, offset, operator


def test_a_pod_that_hangs_is_written_down_with_its_times(cluster, observed):
    _, pod, node, _, _ = observed
    [entry] = entries(cluster)
    assert (entry["pod"], entry["node"], entry["controller"]) == (pod["metadata"]["name"], node, "Job/hangs")
    assert entry["uid"] == pod["metadata"]["uid"] and "ended" not in entry and "returned" not in entry


def test_it_writes_its_lease_and_its_config_map_and_nothing_else(cluster, observed):
    _, _, _, offset, _ = observed
    written = {(event["objectRef"]["resource"], event["objectRef"].get("name")) for event in cluster.audit_events(offset)[0]
               if event["user"]["username"] == OPERATOR_USER and event["verb"] not in ("get", "list", "watch")
               and "objectRef" in event}
    assert written - {("leases", None), ("configmaps", None)} <= {
        ("leases", "holdfast-observer"), ("configmaps", "holdfast-rescue-journal")}


def test_the_report_shows_it(cluster, observed):
    done = Plugin(cluster)("report", "-o", "json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["pods"] == 1 and report["falseVerdicts"] == 0
    assert WINDOW <= report["withHoldfastSeconds"] <= WINDOW + 4
    table = Plugin(cluster)("report").out
    assert "Job/hangs" in table and "hangs" in table.splitlines()[1]
