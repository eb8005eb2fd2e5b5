"""What the table of attacks on the fence is made of: who is there (World), the Lease that they want
(Scene), and their requests, each a function of the scene that returns one API call's arguments."""

import itertools
import uuid

from fence import (
    ENDED,
    JOB_UID,
    JobLease,
    Pod,
    TokenClient,
    bound,
    expect,
    grant,
    install_fence,
    lease_path,
    lease_rules,
    renewed,
    token_of,
    wait_allowed,
)
from localcluster import wait_for

HERE, THERE, PEOPLE = "work", "elsewhere", "people"
MERGE, JSON, STRATEGIC, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
LATER = "2026-01-02T03:04:07.000000Z"
# Leases that workers have nothing to do with, made by hand: nothing here elects.
FOREIGN = [("kube-system", "kube-scheduler"), ("kube-node-lease", "node-0"), ("holdfast-system", "holdfast-shard-0")]
_numbers = itertools.count(1)


class World:
    """Pods with their tokens, electors, and people with the built-in role `edit`."""

    def __init__(self, cluster):
        self.cluster = cluster
        for namespace in (HERE, THERE, PEOPLE):
            expect(cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
        for namespace, account in [(HERE, "worker"), (HERE, "elector"), (HERE, "patcher"),
                                   (THERE, "worker"), (PEOPLE, "landlord")]:
            expect(cluster.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts",
                               {"metadata": {"name": account}}))
        install_fence(cluster, [HERE, THERE])
        self._grant()
        self._make_pods()
        self._make_tokens()
        for namespace, name in FOREIGN:
            expect(cluster.api("POST", lease_path(namespace), {
                "metadata": {"name": name}, "spec": {"holderIdentity": self.holder.identity}}))
        self._wait()

    def _grant(self):
        cluster = self.cluster
        rules = lease_rules("get", "create", "update", "delete")
        grant(cluster, HERE, "elector", rules, (HERE, "elector"))
        grant(cluster, HERE, "patcher", lease_rules("patch", "update"), (HERE, "patcher"))
        grant(cluster, HERE, "edit", "edit", "tenant", "neighbour", (PEOPLE, "landlord"))
        jobs = {"apiGroups": ["holdfast.dev"], "resources": ["durablejobs"], "verbs": ["*"]}
        grant(cluster, HERE, "jobs", [jobs], "tenant")
        outcomes = jobs | {"resources": ["durablejobs/status"]}
        grant(cluster, THERE, "outcomes", [outcomes], "neighbour")

    def _make_pods(self):
        def pod(name, account="worker", namespace=HERE):
            return Pod(self.cluster, namespace, name, account)

        self.holder, self.rival = pod("holder"), pod("rival")
        self.elector, self.patcher = pod("elector", "elector"), pod("patcher", "patcher")
        self.stranger = pod("holder", "worker", THERE)
        self.deleted = pod("reborn")
        self.tokens = {"deleted": self.deleted.token()}
        self.deleted.delete()
        self.reborn = pod("reborn")

    def _make_tokens(self):
        secret = {"metadata": {"name": "secret"}}
        secret = expect(self.cluster.api("POST", f"/api/v1/namespaces/{HERE}/secrets", secret))
        for name in ("holder", "rival", "elector", "patcher", "stranger", "reborn"):
            self.tokens[name] = getattr(self, name).token()
        self.tokens |= {
            "unbound": token_of(self.cluster, HERE, "worker"),
            "bound-to-a-secret": token_of(self.cluster, HERE, "worker", secret),
            "for-another-audience": self.holder.token(audiences=["vault"]),
            "landlord": token_of(self.cluster, PEOPLE, "landlord"),
        }

    def _wait(self):
        """Until the API server has seen all that."""
        wait_for("the deleted pod's token to be void", lambda: self.api(
            "deleted", "GET", lease_path(HERE, "x"))[0] == 401, 30, poll=1)
        for user in ("tenant", "neighbour"):
            wait_allowed(self.cluster, HERE, user, "deletecollection")
        wait_allowed(self.cluster, THERE, "neighbour", "update", "durablejobs/status", "holdfast.dev")
        for account, verb in [("elector", "create"), ("patcher", "patch")]:
            wait_allowed(self.cluster, HERE, f"system:serviceaccount:{HERE}:{account}", verb)

    def api(self, who, *request):
        """`who`: a token's name; landlord-as-NAME, who impersonates; or a user's name, whose client
        certificate brings no extras along."""
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
    """A fresh job whose Lease the pod `holder` holds and has renewed, and an elector's Lease. `index`: the
    Lease is of this run of a job with many."""

    def __init__(self, world, index=None):
        self.world, self.cluster = world, world.cluster
        number = next(_numbers)
        self.job = JobLease(self.cluster, HERE, f"job-{number}", index)
        self.path = self.job.path
        lease = self.job.grant(world.holder)
        lease["metadata"]["annotations"]["example.com/note"] = "the operator's"
        self.write(renewed(lease, progress="1", age="0"))
        self.plain = expect(self.cluster.api("POST", lease_path(HERE), {
            "metadata": {"name": f"lock-{number}"}, "spec": {"holderIdentity": "elector-1"}}))
        self.plain_path = lease_path(HERE, self.plain["metadata"]["name"])

    def write(self, lease):
        """As the operator."""
        self.lease = expect(self.job.as_operator("PUT", self.path, lease))

    def snapshot(self, path):
        """All Leases here, and what the attack aims at."""
        status, aim = self.cluster.api("GET", path)
        if "items" in aim:
            aim = aim["items"]  # a list's own version is the whole cluster's
        return self.cluster.api("GET", lease_path(HERE))[1]["items"], (status, aim)


