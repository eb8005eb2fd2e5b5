"""Ways in which a worker or a tenant tries to get past the fence: the API server refuses all of them,
and nothing has changed afterwards. Tokens are real ones, bound to pods as a kubelet asks for them."""

import itertools
import uuid

import pytest
from fence import (
    AGE,
    ENDED,
    GRANTED,
    JOB_UID,
    MESSAGE,
    PROGRESS,
    JobLease,
    Pod,
    TokenClient,
    expect,
    grant,
    grant_operator,
    install_fence,
    lease_path,
    lease_rules,
    renewed,
    token_of,
    wait_allowed,
)
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False, "scheduler": False, "audit": False}
HERE, THERE, PEOPLE = "work", "elsewhere", "people"
MERGE, JSON, STRATEGIC, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_numbers = itertools.count(1)

# What the fence says.
NOT_HOLDER = "fenced: only the pod that holds this Lease may renew it: "
SPEC = "fenced: a worker changes nothing in the Lease's spec but renewTime"
NO_RENEWAL = "fenced: a renewal has a renewTime"
METADATA = "fenced: a worker changes nothing in the Lease's metadata but its annotations"
ANNOTATION = "fenced: a worker changes no annotation but holdfast.dev/progress, "
ENDED_STAYS = "fenced: holdfast.dev/ended stays as it is once it is set"
NOT_THE_OPERATOR = "fenced: only the operator creates and deletes the Lease of a DurableJob"


def is_number(what, digits):
    return f"fenced: holdfast.dev/{what} is a number of at most {digits} digits"


class World:
    """Who is there: pods with their tokens, electors, tenants."""

    def __init__(self, cluster):
        self.cluster = cluster
        for namespace in (HERE, THERE, PEOPLE):
            expect(cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
        for namespace, account in [(HERE, "worker"), (HERE, "elector"), (HERE, "patcher"), (THERE, "worker"),
                                   (PEOPLE, "landlord")]:
            expect(cluster.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts",
                               {"metadata": {"name": account}}))
        install_fence(cluster, [HERE, THERE])
        grant_operator(cluster, HERE)
        grant(cluster, HERE, "elector", lease_rules("get", "create", "update", "delete"), (HERE, "elector"))
        grant(cluster, HERE, "patcher", lease_rules("patch", "update"), (HERE, "patcher"))
        grant(cluster, HERE, "edit", "edit", "tenant", "neighbour", (PEOPLE, "landlord"))
        jobs = {"apiGroups": ["holdfast.dev"], "resources": ["durablejobs"], "verbs": ["*"]}
        grant(cluster, HERE, "jobs", [jobs], "tenant")
        grant(cluster, THERE, "outcomes", [jobs | {"resources": ["durablejobs/status"]}], "neighbour")

        self.holder, self.rival = (Pod(cluster, HERE, name, "worker") for name in ("holder", "rival"))
        self.elector, self.patcher = (Pod(cluster, HERE, name, name) for name in ("elector", "patcher"))
        self.stranger = Pod(cluster, THERE, "holder", "worker")
        self.deleted = Pod(cluster, HERE, "reborn", "worker")
        deleted_token = self.deleted.token()
        self.deleted.delete()
        self.reborn = Pod(cluster, HERE, "reborn", "worker")
        secret = {"kind": "Secret", "metadata": {"name": "secret"}}
        secret = {"kind": "Secret"} | expect(cluster.api("POST", f"/api/v1/namespaces/{HERE}/secrets", secret))
        self.tokens = {pod.name: pod.token() for pod in (
            self.holder, self.rival, self.elector, self.patcher, self.reborn)} | {
            "stranger": self.stranger.token(),
            "deleted": deleted_token,
            "unbound": token_of(cluster, HERE, "worker"),
            "bound-to-a-secret": token_of(cluster, HERE, "worker", secret),
            "for-another-audience": self.holder.token(audiences=["vault"]),
            "landlord": token_of(cluster, PEOPLE, "landlord"),
        }
        for namespace, name in [("kube-system", "kube-scheduler"), ("kube-node-lease", "node-0"),
                                ("holdfast-system", "holdfast-shard-0")]:
            expect(cluster.api("POST", lease_path(namespace), {
                "metadata": {"name": name}, "spec": {"holderIdentity": self.holder.identity}}))
        self.wait()

    def wait(self):
        """Until the API server has seen all that."""
        wait_for("the deleted pod's token to be void", lambda: self.api(
            "deleted", "GET", lease_path(HERE, "x"))[0] == 401, 30, poll=1)
        for user in ("tenant", "neighbour"):
            wait_allowed(self.cluster, HERE, user, "deletecollection")
        wait_allowed(self.cluster, THERE, "neighbour", "update", "durablejobs/status", "holdfast.dev")
        for account, verb in [("elector", "create"), ("patcher", "patch")]:
            wait_allowed(self.cluster, HERE, f"system:serviceaccount:{HERE}:{account}", verb)

    def api(self, who, *request):
        """`who`: a token's name, a user's, or landlord-as-NAME: impersonated."""
        if who in self.tokens:
            return TokenClient(self.cluster, self.tokens[who]).api(*request)
        headers = {"Impersonate-User": f"system:serviceaccount:{HERE}:worker"}
        if who == "landlord-as-holder":
            extra = "Impersonate-Extra-authentication.kubernetes.io%2fpod-"
            headers |= {f"{extra}name": self.holder.name, f"{extra}uid": self.holder.uid}
        if who.startswith("landlord-as-"):
            return TokenClient(self.cluster, self.tokens["landlord"], headers).api(*request)
        return self.cluster.api(*request, user=who)


