"""Ways in which a warm worker or a tenant tries to get past the fence of the workers' Leases, and what it lets
through. Tokens are real, bound to pods as a kubelet's are. Nothing has changed after a refusal."""

import copy
import itertools
import json
import uuid

import pytest
from fence import PROGRESS, JobLease, Pod, expect, lease_path, renewed, warning_fence
from fence_attacks import (
    APPLY,
    HERE,
    JSON,
    JOB_UID,
    LATER,
    MERGE,
    STRATEGIC,
    World,
    annotate,
    apply,
    delete,
    no_right_to,
    patch,
    put,
    remembered,
    take_down,
)
from holdfast import OPERATOR_USER
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False, "scheduler": False, "audit": False}
WORK, WORKER = "holdfast.dev/work", "holdfast.dev/worker"
POOL = "holdfast.dev/worker-pool"
API = f"/apis/holdfast.dev/v1alpha1/namespaces/{HERE}"
_numbers = itertools.count(1)

# What the fence says.
OPERATOR = "fenced: only the operator creates and deletes the Leases of warm workers"
ORDERS = "fenced: only the operator writes what a warm worker shall do"
NAME = "fenced: only the pod with the UID in this Lease's name may renew it"
HOLDER = "fenced: a warm worker renews its Lease only while it holds it: "
SPEC = "fenced: a warm worker changes nothing in its Lease's spec but renewTime"
NO_RENEWAL = "fenced: a renewal has a renewTime"
METADATA = "fenced: a warm worker changes nothing in its Lease's metadata but its annotations"
ANNOTATION = "fenced: a warm worker changes no annotation but holdfast.dev/worker"
TOO_LONG = "fenced: holdfast.dev/worker has at most 16384 bytes"
JOBS_HOLDER = "fenced: only the pod that holds this Lease may renew it: "


class Scene:
    """A fresh worker with its two Leases, as the operator makes them; the worker has renewed once. Its pod is
    `worker` in the world."""

    def __init__(self, world):
        self.world, self.cluster = world, world.cluster
        name = f"worker-{next(_numbers)}"
        self.pool = expect(self.cluster.api("POST", f"{API}/workerpools", pool(name)))
        self.pod = Pod(self.cluster, HERE, name, "worker")
        world.tokens |= {"worker": self.pod.token(), "workers-for-another-audience": self.pod.token(audiences=["vault"])}
        self.work = self._make("work", annotations={WORK: '{"seq":1}'})
        self.work_path = lease_path(HERE, self.work["metadata"]["name"])
        lease = self._make("worker", annotations={"example.com/note": "the operator's"})
        self.path = lease_path(HERE, lease["metadata"]["name"])
        self.write(renewed(lease))

    def _make(self, kind, **metadata):
        owner = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "name": self.pool["metadata"]["name"],
                 "uid": self.pool["metadata"]["uid"], "controller": True}
        spec = {"leaseDurationSeconds": 30, "acquireTime": LATER}
        if kind == "worker":
            spec["holderIdentity"] = self.pod.identity
        return expect(self.as_operator("POST", lease_path(HERE), {
            "metadata": {"name": f"holdfast-{kind}-{self.pod.uid}", "ownerReferences": [owner],
                         "labels": {POOL: self.pod.name}, **metadata}, "spec": spec}))

    def as_operator(self, method, path, body=None):
        return self.cluster.api(method, path, body, user=OPERATOR_USER)

    def write(self, lease):
        """As the operator, the worker Lease."""
        self.lease = expect(self.as_operator("PUT", self.path, lease))

    def set_holder(self, holder):
        lease = copy.deepcopy(self.lease)
        lease["spec"]["holderIdentity"] = holder
        if holder is None:
            del lease["spec"]["holderIdentity"]
        self.write(lease)

    def snapshot(self, path):
        """All Leases here, and what the attack aims at."""
        status, aim = self.cluster.api("GET", path)
        aim = aim.get("items", aim)  # a list's own version is the whole cluster's
        return self.cluster.api("GET", lease_path(HERE))[1]["items"], (status, aim)


def pool(name):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "x", "command": ["work"]}]}}}}


# -- requests, each a function of the scene ---------------------------------------------------------


def held_by(holder, request):
    """Before it the operator has written this holder (None: nobody)."""
    def prepared(scene):
        scene.set_holder(holder(scene) if callable(holder) else holder)
        return request(scene)

    return prepared


def held_by_the_rival(request):
    return held_by(lambda scene: scene.world.rival.identity, request)


def revoke(scene):
    scene.set_holder("revoked")