def no_right_to(verb, resource="leases"):
    """What the authorizer says, before the fence is asked."""
    return f'cannot {verb} resource "{resource}"'


def of_run(index, request):
    """The request against the Lease of a run of a job with many."""
    return lambda scene: request(Scene(scene.world, index))


def put(*path_and_value):
    """A renewal that sets this too; without anything just a renewal. None removes."""
    def request(scene):
        lease = target = renewed(scene.lease, LATER)
        if path_and_value:
            *path, key, value = path_and_value
            for step in path:
                target = target[step]
            target[key] = value
            if value is None:
                del target[key]
        return "PUT", scene.path, lease

    return request


def annotate(key, value):
    return put("metadata", "annotations", key, value)


def after_end(value):
    """The child's end is on record, and then another one is sent (None: taken back)."""
    def request(scene):
        scene.write(renewed(scene.lease, ended="1"))
        return annotate(ENDED, value)(scene)

    return request


def given(pod, request):
    """Before it the Lease was given to another pod of the world (None: taken, and nobody's)."""
    def prepared(scene):
        scene.lease = scene.job.take()
        if pod:
            scene.write(renewed(scene.job.grant(getattr(scene.world, pod))))
        return request(scene)

    return prepared


def without_acquire_time(request):
    """The operator left it out."""
    def prepared(scene):
        del scene.lease["spec"]["acquireTime"]
        scene.write(scene.lease)
        return request(scene)

    return prepared


def remembered(change):
    """The renewal as the holder would have sent it before this change."""
    def late(scene):
        request = put()(scene)
        change(scene)
        return request

    return late


def made_anew(scene):
    """The Lease is gone, and another one has its name."""
    lease = scene.job.get()
    expect(scene.cluster.api("DELETE", scene.path))
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        del lease["metadata"][key]
    expect(scene.job.as_operator("POST", lease_path(HERE), lease))


def patch(body, kind=MERGE):
    return lambda scene: ("PATCH", scene.path, body, kind)


def patch_plain(body):
    return lambda scene: ("PATCH", scene.plain_path, body, MERGE)


def apply(scene):
    return "PATCH", f"{scene.path}?fieldManager=me&force=true", {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {"holderIdentity": "me"}}, APPLY


def delete(suffix=""):
    return lambda scene: ("DELETE", scene.path + suffix)


def delete_all(scene):
    return "DELETE", f"{lease_path(HERE)}?labelSelector={JOB_UID}%3D{scene.job.uid}"


def create(name=None, label=False, method="POST", run=""):
    """A Lease; by default called as that of a job that has none, or of its run: "-7". `label`: that of the
    scene's."""
    def request(scene):
        called = name or f"holdfast-{uuid.UUID(int=next(_numbers))}{run}"
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": called}}
        if label:
            lease["metadata"]["labels"] = {JOB_UID: scene.job.uid}
        if method == "PATCH":
            return method, f"{lease_path(HERE, called)}?fieldManager=me", lease, APPLY
        return method, lease_path(HERE, called if method == "PUT" else None), lease

    return request


def renew_plain(label=False):
    def request(scene):
        lease = renewed(scene.plain)
        if label:
            lease["metadata"]["labels"] = {JOB_UID: scene.job.uid}
        return "PUT", scene.plain_path, lease

    return request


def renew_foreign(namespace, name):
    def request(scene):
        path = lease_path(namespace, name)
        return "PUT", path, renewed(expect(scene.cluster.api("GET", path)))

    return request


def job_status(scene):
    status = {"phase": "Succeeded", "attempt": 7}
    return "PUT", f"{scene.job.job_path}/status", scene.job.job | {"status": status}


def cancel(scene):
    return "PATCH", scene.job.job_path, {"spec": {"cancel": True}}, MERGE


def mint(scene):
    """A token of the holder's."""
    spec = {"boundObjectRef": bound(scene.world.holder.body)}
    return "POST", f"/api/v1/namespaces/{HERE}/serviceaccounts/worker/token", {"spec": spec}


def take_down(kind, name="holdfast-fence"):
    """A part of the fence."""
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}/{name}"
    return lambda scene: ("DELETE", path)