class Scene:
    """A fresh job whose Lease the pod `holder` holds and has renewed, and an elector's Lease beside it."""

    def __init__(self, world):
        self.world, self.cluster = world, world.cluster
        number = next(_numbers)
        self.job = JobLease(self.cluster, HERE, f"job-{number}")
        self.path = self.job.path
        lease = self.job.grant(world.holder)
        lease["metadata"]["annotations"]["example.com/note"] = "the operator's"
        self.lease = self.write(renewed(lease, progress="1", age="0"))
        self.plain = expect(self.cluster.api("POST", lease_path(HERE), {
            "metadata": {"name": f"lock-{number}"}, "spec": {"holderIdentity": "elector-1"}}))

    def write(self, lease):
        return expect(self.job.as_operator("PUT", self.path, lease))

    def give(self, pod):
        self.lease = self.write(renewed(self.job.grant(pod)))
        return self

    def snapshot(self, path):
        """All Leases here, and what the attack aims at."""
        return self.cluster.api("GET", lease_path(HERE))[1]["items"], self.cluster.api("GET", path)


def at(value, *keys):
    for key in keys:
        value = value[key]
    return value


def put(*path_and_value):
    """A renewal in which also this is set; without anything just a renewal. None removes."""
    def request(scene):
        lease = renewed(scene.lease, "2026-01-02T03:04:07.000000Z")
        if path_and_value:
            *path, key, value = path_and_value
            at(lease, *path)[key] = value
        return "PUT", scene.path, lease

    return request


def annotate(key, value):
    return put("metadata", "annotations", key, value)


def after_end(value):
    """The child's end is on record, and then another one is sent (None: taken back)."""
    def request(scene):
        scene.lease = scene.write(renewed(scene.lease, ended="1"))
        return annotate(ENDED, value)(scene)

    return request


def given(pod, request):
    """Before it the Lease was given to another pod of the world (None: taken, and nobody's)."""
    def prepared(scene):
        if pod is None:
            scene.lease = scene.job.take()
        else:
            scene.give(getattr(scene.world, pod))
        return request(scene)

    return prepared


def remembered(request):
    """What the holder would have sent before this happened."""
    def late(scene):
        lease = put()(scene)
        request(scene)
        return lease

    return late


def patch(body, kind=MERGE):
    return lambda scene: ("PATCH", scene.path, body, kind)


def delete(suffix=""):
    return lambda scene: ("DELETE", scene.path + suffix)


def delete_all(scene):
    return "DELETE", f"{lease_path(HERE)}?labelSelector={JOB_UID}%3D{scene.job.job['metadata']['uid']}"