def made_anew(scene):
    """The Lease was deleted, and the operator has made it again as revoked."""
    lease = copy.deepcopy(scene.lease)
    expect(scene.as_operator("DELETE", scene.path))
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        lease["metadata"].pop(key, None)
    lease["spec"]["holderIdentity"] = "revoked"
    expect(scene.as_operator("POST", lease_path(HERE), lease))


def gone(request):
    """Before it the operator has deleted the worker Lease."""
    def prepared(scene):
        expect(scene.as_operator("DELETE", scene.path))
        return request(scene)

    return prepared


def orders(text='{"seq":2}', **spec):
    """A write of the work Lease."""
    def request(scene):
        lease = copy.deepcopy(scene.work)
        lease["metadata"]["annotations"][WORK] = text
        lease["spec"] |= spec
        return "PUT", scene.work_path, lease

    return request


def orders_held_by_the_worker(scene):
    """Even if the work Lease had the worker as its holder."""
    lease = copy.deepcopy(scene.work)
    lease["spec"]["holderIdentity"] = scene.pod.identity
    scene.work = expect(scene.as_operator("PUT", scene.work_path, lease))
    return orders()(scene)


def on_orders(request):
    """The request against the work Lease."""
    def aimed(scene):
        scene.lease, scene.path = scene.work, scene.work_path
        return request(scene)

    return aimed


def create(kind, whose=None, method="POST"):
    """A Lease with this reserved name. `whose`: gives the pod's UID."""
    def request(scene):
        called = f"holdfast-{kind}-{whose(scene) if whose else uuid.UUID(int=next(_numbers))}"
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": called},
                 "spec": {"holderIdentity": scene.pod.identity, "renewTime": LATER}}
        if method == "PATCH":
            return method, f"{lease_path(HERE, called)}?fieldManager=me", lease, APPLY
        return method, lease_path(HERE, called if method == "PUT" else None), lease

    return request


def delete_all(scene):
    return "DELETE", f"{lease_path(HERE)}?labelSelector={POOL}%3D{scene.pod.name}"


def jobs_lease(scene):
    """The renewal of a Lease of a job with a heartbeat, which another pod holds."""
    lease = JobLease(scene.cluster, HERE, f"beats-{next(_numbers)}")
    return "PUT", lease.path, renewed(lease.grant(scene.world.holder), LATER)


def electors_lease(scene):
    lease = expect(scene.cluster.api("POST", lease_path(HERE), {
        "metadata": {"name": f"lock-of-{scene.pod.name}"}, "spec": {"holderIdentity": "elector-1"}}))
    return "PUT", lease_path(HERE, lease["metadata"]["name"]), renewed(lease)


def a_job(scene):
    name = f"job-{next(_numbers)}"
    body = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"workerPool": {"name": scene.pool["metadata"]["name"]}, "payload": "1"}}
    return expect(scene.cluster.api("POST", f"{API}/durablejobs", body))


def job_status(scene):
    job = a_job(scene)
    status = {"phase": "Succeeded", "attempt": 1, "completionTime": "2026-01-02T03:04:05Z"}
    return "PUT", f"{API}/durablejobs/{job['metadata']['name']}/status", job | {"status": status}


def job_message(scene):
    return "PATCH", f"{API}/durablejobs/{a_job(scene)['metadata']['name']}", {"spec": {"message": "stop"}}, MERGE


def pool_patch(body, subresource=""):
    return lambda scene: ("PATCH", f"{API}/workerpools/{scene.pool['metadata']['name']}{subresource}", body, MERGE)


def mint(scene):
    """A token of another pod's."""
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "rival", "uid": scene.world.rival.uid}
    return "POST", f"/api/v1/namespaces/{HERE}/serviceaccounts/worker/token", {"spec": {"boundObjectRef": reference}}


ME = {"spec": {"holderIdentity": "me"}}
RIVAL = [{"apiVersion": "v1", "kind": "Pod", "name": "rival", "uid": "1", "controller": True}]
POLICY = "validatingadmissionpolicies"
MODIFIED = "the object has been modified"

