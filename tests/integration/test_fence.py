"""The fence lets through what is right: the holder's renewals, the operator, and everybody whose
Leases are none of its business, also where it is bound to the control plane's own namespaces."""

import itertools
import uuid

import pytest
from fence import (
    AGE,
    ENDED,
    FENCE_PATH,
    MESSAGE,
    PROGRESS,
    JobLease,
    Pod,
    TokenClient,
    expect,
    grant,
    install_fence,
    lease_path,
    lease_rules,
    renewed,
    token_of,
    wait_account,
    wait_allowed,
)
from holdfast import OPERATOR_USER, allow_heartbeats
from lives import wait_until_collector_knows
from localcluster import wait_for

CLUSTER = {"nodes": 1, "scheduler": False, "audit": False}
HERE, OPEN = "work", "open"
CONTROL_PLANE = ["kube-system", "kube-node-lease"]
MERGE = "application/merge-patch+json"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def fenced(cluster):
    """Fenced in HERE and, which nobody should do, in the control plane's namespaces."""
    for namespace in (HERE, OPEN):
        expect(cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
        wait_account(cluster, namespace)
    allow_heartbeats(cluster, OPEN)
    install_fence(cluster, [HERE, *CONTROL_PLANE])
    return cluster


def new_name(prefix):
    return f"{prefix}-{next(_numbers)}"


def held_by_a_pod(cluster, namespace=HERE, index=None):
    """(the Lease of the job, or of its run with this index; its pod): granted, not renewed yet."""
    pod = Pod(cluster, namespace, new_name("pod"))
    lease = JobLease(cluster, namespace, new_name("job"), index)
    lease.grant(pod)
    return lease, pod


def account_with(cluster, verbs, namespace=HERE):
    """(user name, client with an unbound token) of a new service account with these rights on the
    Leases of HERE."""
    name = new_name("account")
    expect(cluster.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}}))
    grant(cluster, HERE, name, lease_rules(*verbs), (namespace, name))
    user = f"system:serviceaccount:{namespace}:{name}"
    wait_allowed(cluster, HERE, user, verbs[-1])
    return user, TokenClient(cluster, token_of(cluster, namespace, name))


def plain_lease(cluster):
    return expect(cluster.api("POST", lease_path(HERE), {
        "metadata": {"name": new_name("lock")}, "spec": {"holderIdentity": "somebody"}}))


def put_plain(lease, **spec):
    """The request that an elector sends."""
    path = lease_path(lease["metadata"]["namespace"], lease["metadata"]["name"])
    return "PUT", path, lease | {"spec": lease["spec"] | spec}


@pytest.mark.parametrize("name", ["holdfast-fence", "holdfast-fence-workers"])
def test_no_expression_is_doubted(fenced, name):
    """The API server checks them against the schema of Leases, and warns."""
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}"

    def checked():
        policy = fenced.api("GET", path)[1]
        status = policy.get("status", {})
        return status.get("observedGeneration") == policy["metadata"]["generation"] and status

    status = wait_for("the policy to be type-checked", checked, 60)
    assert status["typeChecking"] == {}, f"{FENCE_PATH.name}: {status['typeChecking']}"


@pytest.mark.parametrize("index", [None, 0, 99999])
def test_a_holder_renews_until_its_end_and_its_successor_after_it(fenced, index):
    lease, first = held_by_a_pod(fenced, index=index)
    second = Pod(fenced, HERE, new_name("pod"))
    for pod in (first, second):
        if pod is second:
            lease.grant(second)
        agent = pod.client()
        current = expect(agent.api("GET", lease.path))
        assert "renewTime" not in current["spec"]
        for number, changes in enumerate([
            {"progress": "0", "age": "0"},
            {"progress": "1", "age": "0", "message": "42 %"},
            {"progress": "1", "age": "3", "message": "42 %"},
            {"progress": "2", "age": "0", "message": ""},
            {"progress": "2", "age": "1", "ended": "137"},
            {"progress": "2", "age": "2", "ended": "137"},
        ]):
            current = expect(agent.api("PUT", lease.path, renewed(
                current, f"2026-01-02T03:04:{number:02}.000000Z", **changes)))
        assert current["spec"]["holderIdentity"] == pod.identity
        assert current["metadata"]["annotations"][ENDED] == "137"
    assert first.client().api("PUT", lease.path, renewed(current))[0] == 403


def test_the_longest_values_are_let_through(fenced):
    lease, pod = held_by_a_pod(fenced)
    longest = {"progress": "9" * 18, "age": "9" * 9, "ended": "255", "message": "ä" * 128}
    current = expect(pod.client().api("PUT", lease.path, renewed(lease.get(), **longest)))
    annotations = current["metadata"]["annotations"]
    assert [annotations[key] for key in (PROGRESS, AGE, ENDED, MESSAGE)] == list(longest.values())