def create(name=None, label=False, method="POST"):
    """A Lease of this name, a job's that has none yet by default; `label`: with the scene's job's."""
    def request(scene):
        called = name or f"holdfast-{uuid.UUID(int=next(_numbers))}"
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": called}}
        if label:
            lease["metadata"]["labels"] = {JOB_UID: scene.job.job["metadata"]["uid"]}
        path = lease_path(HERE) if method == "POST" else lease_path(HERE, called)
        return (method, path, lease) if method != "PATCH" else (
            method, f"{path}?fieldManager=me", lease, APPLY)

    return request


def renew_plain(label=False):
    def request(scene):
        lease = renewed(scene.plain)
        if label:
            lease["metadata"]["labels"] = {JOB_UID: "another"}
        return "PUT", lease_path(HERE, lease["metadata"]["name"]), lease

    return request


def renew_other(namespace, name):
    def request(scene):
        path = lease_path(namespace, name)
        return "PUT", path, renewed(expect(scene.cluster.api("GET", path)))

    return request


def job_status(scene):
    path = f"/apis/holdfast.dev/v1alpha1/namespaces/{HERE}/durablejobs/{scene.job.job['metadata']['name']}/status"
    return "PUT", path, scene.job.job | {"status": {"phase": "Succeeded", "attempt": 7}}


def cancel(scene):
    path = f"/apis/holdfast.dev/v1alpha1/namespaces/{HERE}/durablejobs/{scene.job.job['metadata']['name']}"
    return "PATCH", path, {"spec": {"cancel": True}}, MERGE


def mint(scene):
    path = f"/api/v1/namespaces/{HERE}/serviceaccounts/worker/token"
    pod = scene.world.holder
    return "POST", path, {"spec": {"boundObjectRef": {
        "kind": "Pod", "apiVersion": "v1", "name": pod.name, "uid": pod.uid}}}


def take_down(path):
    return lambda scene: ("DELETE", path)


OWNER_OF_ANOTHER = [{"apiVersion": "v1", "kind": "Pod", "name": "rival", "uid": "1", "controller": True}]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"