# What: (who, the request, words of the answer, its status code if that is not 403).
ATTACKS = {
    # A worker and a Lease that is not its own.
    "another-workers-lease": ("rival", put(), NAME),
    "another-workers-lease-with-itself-as-holder": ("rival", held_by_the_rival(put()), NAME),
    "a-pod-of-that-name-elsewhere": ("stranger", put(), no_right_to("update")),
    "a-deleted-pods-token": ("deleted", put(), "Unauthorized", 401),
    "a-token-for-others": ("workers-for-another-audience", put(), "Unauthorized", 401),
    "an-unbound-token": ("unbound", put(), NAME),
    "an-unbound-token-and-no-holder": ("unbound", held_by(None, put()), NAME),
    "a-token-bound-to-a-secret": ("bound-to-a-secret", put(), NAME),
    "a-jobs-lease": ("worker", jobs_lease, JOBS_HOLDER + "holder/"),
    "an-electors-lease": ("worker", electors_lease, JOBS_HOLDER + "elector-1 holds it"),
    # A worker that was revoked or cut off.
    "revoked": ("worker", held_by("revoked", put()), HOLDER + "revoked holds it"),
    "cut-off": ("worker", held_by(None, put()), HOLDER + "nobody holds it"),
    "empty-holder": ("worker", held_by("", put()), HOLDER + "nobody holds it"),
    "a-slash-as-holder": ("worker", held_by("/", put()), HOLDER + "/ holds it"),
    "given-to-the-rival": ("worker", held_by_the_rival(put()), HOLDER + "rival/"),
    "the-holder-by-name-alone": ("worker", held_by(lambda scene: scene.pod.name, put()), HOLDER + "worker-"),
    "another-name-with-its-uid": ("worker", held_by(lambda scene: f"x/{scene.pod.uid}", put()), HOLDER + "x/"),
    "revoked-and-taken-back": (
        "worker", held_by("revoked", put("spec", "holderIdentity", "me")), HOLDER + "revoked holds it"),
    "revoked-unseen": ("worker", remembered(revoke), MODIFIED, 409),
    "made-anew-unseen": ("worker", remembered(made_anew), "Precondition failed: UID", 409),
    # The holder, and more than a renewal.
    "a-forged-holder": ("worker", put("spec", "holderIdentity", "rival/1"), SPEC),
    "no-holder": ("worker", put("spec", "holderIdentity", None), SPEC),
    "a-longer-lease": ("worker", put("spec", "leaseDurationSeconds", 3600), SPEC),
    "no-duration": ("worker", put("spec", "leaseDurationSeconds", None), SPEC),
    "a-number-of-transitions": ("worker", put("spec", "leaseTransitions", 7), SPEC),
    "another-acquire-time": ("worker", put("spec", "acquireTime", "2026-01-02T03:04:09.000000Z"), SPEC),
    "no-renew-time": ("worker", put("spec", "renewTime", None), NO_RENEWAL),
    "another-pools-label": ("worker", put("metadata", "labels", POOL, "another"), METADATA),
    "a-jobs-label": ("worker", put("metadata", "labels", JOB_UID, "another"), METADATA),
    "no-labels": ("worker", put("metadata", "labels", None), METADATA),
    "another-owner": ("worker", put("metadata", "ownerReferences", RIVAL), METADATA),
    "no-owner": ("worker", put("metadata", "ownerReferences", None), METADATA),
    "a-finalizer": ("worker", put("metadata", "finalizers", ["example.com/never"]), METADATA),
    "orders-on-its-own-lease": ("worker", annotate(WORK, '{"seq":9}'), ANNOTATION),
    "a-heartbeats-annotation": ("worker", annotate(PROGRESS, "1"), ANNOTATION),
    "another-note": ("worker", annotate("example.com/note", "mine"), ANNOTATION),
    "one-more-note": ("worker", annotate("holdfast.dev/worker-x", "1"), ANNOTATION),
    "no-notes": ("worker", put("metadata", "annotations", None), ANNOTATION),
    "a-report-of-16385-bytes": ("worker", annotate(WORKER, "x" * 16385), TOO_LONG),
    "a-report-of-16386-bytes-in-8193-characters": ("worker", annotate(WORKER, "ä" * 8193), TOO_LONG),
    # The holder, and the Lease that says what it shall do.
    "its-own-orders": ("worker", orders(), ORDERS),
    "its-own-orders-as-holder": ("worker", orders_held_by_the_worker, ORDERS),
    "claim-its-orders": ("worker", orders(holderIdentity="me"), ORDERS),
    "renew-its-orders": ("worker", orders('{"seq":1}', renewTime=LATER), ORDERS),
    "another-workers-orders": ("rival", orders(), ORDERS),
    "its-orders-by-patch": ("worker", on_orders(patch(ME)), no_right_to("patch")),
    "delete-its-orders": ("worker", on_orders(delete()), no_right_to("delete")),
    # The holder, and what a worker has no right to.
    "delete": ("worker", delete(), no_right_to("delete")),
    "delete-all": ("worker", delete_all, no_right_to("deletecollection")),
    "patch": ("worker", patch(ME), no_right_to("patch")),
    "create": ("worker", gone(create("worker", lambda scene: scene.pod.uid)), no_right_to("create")),
    "create-by-put": (
        "worker", gone(create("worker", lambda scene: scene.pod.uid, "PUT")), no_right_to("create")),
    "create-orders": ("worker", create("work"), no_right_to("create")),
    "the-jobs-status": ("worker", job_status, no_right_to("update", "durablejobs/status")),
    "the-jobs-message": ("worker", job_message, no_right_to("patch", "durablejobs")),
    "the-pool": ("worker", pool_patch({"spec": {"maxWorkers": 500}}), no_right_to("patch", "workerpools")),
    "the-pools-scale": (
        "worker", pool_patch({"spec": {"replicas": 5}}, "/scale"), no_right_to("patch", "workerpools/scale")),
    "a-token-of-the-rivals": ("worker", mint, no_right_to("create", "serviceaccounts/token")),
    "the-fence-itself": ("worker", take_down(POLICY, "holdfast-fence-workers"), no_right_to("delete", POLICY)),
    # Service accounts with more rights on Leases: by patch, and by create and delete.
    "patcher-patches": ("patcher", patch(ME), NAME),
    "patcher-patches-orders": ("patcher", on_orders(patch(ME)), ORDERS),
    "elector-renews": ("elector", put(), NAME),
    "elector-holds": ("elector", held_by(lambda scene: scene.world.elector.identity, put()), NAME),
    "elector-writes-orders": ("elector", orders(), ORDERS),
    "elector-deletes": ("elector", delete(), OPERATOR),
    "elector-deletes-orders": ("elector", on_orders(delete()), OPERATOR),
    "elector-makes-itself-a-worker": ("elector", create("worker", lambda scene: scene.world.elector.uid), OPERATOR),
    "elector-makes-itself-orders": ("elector", create("work", lambda scene: scene.world.elector.uid), OPERATOR),
    # People with the built-in role `edit`, which may do all things to Leases.
    "edit-renews": ("tenant", put(), NAME),
    "edit-writes-orders": ("tenant", orders(), ORDERS),
    "edit-patches-the-holder": ("tenant", patch(ME), NAME),
    "edit-patches-strategically": ("tenant", patch(ME, STRATEGIC), NAME),
    "edit-patches-orders-by-json": (
        "tenant", on_orders(patch([{"op": "remove", "path": "/metadata/annotations"}], JSON)), ORDERS),
    "edit-applies": ("tenant", apply, NAME),
    "edit-applies-orders": ("tenant", on_orders(apply), ORDERS),
    "edit-deletes": ("tenant", delete(), OPERATOR),
    "edit-deletes-orders": ("tenant", on_orders(delete()), OPERATOR),
    "edit-orphans": ("tenant", delete("?propagationPolicy=Orphan"), OPERATOR),
    "edit-deletes-all": ("tenant", delete_all, OPERATOR),
    "edit-squats-a-workers-name": ("tenant", create("worker"), OPERATOR),
    "edit-squats-by-put": ("tenant", create("worker", method="PUT"), OPERATOR),
    "edit-squats-by-apply": ("tenant", create("work", method="PATCH"), OPERATOR),
    "edit-squats-a-name-without-a-uid": ("tenant", create("worker", lambda _: "lock"), OPERATOR),
    "edit-makes-a-deleted-lease-again": ("tenant", gone(create("worker", lambda scene: scene.pod.uid)), OPERATOR),
    "edit-writes-the-outcome": ("tenant", job_status, no_right_to("update", "durablejobs/status")),
    "edit-writes-the-pools-status": (
        "tenant", pool_patch({"status": {"workers": 0}}, "/status"), no_right_to("patch", "workerpools/status")),
    "an-operator-of-elsewhere": ("neighbour", delete(), OPERATOR),
    "an-operator-of-elsewhere-writes-orders": ("neighbour", orders(), ORDERS),
    # People who act as workers.
    "a-worker-impersonated": ("landlord-as-worker", put(), NAME),
    "the-holder-impersonated": ("landlord-as-holder", put(), 'cannot impersonate resource "userextras/'),
}


