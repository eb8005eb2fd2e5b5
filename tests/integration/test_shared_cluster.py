"""A control plane that serves many test files: each file finds it as it was after its installation."""

import pytest
from holdfast import Jobs, Operator, job, place, runs
from localcluster.initial_state import InitialState, Unlike
from shared_cluster import cluster_options

OPTIONS = cluster_options(None)
WHAT_IS_THERE = "namespaces,nodes,serviceaccounts,configmaps,services,all,dj,jq,wp,roles,rolebindings,clusterroles"
CONFIG = "/api/v1/namespaces/kube-public/configmaps/kube-root-ca.crt"


@pytest.fixture()
def cluster(shared_cluster):
    return shared_cluster.take(**OPTIONS)


@pytest.fixture()
def take(shared_cluster, cluster):
    """Takes it as the next file would."""
    pids = {name: part["pid"] for name, part in cluster.processes().items()}

    def take():
        taken = shared_cluster.take(**OPTIONS)
        assert {name: part["pid"] for name, part in taken.processes().items()} == pids, "another one was started"
        return taken

    return take


@pytest.fixture()
def state(cluster):
    return InitialState(cluster)


def everything(cluster):
    found = cluster.kubectl("get", WHAT_IS_THERE, "-A", "-o", "name").stdout.split()
    return sorted(found), cluster.api("GET", CONFIG)[1]["data"]


def work(cluster):
    """Jobs of all kinds, one that runs for ever in a namespace with a name that comes again."""
    with Operator(cluster, name="again") as operator:
        cluster.kubectl("create", "namespace", "again")
        jobs = Jobs(cluster, "again")
        jobs.apply(job("ends", annotations=runs(0)))
        jobs.apply(job("stays", annotations=runs(3600)))
        jobs.wait_phase("ends", "Succeeded")
        jobs.wait("stays", lambda status: place(status).get("nodeName"), 60)
        assert operator.log().count("shards") > 0
        return operator.log_path


def test_the_next_file_finds_nothing_of_what_the_file_before_has_made_changed_and_deleted(cluster, take):
    before = everything(cluster)
    for _ in range(2):  # the second one uses all names again
        log = work(cluster)
        cluster.kubectl("create", "deployment", "pods-again", "--image=any", "--replicas=3")
        cluster.kubectl("create", "cronjob", "jobs-again", "--image=any", "--schedule=* * * * *")
        cluster.kubectl("create", "clusterrole", "reader", "--verb=get", "--resource=pods")
        cluster.kubectl("patch", "configmap", "kube-root-ca.crt", "-n", "kube-public", "-p", '{"data": {"a": "b"}}')
        cluster.kubectl("delete", "clusterrole", "holdfast-operator")
        assert cluster.audit_events()[0]
        assert everything(take()) == before
        assert not log.exists()
        assert not [event for event in cluster.audit_events()[0] if event["userAgent"].startswith("holdfast-operator")]


def test_the_next_file_finds_the_nodes_alive_and_as_they_were(cluster, take):
    cluster.kubectl("label", "node", "node-0", "pool=batch")
    cluster.kubectl("cordon", "node-1")
    cluster.kubectl("taint", "node", "node-1", "a=b:NoExecute")
    cluster.kill_node("node-2")
    cluster.add_node("more")
    nodes = {node["metadata"]["name"]: node for node in take().api("GET", "/api/v1/nodes")[1]["items"]}
    assert sorted(nodes) == ["node-0", "node-1", "node-2"]
    assert "pool" not in nodes["node-0"]["metadata"]["labels"]
    assert not any(node["spec"].get("taints") for node in nodes.values())
    jobs = Jobs(cluster)
    with Operator(cluster):
        for name in nodes:
            jobs.apply(job(name, annotations=runs(0), pod={"nodeSelector": {"kubernetes.io/hostname": name}}))
        for name in nodes:
            jobs.wait_phase(name, "Succeeded")
    take()


def test_a_cluster_with_a_paused_part_is_not_reset(cluster, state):
    cluster.pause("kube-scheduler")
    with pytest.raises(Unlike, match="kube-scheduler"):
        state.restore()
    cluster.resume("kube-scheduler")
    state.restore()


def test_a_cluster_that_still_has_a_client_is_not_reset(cluster, state):
    with Operator(cluster):
        with pytest.raises(Unlike, match="holdfast-operator"):
            state.restore()
    state.restore()


def test_a_cluster_with_a_changed_custom_resource_definition_or_a_deleted_node_is_not_reset(cluster, state):
    cluster.kubectl("annotate", "crd", "durablejobs.holdfast.dev", "a=b")
    with pytest.raises(Unlike, match="durablejobs"):
        state.restore()
    state = InitialState(cluster)
    cluster.delete_node("node-0")
    with pytest.raises(Unlike, match="node-0"):
        state.restore()