def test_a_renewal_may_take_progress_back(fenced):
    lease, pod = held_by_a_pod(fenced)
    current = renewed(lease.get(), progress="1", age="0", message="x")
    current = expect(pod.client().api("PUT", lease.path, current))
    for key in (PROGRESS, AGE, MESSAGE):
        del current["metadata"]["annotations"][key]
    expect(pod.client().api("PUT", lease.path, renewed(current)))


def test_a_renewal_need_not_repeat_what_the_api_server_keeps(fenced):
    lease, pod = held_by_a_pod(fenced)
    current = renewed(lease.get())
    for key in ("creationTimestamp", "managedFields"):
        del current["metadata"][key]
    expect(pod.client().api("PUT", lease.path, current))


def test_a_renewal_may_drop_the_record_of_who_wrote_what(fenced):
    """As agents do: then the API server has less to do at each renewal. It keeps none from then on."""
    lease, pod = held_by_a_pod(fenced)
    for when in ("2026-01-02T03:04:07.000000Z", "2026-01-02T03:04:08.000000Z"):
        current = renewed(lease.get(), when)
        current["metadata"]["managedFields"] = [{}]
        expect(pod.client().api("PUT", lease.path, current))
        assert "managedFields" not in lease.get()["metadata"]


def test_a_holder_whose_account_may_create_leases_renews(fenced):
    account, _ = account_with(fenced, ["create", "update"])
    pod = Pod(fenced, HERE, new_name("pod"), account.rpartition(":")[2])
    lease = JobLease(fenced, HERE, new_name("job"))
    lease.grant(pod)
    expect(pod.client().api("PUT", lease.path, renewed(lease.get())))


def test_an_operator_with_rights_in_this_namespace_alone_takes_and_grants(fenced):
    rule = {"apiGroups": ["holdfast.dev"], "resources": ["durablejobs/status"], "verbs": ["update"]}
    user, client = account_with(fenced, ["get", "create", "update"])
    grant(fenced, HERE, new_name("status"), [rule], (HERE, user.rpartition(":")[2]))
    wait_allowed(fenced, HERE, user, "update", "durablejobs/status", "holdfast.dev")
    lease, pod = held_by_a_pod(fenced)
    current = lease.get()
    current["spec"].pop("holderIdentity")
    current = expect(client.api("PUT", lease.path, current))
    current["spec"]["holderIdentity"] = pod.identity
    expect(client.api("PUT", lease.path, current))
    expect(client.api("POST", lease_path(HERE), {"metadata": {
        "name": new_name("another"), "labels": {"holdfast.dev/job-uid": "x"}}}))


def test_the_operator_deletes_the_lease_of_a_run_that_is_over(fenced):
    lease, _ = held_by_a_pod(fenced, index=3)
    expect(lease.as_operator("DELETE", lease.path))


def test_a_cluster_admin_may_repair(fenced):
    lease, _ = held_by_a_pod(fenced)
    expect(fenced.api("PATCH", lease.path, {"spec": {"holderIdentity": None}}, "merge"))
    expect(fenced.api("DELETE", lease.path))


def test_a_leader_elector_that_may_create_leases_elects(fenced):
    """Also when its lock is called nearly as a job's Lease."""
    _, client = account_with(fenced, ["get", "create", "update", "delete"])
    name = new_name(f"holdfast-{uuid.UUID(int=0)}-lock")
    lease = expect(client.api("POST", lease_path(HERE), {
        "metadata": {"name": name}, "spec": {"holderIdentity": "a", "leaseTransitions": 0}}))
    lease = expect(client.api(*put_plain(lease, holderIdentity="b", leaseTransitions=1)))
    expect(client.api("DELETE", lease_path(HERE, lease["metadata"]["name"])))


def test_who_is_no_service_account_of_the_namespace_is_no_worker(fenced):
    """A user, and an elector that runs elsewhere, have their rights from somebody else."""
    grant(fenced, HERE, new_name("user"), lease_rules("update"), "some-user")
    wait_allowed(fenced, HERE, "some-user", "update")
    _, elsewhere = account_with(fenced, ["update"], OPEN)
    request = put_plain(plain_lease(fenced), holderIdentity="a")
    lease = expect(fenced.api(*request, user="some-user"))
    expect(elsewhere.api(*put_plain(lease, holderIdentity="b")))


