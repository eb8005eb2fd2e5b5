"""Ways in which a worker or a tenant tries to get past the fence: the API server refuses all of
them, and nothing has changed afterwards. Tokens are real, bound to pods as a kubelet's are."""

import json

import pytest
from fence import AGE, ENDED, GRANTED, JOB_UID, MESSAGE, PROGRESS, expect, warning_fence
from fence_attacks import (
    HERE,
    JSON,
    LATER,
    STRATEGIC,
    Scene,
    World,
    after_end,
    annotate,
    apply,
    cancel,
    create,
    delete,
    delete_all,
    given,
    job_status,
    made_anew,
    mint,
    no_right_to,
    of_run,
    patch,
    patch_plain,
    put,
    remembered,
    renew_foreign,
    renew_plain,
    take_down,
    without_acquire_time,
)
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False, "scheduler": False, "audit": False}

# What the fence says.
HOLDER = "fenced: only the pod that holds this Lease may renew it: "
SPEC = "fenced: a worker changes nothing in the Lease's spec but renewTime"
NO_RENEWAL = "fenced: a renewal has a renewTime"
METADATA = "fenced: a worker changes nothing in the Lease's metadata but its annotations"
ANNOTATION = (
    "fenced: a worker changes no annotation but holdfast.dev/progress, progress-age, "
    "progress-message, checkpoint, deferrals and ended"
)
ENDED_STAYS = "fenced: holdfast.dev/ended stays as it is once it is set"
PROGRESS_NUMBER = "fenced: holdfast.dev/progress is a number of at most 18 digits"
AGE_NUMBER = "fenced: holdfast.dev/progress-age is a number of at most 9 digits"
ENDED_NUMBER = "fenced: holdfast.dev/ended is a number of at most 3 digits"
TOO_LONG = "fenced: holdfast.dev/progress-message has at most 256 bytes"
DEFERRALS_NUMBER = "fenced: holdfast.dev/deferrals is a number"
CHECKPOINT_TOO_LONG = "fenced: holdfast.dev/checkpoint has at most 1024 bytes"
OPERATOR = "fenced: only the operator creates and deletes the Lease of a DurableJob"

RIVAL = [{"apiVersion": "v1", "kind": "Pod", "name": "rival", "uid": "1", "controller": True}]
ME = {"spec": {"holderIdentity": "me"}}
POLICY, BINDING = "validatingadmissionpolicies", "validatingadmissionpolicybindings"