@pytest.fixture(scope="module")
def world(cluster):
    return World(cluster)


@pytest.fixture()
def scene(world):
    return Scene(world)


def test_there_are_at_least_twenty_five_attacks():
    assert len(ATTACKS) >= 25


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_changes_nothing(world, scene, attack):
    who, make, words, *codes = ATTACKS[attack]
    request = make(scene)
    path = request[1].partition("?")[0]
    before = scene.snapshot(path)
    status, answer = world.api(who, *request)
    assert status == (codes or [403])[0], answer
    assert words in answer["message"]
    assert scene.snapshot(path) == before


# -- what is let through ------------------------------------------------------------------------------


def test_a_worker_renews_with_its_report_again_and_again(world, scene):
    for number, report in enumerate(["{}", "x" * 16384, "ä" * 8192]):
        lease = renewed(scene.lease, f"2026-01-02T03:05:{number:02}.000000Z")
        lease["metadata"]["annotations"][WORKER] = report
        lease["metadata"]["managedFields"] = [{}]
        scene.lease = expect(world.api("worker", "PUT", scene.path, lease))
        assert scene.lease["metadata"]["annotations"][WORKER] == report


def test_the_first_renewal_adds_what_was_not_there(world, scene):
    lease = copy.deepcopy(scene.lease)
    del lease["spec"]["renewTime"], lease["metadata"]["annotations"]
    scene.write(lease)
    expect(world.api("worker", *annotated_first(scene)))