# What: (who, the request, status code, words of the answer).
ATTACKS = {
    # A worker and a Lease that is not its own.
    "another-pods-lease": ("rival", put(), 403, NOT_HOLDER + "holder/"),
    "another-jobs-lease": ("holder", given("rival", put()), 403, NOT_HOLDER + "rival/"),
    "a-lease-taken-back": ("holder", given(None, put()), 403, NOT_HOLDER + "nobody holds it"),
    "the-attempt-before": ("rival", given("rival", given("holder", put())), 403, NOT_HOLDER + "holder/"),
    "the-attempt-before-from-memory": ("holder", remembered(given("rival", put())), 409, "has been modified"),
    "a-pod-of-the-holders-name": ("reborn", given("deleted", put()), 403, NOT_HOLDER + "reborn/"),
    "an-older-pods-token": ("deleted", given("deleted", put()), 401, "Unauthorized"),
    "an-unbound-token": ("unbound", put(), 403, NOT_HOLDER),
    "an-unbound-token-and-no-holder": ("unbound", given(None, put()), 403, NOT_HOLDER + "nobody holds it"),
    "a-token-bound-to-a-secret": ("bound-to-a-secret", put(), 403, NOT_HOLDER),
    "a-token-for-others": ("for-another-audience", put(), 401, "Unauthorized"),
    "a-pod-of-that-name-elsewhere": ("stranger", put(), 403, 'cannot update resource "leases"'),
    "an-electors-lease": ("holder", renew_plain(), 403, NOT_HOLDER + "elector-1 holds it"),
    "an-electors-lease-unbound": ("unbound", renew_plain(), 403, NOT_HOLDER + "elector-1 holds it"),
    "an-electors-lease-as-the-holders-job": ("holder", renew_plain(label=True), 403, NOT_HOLDER),
    "an-electors-lease-by-patch": (
        "patcher",
        lambda scene: ("PATCH", lease_path(HERE, scene.plain["metadata"]["name"]),
                       {"spec": {"holderIdentity": "me"}}, MERGE), 403, NOT_HOLDER),
    "the-schedulers-lease": (
        "holder", renew_other("kube-system", "kube-scheduler"), 403, 'cannot update resource "leases"'),
    "a-nodes-lease": ("holder", renew_other("kube-node-lease", "node-0"), 403, 'cannot update resource "leases"'),
    "a-shards-lease": (
        "holder", renew_other("holdfast-system", "holdfast-shard-0"), 403, 'cannot update resource "leases"'),
    # The holder, and more than a renewal.
    "another-holder": ("holder", put("spec", "holderIdentity", "rival/1"), 403, SPEC),
    "no-holder": ("holder", put("spec", "holderIdentity", None), 403, SPEC),
    "a-longer-lease": ("holder", put("spec", "leaseDurationSeconds", 3600), 403, SPEC),
    "the-attempts-number": ("holder", put("spec", "leaseTransitions", 7), 403, SPEC),
    "another-acquire-time": ("holder", put("spec", "acquireTime", "2026-01-02T03:04:07.000000Z"), 403, SPEC),
    "no-acquire-time": ("holder", put("spec", "acquireTime", None), 403, SPEC),
    "no-renew-time": ("holder", put("spec", "renewTime", None), 403, NO_RENEWAL),
    "another-jobs-label": ("holder", put("metadata", "labels", JOB_UID, "another"), 403, METADATA),
    "one-more-label": ("holder", put("metadata", "labels", "a", "b"), 403, METADATA),
    "no-labels": ("holder", put("metadata", "labels", None), 403, METADATA),
    "another-owner": ("holder", put("metadata", "ownerReferences", OWNER_OF_ANOTHER), 403, METADATA),
    "no-owner": ("holder", put("metadata", "ownerReferences", None), 403, METADATA),
    "a-finalizer": ("holder", put("metadata", "finalizers", ["example.com/never"]), 403, METADATA),
    "a-generate-name": ("holder", put("metadata", "generateName", "holdfast-"), 403, METADATA),
    "another-grant": ("holder", annotate(GRANTED, "9 rival/1"), 403, ANNOTATION),
    "no-annotations": ("holder", put("metadata", "annotations", None), 403, ANNOTATION),
    "another-note": ("holder", annotate("example.com/note", "mine"), 403, ANNOTATION),
    "one-more-annotation": ("holder", annotate("holdfast.dev/progressed", "1"), 403, ANNOTATION),
    "another-end": ("holder", after_end("0"), 403, ENDED_STAYS),
    "no-end": ("holder", after_end(None), 403, ENDED_STAYS),
    "an-end-in-words": ("holder", annotate(ENDED, "Succeeded"), 403, is_number("ended", 3)),
    "an-end-without-end": ("holder", annotate(ENDED, "0" * 4), 403, is_number("ended", 3)),
    "progress-below-0": ("holder", annotate(PROGRESS, "-1"), 403, is_number("progress", 18)),
    "progress-beyond-counting": ("holder", annotate(PROGRESS, "9" * 19), 403, is_number("progress", 18)),
    "an-age-in-minutes": ("holder", annotate(AGE, "1m"), 403, is_number("progress-age", 9)),
    "an-age-beyond-counting": ("holder", annotate(AGE, "9" * 10), 403, is_number("progress-age", 9)),
    "a-message-of-258-bytes": (
        "holder", annotate(MESSAGE, "ä" * 129), 403, "fenced: holdfast.dev/progress-message has at most 256 bytes"),
    # The holder, and what a worker has no right to.
    "delete": ("holder", delete(), 403, 'cannot delete resource "leases"'),
    "delete-all": ("holder", delete_all, 403, 'cannot deletecollection resource "leases"'),
    "patch": ("holder", patch({"spec": {"renewTime": None}}), 403, 'cannot patch resource "leases"'),
    "create": ("holder", create("mine"), 403, 'cannot create resource "leases"'),
    "create-by-put": ("holder", create(method="PUT"), 403, 'cannot create resource "leases"'),
    "the-jobs-status": ("holder", job_status, 403, 'cannot update resource "durablejobs/status"'),
    "cancel-the-job": ("holder", cancel, 403, 'cannot patch resource "durablejobs"'),
    "a-token-of-the-holders": ("rival", mint, 403, 'cannot create resource "serviceaccounts/token"'),
    "the-fence-itself": ("holder", take_down(f"{ADMISSION}/validatingadmissionpolicies/holdfast-fence"), 403,
                         'cannot delete resource "validatingadmissionpolicies"'),
    "the-fences-binding": ("tenant", take_down(f"{ADMISSION}/validatingadmissionpolicybindings/holdfast-fence"),
                           403, 'cannot delete resource "validatingadmissionpolicybindings"'),
    # A service account that may create Leases and so is no worker.
    "an-elector-renews-a-jobs-lease": ("elector", put(), 403, NOT_HOLDER + "holder/"),
    "an-elector-that-holds-it-takes-more": (
        "elector", given("elector", put("spec", "leaseTransitions", 7)), 403, SPEC),
    "an-elector-makes-its-lock-a-jobs": ("elector", renew_plain(label=True), 403, NOT_HOLDER + "elector-1 holds it"),
    "an-elector-deletes-a-jobs-lease": ("elector", delete(), 403, NOT_THE_OPERATOR),
    "an-elector-creates-a-jobs-lease": ("elector", create(), 403, NOT_THE_OPERATOR),
    # People with the built-in role `edit`, which may do all things to Leases.
    "edit-renews": ("tenant", put(), 403, NOT_HOLDER + "holder/"),
    "edit-patches-the-holder": ("tenant", patch({"spec": {"holderIdentity": "me"}}), 403, NOT_HOLDER),
    "edit-patches-strategically": ("tenant", patch({"spec": {"leaseTransitions": 9}}, STRATEGIC), 403, NOT_HOLDER),
    "edit-patches-the-label-away": (
        "tenant", patch([{"op": "remove", "path": "/metadata/labels"}], JSON), 403, NOT_HOLDER),
    "edit-applies": ("tenant", lambda scene: (
        "PATCH", f"{scene.path}?fieldManager=me&force=true",
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "me"}}, APPLY),
        403, NOT_HOLDER),
    "edit-deletes": ("tenant", delete(), 403, NOT_THE_OPERATOR),
    "edit-orphans": ("tenant", delete("?propagationPolicy=Orphan"), 403, NOT_THE_OPERATOR),
    "edit-deletes-all": ("tenant", delete_all, 403, NOT_THE_OPERATOR),
    "edit-creates-a-second-lease": ("tenant", create("second", label=True), 403, NOT_THE_OPERATOR),
    "edit-squats-a-jobs-name": ("tenant", create(), 403, NOT_THE_OPERATOR),
    "edit-squats-by-put": ("tenant", create(method="PUT"), 403, NOT_THE_OPERATOR),
    "edit-squats-by-apply": ("tenant", create(method="PATCH"), 403, NOT_THE_OPERATOR),
    "edit-writes-the-outcome": ("tenant", job_status, 403, 'cannot update resource "durablejobs/status"'),
    "an-operator-of-elsewhere": ("neighbour", delete(), 403, NOT_THE_OPERATOR),
    "a-worker-impersonated": ("landlord-as-worker", put(), 403, NOT_HOLDER),
    "the-holder-impersonated": ("landlord-as-holder", put(), 403, 'cannot impersonate resource "userextras/'),
}


@pytest.fixture(scope="module")
def world(cluster):
    return World(cluster)


def test_there_are_at_least_thirty_attacks():
    assert len(ATTACKS) >= 30


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_changes_nothing(world, attack):
    who, make, code, words = ATTACKS[attack]
    scene = Scene(world)
    request = make(scene)
    path = request[1].partition("?")[0]
    before = scene.snapshot(path)
    status, answer = world.api(who, *request)
    assert (status, words in answer.get("message", "")) == (code, True), (status, answer)
    assert scene.snapshot(path) == before


def test_the_holder_itself_is_let_through(world):
    """Or the table would show nothing."""
    assert world.api("holder", *put()(Scene(world)))[0] == 200


def test_a_namespace_cannot_be_relabelled_out_of_the_fence(world):
    scene = Scene(world)
    label = {"kubernetes.io/metadata.name": "another"}
    for labels in (label, None):
        expect(world.cluster.api("PATCH", f"/api/v1/namespaces/{HERE}", {"metadata": {"labels": labels}}, "merge"))
        status, answer = world.api("tenant", *delete()(scene))
        assert (status, NOT_THE_OPERATOR in answer["message"]) == (403, True), answer