# What: (who, the request, words of the answer, its status code if that is not 403).
ATTACKS = {
    # A worker and a Lease that is not its own.
    "another-pods-lease": ("rival", put(), HOLDER + "holder/"),
    "another-jobs-lease": ("holder", given("rival", put()), HOLDER + "rival/"),
    "a-lease-taken-back": ("holder", given(None, put()), HOLDER + "nobody holds it"),
    "a-lease-given-on": ("rival", given("rival", given("holder", put())), HOLDER + "holder/"),
    "a-lease-given-on-unseen": ("holder", remembered(given("rival", put())), "the object has been modified", 409),
    "a-lease-made-anew-unseen": ("holder", remembered(made_anew), "Precondition failed: UID", 409),
    "a-pod-of-the-holders-name": ("reborn", given("deleted", put()), HOLDER + "reborn/"),
    "a-pod-of-that-name-elsewhere": ("stranger", put(), no_right_to("update")),
    "a-deleted-pods-token": ("deleted", given("deleted", put()), "Unauthorized", 401),
    "a-token-for-others": ("for-another-audience", put(), "Unauthorized", 401),
    "an-unbound-token": ("unbound", put(), HOLDER + "holder/"),
    "an-unbound-token-and-no-holder": ("unbound", given(None, put()), HOLDER + "nobody holds it"),
    "a-token-bound-to-a-secret": ("bound-to-a-secret", put(), HOLDER + "holder/"),
    "an-electors-lease": ("holder", renew_plain(), HOLDER + "elector-1 holds it"),
    "an-electors-lease-unbound": ("unbound", renew_plain(), HOLDER + "elector-1 holds it"),
    "an-electors-lease-labelled": ("holder", renew_plain(True), HOLDER + "elector-1 holds it"),
    "an-electors-lease-by-patch": ("patcher", patch_plain(ME), HOLDER + "elector-1 holds it"),
    "the-schedulers-lease": ("holder", renew_foreign("kube-system", "kube-scheduler"), no_right_to("update")),
    "a-nodes-lease": ("holder", renew_foreign("kube-node-lease", "node-0"), no_right_to("update")),
    "a-shards-lease": ("holder", renew_foreign("holdfast-system", "holdfast-shard-0"), no_right_to("update")),
    # The holder, and more than a renewal.
    "another-holder": ("holder", put("spec", "holderIdentity", "rival/1"), SPEC),
    "no-holder": ("holder", put("spec", "holderIdentity", None), SPEC),
    "a-longer-lease": ("holder", put("spec", "leaseDurationSeconds", 3600), SPEC),
    "the-attempts-number": ("holder", put("spec", "leaseTransitions", 7), SPEC),
    "another-acquire-time": ("holder", put("spec", "acquireTime", LATER), SPEC),
    "no-acquire-time": ("holder", put("spec", "acquireTime", None), SPEC),
    "an-acquire-time-of-its-own": ("holder", without_acquire_time(put("spec", "acquireTime", LATER)), SPEC),
    "no-renew-time": ("holder", put("spec", "renewTime", None), NO_RENEWAL),
    "another-jobs-label": ("holder", put("metadata", "labels", JOB_UID, "another"), METADATA),
    "one-more-label": ("holder", put("metadata", "labels", "a", "b"), METADATA),
    "no-labels": ("holder", put("metadata", "labels", None), METADATA),
    "another-owner": ("holder", put("metadata", "ownerReferences", RIVAL), METADATA),
    "no-owner": ("holder", put("metadata", "ownerReferences", None), METADATA),
    "a-finalizer": ("holder", put("metadata", "finalizers", ["example.com/never"]), METADATA),
    "a-generate-name": ("holder", put("metadata", "generateName", "holdfast-"), METADATA),
    "another-grant": ("holder", annotate(GRANTED, "9 rival/1"), ANNOTATION),
    "another-note": ("holder", annotate("example.com/note", "mine"), ANNOTATION),
    "one-more-note": ("holder", annotate("holdfast.dev/progress-x", "1"), ANNOTATION),
    "no-notes": ("holder", put("metadata", "annotations", None), ANNOTATION),
    "another-end": ("holder", after_end("0"), ENDED_STAYS),
    "no-end": ("holder", after_end(None), ENDED_STAYS),
    "an-end-in-words": ("holder", annotate(ENDED, "Succeeded"), ENDED_NUMBER),
    "an-end-of-four-digits": ("holder", annotate(ENDED, "0" * 4), ENDED_NUMBER),
    "progress-below-0": ("holder", annotate(PROGRESS, "-1"), PROGRESS_NUMBER),
    "progress-beyond-counting": ("holder", annotate(PROGRESS, "9" * 19), PROGRESS_NUMBER),
    "an-age-in-minutes": ("holder", annotate(AGE, "1m"), AGE_NUMBER),
    "an-age-beyond-counting": ("holder", annotate(AGE, "9" * 10), AGE_NUMBER),
    "a-message-of-258-bytes": ("holder", annotate(MESSAGE, "ä" * 129), TOO_LONG),
    "a-checkpoint-of-1026-bytes": ("holder", annotate("holdfast.dev/checkpoint", "ä" * 513), CHECKPOINT_TOO_LONG),
    "deferrals-in-words": ("holder", annotate("holdfast.dev/deferrals", "often"), DEFERRALS_NUMBER),
    "deferrals-beyond-counting": ("holder", annotate("holdfast.dev/deferrals", "9" * 11), DEFERRALS_NUMBER),
    # The holder, and what a worker has no right to.
    "delete": ("holder", delete(), no_right_to("delete")),
    "delete-all": ("holder", delete_all, no_right_to("deletecollection")),
    "patch": ("holder", patch(ME), no_right_to("patch")),
    "create": ("holder", create("mine"), no_right_to("create")),
    "create-by-put": ("holder", create(method="PUT"), no_right_to("create")),
    "the-jobs-status": ("holder", job_status, no_right_to("update", "durablejobs/status")),
    "cancel-the-job": ("holder", cancel, no_right_to("patch", "durablejobs")),
    "a-token-of-the-holders": ("rival", mint, no_right_to("create", "serviceaccounts/token")),
    "the-fence-itself": ("holder", take_down(POLICY), no_right_to("delete", POLICY)),
    "the-fences-binding": ("tenant", take_down(BINDING), no_right_to("delete", BINDING)),
    # A service account that may create Leases and so is no worker.
    "elector-renews": ("elector", put(), HOLDER + "holder/"),
    "elector-holds-and-takes-more": ("elector", given("elector", put("spec", "leaseTransitions", 7)), SPEC),
    "elector-labels-its-lock": ("elector", renew_plain(True), HOLDER + "elector-1 holds it"),
    "elector-deletes": ("elector", delete(), OPERATOR),
    "elector-creates": ("elector", create(), OPERATOR),
    # People with the built-in role `edit`, which may do all things to Leases.
    "edit-renews": ("tenant", put(), HOLDER + "holder/"),
    "edit-patches-the-holder": ("tenant", patch(ME), HOLDER + "holder/"),
    "edit-patches-strategically": ("tenant", patch(ME, STRATEGIC), HOLDER + "holder/"),
    "edit-patches-the-label-away": (
        "tenant",
        patch([{"op": "remove", "path": "/metadata/labels"}], JSON),
        HOLDER + "holder/",
    ),
    "edit-applies": ("tenant", apply, HOLDER + "holder/"),
    "edit-deletes": ("tenant", delete(), OPERATOR),
    "edit-orphans": ("tenant", delete("?propagationPolicy=Orphan"), OPERATOR),
    "edit-deletes-all": ("tenant", delete_all, OPERATOR),
    "edit-creates-a-second-lease": ("tenant", create("second", label=True), OPERATOR),
    "edit-squats-a-jobs-name": ("tenant", create(), OPERATOR),
    "edit-squats-by-put": ("tenant", create(method="PUT"), OPERATOR),
    "edit-squats-by-apply": ("tenant", create(method="PATCH"), OPERATOR),
    "edit-writes-the-outcome": ("tenant", job_status, no_right_to("update", "durablejobs/status")),
    "an-operator-of-elsewhere": ("neighbour", delete(), OPERATOR),
    # The Lease of a run of a job with many.
    "another-runs-lease": ("rival", of_run(7, put()), HOLDER + "holder/"),
    "a-runs-lease-taken-back": ("holder", of_run(7, given(None, put())), HOLDER + "nobody holds it"),
    "another-holder-of-a-runs-lease": ("holder", of_run(7, put("spec", "holderIdentity", "rival/1")), SPEC),
    "edit-renews-a-runs-lease": ("tenant", of_run(7, put()), HOLDER + "holder/"),
    "edit-deletes-a-runs-lease": ("tenant", of_run(7, delete()), OPERATOR),
    "edit-squats-the-first-runs-name": ("tenant", create(run="-0"), OPERATOR),
    "edit-squats-the-last-runs-name": ("tenant", create(run="-99999", method="PUT"), OPERATOR),
    "elector-squats-a-runs-name": ("elector", create(run="-7"), OPERATOR),
    "elector-renews-a-runs-lease": ("elector", of_run(7, put()), HOLDER + "holder/"),
    # People who act as workers.
    "a-worker-impersonated": ("landlord-as-worker", put(), HOLDER + "holder/"),
    "the-holder-impersonated": ("landlord-as-holder", put(), 'cannot impersonate resource "userextras/'),
}