def test_a_service_account_that_may_delete_leases_deletes(fenced):
    _, client = account_with(fenced, ["delete"])
    expect(client.api("DELETE", lease_path(HERE, plain_lease(fenced)["metadata"]["name"])))


def test_nodes_and_the_control_plane_go_on(fenced):
    """Also where the fence is bound to their namespaces: nobody is a worker, no Lease a job's."""
    node = {"user": "system:node:by-certificate", "groups": ("system:nodes",)}
    expect(fenced.api("POST", "/api/v1/nodes", {"metadata": {"name": "by-certificate"}}))
    lease = expect(fenced.api("POST", lease_path("kube-node-lease"), {
        "metadata": {"name": "by-certificate"},
        "spec": {"holderIdentity": "by-certificate", "leaseDurationSeconds": 40}}, **node))
    expect(fenced.api(*put_plain(lease, renewTime="2026-01-02T03:04:05.000000Z"), **node))

    for user in ("kube-scheduler", "kube-controller-manager"):
        expect(fenced.api("POST", lease_path("kube-system"), {
            "metadata": {"name": user}, "spec": {"holderIdentity": "a"}}, user=f"system:{user}"))
        lease = fenced.api("GET", lease_path("kube-system", user))[1]
        expect(fenced.api(*put_plain(lease, holderIdentity="b"), user=f"system:{user}"))

    def renewals():
        [server] = fenced.api("GET", f"{lease_path('kube-system')}?labelSelector="
                              "apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver")[1]["items"]
        return server["spec"]["renewTime"], fenced.node_lease("node-0")["spec"]["renewTime"]

    before = renewals()
    wait_for("the API server's and the node's Leases to be renewed",
             lambda: all(now > then for now, then in zip(renewals(), before)), 60)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_jobs_lease_is_collected(fenced, propagation):
    lease, _ = held_by_a_pod(fenced)
    delete_job(fenced, lease, propagation)
    wait_for("the Lease to be collected", lambda: fenced.api("GET", lease.path)[0] == 404, 60)


def test_an_orphaned_lease_loses_its_owner(fenced):
    lease, _ = held_by_a_pod(fenced)
    wait_until_collector_knows(fenced, lease_path(HERE), {"metadata": {"name": new_name("ownerless")}})
    delete_job(fenced, lease, "Orphan")
    assert "ownerReferences" not in lease.get()["metadata"]


def delete_job(cluster, lease, propagation):
    expect(cluster.api("DELETE", lease.job_path, {"propagationPolicy": propagation}))
    wait_for("the job to be gone", lambda: cluster.api("GET", lease.job_path)[0] == 404, 60)


def test_a_namespace_with_a_held_lease_ends(cluster, fenced):
    path = "/api/v1/namespaces/ends"
    expect(cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": "ends"}}))
    install_fence(cluster, [HERE, *CONTROL_PLANE, "ends"])
    held_by_a_pod(cluster, "ends")
    expect(cluster.api("DELETE", path))
    wait_for("the namespace to be gone", lambda: cluster.api("GET", path)[0] == 404, 180)


@pytest.mark.parametrize("account, rights", [
    ("generic-garbage-collector", None),
    ("namespace-controller", lease_rules("delete", "patch")),
    ("storage-version-migrator-controller", lease_rules("delete", "patch")),
    (None, "system:controller:generic-garbage-collector"),
])
def test_the_clusters_own_controllers_are_let_through(fenced, account, rights):
    """Whether or not this cluster runs them so. None: a controller manager whose controllers have
    no credentials of their own, so that it has the rights of all of them."""
    user, api = "system:kube-controller-manager", lambda *request: fenced.api(*request, user=user)
    if account:
        user = f"system:serviceaccount:kube-system:{account}"
        expect(fenced.api("POST", "/api/v1/namespaces/kube-system/serviceaccounts",
                          {"metadata": {"name": account}}), 201, 409)
        api = TokenClient(fenced, token_of(fenced, "kube-system", account)).api
    if rights:
        grant(fenced, HERE, new_name("own"), rights, user)
    wait_allowed(fenced, HERE, user, "patch")
    lease, _ = held_by_a_pod(fenced)
    expect(api("PATCH", lease.path, {"metadata": {"ownerReferences": None}}, MERGE))
    expect(api("DELETE", lease.path))


def test_where_the_fence_is_not_bound_leases_are_as_everywhere(fenced):
    grant(fenced, OPEN, "edit", "edit", "tenant")
    wait_allowed(fenced, OPEN, "tenant", "delete")
    lease, _ = held_by_a_pod(fenced, OPEN)
    expect(fenced.api("DELETE", lease.path, user="tenant"))