def annotated_first(scene):
    lease = renewed(scene.lease, LATER)
    lease["metadata"]["annotations"] = {WORKER: '{"life":"1"}'}
    return "PUT", scene.path, lease


def test_a_worker_reads_its_orders_and_its_job_and_watches_its_orders(world, scene):
    assert expect(world.api("worker", "GET", scene.work_path))["metadata"]["uid"] == scene.work["metadata"]["uid"]
    name = a_job(scene)["metadata"]["name"]
    assert expect(world.api("worker", "GET", f"{API}/durablejobs/{name}"))["spec"]["payload"] == "1"
    name = scene.work["metadata"]["name"]
    event = scene.pod.client().first_event(f"{lease_path(HERE)}?watch=1&fieldSelector=metadata.name%3D{name}")
    assert event["object"]["metadata"]["name"] == name
    for path in (f"{API}/durablejobs", lease_path(HERE)):
        assert no_right_to("list", path.rpartition("/")[2]) in world.api("worker", "GET", path)[1]["message"]


def test_the_operator_orders_revokes_cuts_off_and_deletes(scene):
    expect(scene.as_operator(*orders()(scene)))
    for holder in ("revoked", None):
        scene.set_holder(holder)
    for path in (scene.path, scene.work_path):
        expect(scene.as_operator("DELETE", path))


def test_a_cluster_admin_may_repair(scene):
    for path in (scene.path, scene.work_path):
        expect(scene.cluster.api("PATCH", path, ME, "merge"))
        expect(scene.cluster.api("DELETE", path))


def test_the_leases_of_a_deleted_pool_are_collected(scene):
    expect(scene.cluster.api("DELETE", f"{API}/workerpools/{scene.pool['metadata']['name']}"))
    wait_for("both Leases to be collected", lambda: all(
        scene.cluster.api("GET", path)[0] == 404 for path in (scene.path, scene.work_path)), 60)


def test_a_lock_that_is_called_nearly_so_is_anybodys(world):
    name = f"holdfast-workbench-{next(_numbers)}"
    lease = expect(world.api("elector", "POST", lease_path(HERE), {
        "metadata": {"name": name}, "spec": {"holderIdentity": "a"}}))
    lease["spec"]["holderIdentity"] = "b"
    expect(world.api("elector", "PUT", lease_path(HERE, name), lease))
    expect(world.api("elector", "DELETE", lease_path(HERE, name)))


def test_no_expression_fails_whoever_asks_for_whatever(world, scene):
    """A failed one refuses too, but is no rule."""
    world.cluster.kubectl("apply", "-f", "-", input=json.dumps(warning_fence([HERE], "holdfast-fence-workers")))
    tenant = world.cluster.kubeconfig_for("tenant")
    lease, work = (path.rpartition("/")[2] for path in (scene.path, scene.work_path))

    def warnings(*command, **options):
        return world.cluster.kubectl(*command, "-n", HERE, kubeconfig=tenant, check=False, **options).stderr

    wait_for("the binding to warn", lambda: "Warning: " in warnings("delete", "lease", lease), 60)
    for command, options in [
        (["create", "-f", "-"], {"input": json.dumps(create("worker")(scene)[2])}),
        (["annotate", "lease", lease, "a=b"], {}),
        (["annotate", "lease", work, "a=b"], {}),
        (["delete", "lease", work], {}),
    ]:
        told = warnings(*command, **options)
        assert "binding 'warn': fenced: " in told
        assert "resulted in error" not in told