@pytest.fixture(scope="module")
def world(cluster):
    return World(cluster)


def test_there_are_at_least_thirty_attacks():
    assert len(ATTACKS) >= 30


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_changes_nothing(world, attack):
    who, make, words, *codes = ATTACKS[attack]
    scene = Scene(world)
    request = make(scene)
    path = request[1].partition("?")[0]
    before = scene.snapshot(path)
    status, answer = world.api(who, *request)
    assert status == (codes or [403])[0], answer
    assert words in answer["message"]
    assert scene.snapshot(path) == before


@pytest.mark.parametrize("index", [None, 0, 99999])
def test_the_holder_itself_is_let_through(world, index):
    """Or the table would show nothing."""
    assert world.api("holder", *put()(Scene(world, index)))[0] == 200


def test_a_namespace_cannot_be_relabelled_out_of_the_fence(world):
    scene = Scene(world)
    path = f"/api/v1/namespaces/{HERE}"
    for labels in ({"kubernetes.io/metadata.name": "another"}, None):
        expect(world.cluster.api("PATCH", path, {"metadata": {"labels": labels}}, "merge"))
        status, answer = world.api("tenant", *delete()(scene))
        assert status == 403, answer
        assert OPERATOR in answer["message"]


def test_no_expression_fails_whoever_asks_for_whatever(world):
    """A failed one refuses too, but is no rule."""
    world.cluster.kubectl("apply", "-f", "-", input=json.dumps(warning_fence([HERE], "holdfast-fence")))
    scene, tenant = Scene(world), world.cluster.kubeconfig_for("tenant")
    lease = scene.path.rpartition("/")[2]
    another = create()(scene)[2]

    def warnings(*command, **options):
        return world.cluster.kubectl(*command, "-n", HERE, kubeconfig=tenant, check=False, **options).stderr

    wait_for("the binding to warn", lambda: "Warning: " in warnings("delete", "lease", lease), 60)
    for command, options in [
        (["create", "-f", "-"], {"input": json.dumps(another)}),
        (["annotate", "lease", lease, "a=b"], {}),
        (["delete", "lease", lease], {}),
    ]:
        told = warnings(*command, **options)
        assert "binding 'warn': fenced: " in told
        assert "resulted in error" not in told
