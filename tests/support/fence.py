"""The fence of hack/fence.yaml on a local cluster, and who stands before it: pods' own tokens, and
Leases of jobs as the operator makes them.

    install_fence(cluster, ["work"])
    pod = Pod(cluster, "work", "holder")
    worker = TokenClient(cluster, pod.token())
    status, lease = worker.api("PUT", lease_path("work", name), renewed(lease))
"""

import contextlib
import copy
import http.client
import json
import pathlib
import ssl

import yaml

from holdfast import OPERATOR_USER, allow_heartbeats, job
from localcluster import wait_for

FENCE_PATH = pathlib.Path(__file__).resolve().parents[2] / "hack/fence.yaml"
JOB_UID = "holdfast.dev/job-uid"
GRANTED = "holdfast.dev/granted"
PROGRESS = "holdfast.dev/progress"
AGE = "holdfast.dev/progress-age"
MESSAGE = "holdfast.dev/progress-message"
ENDED = "holdfast.dev/ended"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# A Lease that each of the two policies judges.
PROBES = ["fence-probe", "holdfast-worker-fence-probe"]


def fence_objects(namespaces):
    """The objects of hack/fence.yaml for these namespaces, each with a RoleBinding of its own."""
    objects = []
    for item in yaml.safe_load_all(FENCE_PATH.read_text()):
        if item["kind"] == "ValidatingAdmissionPolicyBinding":
            [names] = item["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
            names["values"] = list(namespaces)
        if item["kind"] != "RoleBinding":
            objects.append(item)
            continue
        for namespace in namespaces:
            binding = copy.deepcopy(item)
            binding["metadata"]["namespace"] = namespace
            binding["subjects"][0]["name"] = f"system:serviceaccounts:{namespace}"
            objects.append(binding)
    return objects


def warning_fence(namespaces, name):
    """The policy of this name as one that only warns, of every expression that is not met and not of the first
    alone. Warnings that quote an expression of several lines get lost: each is on one here."""
    policy, binding = (item for item in fence_objects(namespaces)
                       if "Policy" in item["kind"] and item["metadata"]["name"] == name)
    for item in (policy, binding):
        item["metadata"]["name"] = "warn"
    binding["spec"] |= {"policyName": "warn", "validationActions": ["Warn"]}
    for part in ("matchConditions", "variables", "validations"):
        for item in policy["spec"][part]:
            item["expression"] = " ".join(item["expression"].split())
    return {"apiVersion": "v1", "kind": "List", "items": [policy, binding]}


def install_fence(cluster, namespaces):
    """Fences these namespaces and no others, and lets the operator work on the Leases there, as the
    chart does with workerNamespaces; returns when the fence stands in all of them."""
    items = {"apiVersion": "v1", "kind": "List", "items": fence_objects(namespaces)}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(items))
    for namespace in namespaces:
        allow_heartbeats(cluster, namespace)
        wait_allowed(cluster, namespace, OPERATOR_USER, "create")
        wait_fenced(cluster, namespace)


def wait_fenced(cluster, namespace):
    """Until a worker's write to a Lease that it does not hold is refused, and by the fence."""
    _wait_probe(cluster, f"the fence to stand in {namespace}", namespace,
                lambda status, answer: "fenced: " in str(answer))


def lift_fence(cluster, namespace):
    """Takes the fence away everywhere; returns when it is gone from this namespace."""
    cluster.kubectl("delete", "validatingadmissionpolicybinding", *(
        item["metadata"]["name"] for item in fence_objects([namespace])
        if item["kind"] == "ValidatingAdmissionPolicyBinding"))
    _wait_probe(cluster, f"the fence to be gone from {namespace}", namespace, lambda status, answer: status == 200)


def _wait_probe(cluster, what, namespace, shows):
    """Until what becomes of such a write (status, answer) shows it."""
    wait_account(cluster, namespace)
    worker = TokenClient(cluster, token_of(cluster, namespace, "default"))
    for probe in PROBES:
        path = lease_path(namespace, probe)
        lease = expect(cluster.api("POST", lease_path(namespace), {"metadata": {"name": probe}}))
        wait_for(what, lambda: shows(*worker.api("PUT", f"{path}?dryRun=All", lease)), 60)
        expect(cluster.api("DELETE", path))


def wait_account(cluster, namespace, name="default"):
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
    wait_for(f"the service account {name} of {namespace}", lambda: cluster.api("GET", path)[0] == 200, 60)


def grant(cluster, namespace, name, rules, *subjects):
    """A Role and its RoleBinding, both of this name. `rules`: a list, or the name of a ClusterRole;
    a subject is a user's name or (namespace, service account)."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": rules}
    if not isinstance(rules, str):
        role |= {"kind": "Role", "name": name}
        expect(cluster.api("POST", f"{RBAC}/namespaces/{namespace}/roles",
                           {"metadata": {"name": name}, "rules": rules}))
    subjects = [{"kind": "ServiceAccount", "namespace": who[0], "name": who[1]}
                if isinstance(who, tuple) else
                {"kind": "User", "name": who, "apiGroup": "rbac.authorization.k8s.io"}
                for who in subjects]
    expect(cluster.api("POST", f"{RBAC}/namespaces/{namespace}/rolebindings",
                       {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}))


def lease_rules(*verbs):
    return [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": list(verbs)}]


def wait_allowed(cluster, namespace, user, verb, resource="leases", group="coordination.k8s.io"):
    """Until the API server's authorizer has seen a grant to this user, or service account."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    review = {"spec": {"user": user, "resourceAttributes": {
        "namespace": namespace, "verb": verb, "group": group, "resource": resource}}}
    wait_for(f"{user} to have the right to {verb} {resource}",
             lambda: cluster.api("POST", path, review)[1]["status"]["allowed"], 60)


def expect(answer, *codes):
    """The body of an answer that is a success (or has one of these codes)."""
    status, body = answer
    if status not in (codes or (200, 201, 202)):
        raise AssertionError(f"answered {status}: {json.dumps(body)[:2000]}")
    return body


def lease_path(namespace, name=None):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return f"{path}/{name}" if name else path


class TokenClient:
    """Calls on the API server with a bearer token; one connection for each, as there are few."""

    def __init__(self, cluster, token, headers=None):
        self._port = cluster.ports["kube-apiserver"]
        self._tls = ssl.create_default_context(cafile=str(cluster.folder / "pki/ca.crt"))
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._headers |= headers or {}

    def api(self, method, path, body=None, content_type="application/json"):
        """(status, parsed body), as Cluster.api; content_type is written out."""
        with contextlib.closing(self._connection()) as connection:
            connection.request(method, path, body=None if body is None else json.dumps(body),
                               headers=self._headers | {"Content-Type": content_type})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def first_event(self, path):
        """Of this watch."""
        with contextlib.closing(self._connection()) as connection:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            return json.loads(response.readline())

    def _connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=30)


def bound(target):
    """The reference by which a token is bound to an object."""
    metadata = target["metadata"]
    return {"kind": target["kind"], "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}


def token_of(cluster, namespace, account, bound_to=None, audiences=None):
    """A service account's token by TokenRequest; `bound_to`: an object with kind and metadata."""
    spec = {"expirationSeconds": 3600}
    if audiences:
        spec["audiences"] = audiences
    if bound_to:
        spec["boundObjectRef"] = bound(bound_to)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return expect(cluster.api("POST", path, {"spec": spec}))["status"]["token"]


class Pod:
    """A pod object that nothing need run: who holds its token is that pod to the API server."""

    def __init__(self, cluster, namespace, name, account="default"):
        self.cluster, self.namespace, self.name, self.account = cluster, namespace, name, account
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.body = expect(cluster.api("POST", path, {"metadata": {"name": name}, "spec": {
            "serviceAccountName": account, "containers": [{"name": "main", "image": "x"}]}}))
        self.path = f"{path}/{name}"
        self.uid = self.body["metadata"]["uid"]
        self.identity = f"{name}/{self.uid}"

    def token(self, **options):
        return token_of(self.cluster, self.namespace, self.account, self.body, **options)

    def client(self):
        return TokenClient(self.cluster, self.token())

    def delete(self):
        """At once, as `kubectl delete --force`."""
        expect(self.cluster.api("DELETE", f"{self.path}?gracePeriodSeconds=0"))


class JobLease:
    """A DurableJob and its Lease, which the operator's user makes, takes and grants. `index`: the job has many
    runs, and the Lease is of this one."""

    def __init__(self, cluster, namespace, name, index=None):
        self.cluster = cluster
        many = {} if index is None else {"completions": 100000}
        jobs_path = f"/apis/holdfast.dev/v1alpha1/namespaces/{namespace}/durablejobs"
        self.job_path = f"{jobs_path}/{name}"
        self.job = expect(cluster.api("POST", jobs_path, job(name, heartbeat={"leaseDurationSeconds": 10}, **many)))
        self.uid = self.job["metadata"]["uid"]
        self.name = f"holdfast-{self.uid}" + ("" if index is None else f"-{index}")
        self.path = lease_path(namespace, self.name)
        self.attempt = 0
        owner = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "name": name,
                 "uid": self.uid, "controller": True}
        expect(self.as_operator("POST", lease_path(namespace), {
            "metadata": {"name": self.name, "ownerReferences": [owner],
                         "labels": {JOB_UID: self.uid, "holdfast.dev/job-name": name}},
            "spec": {"leaseDurationSeconds": 10, "leaseTransitions": 0}}))

    def as_operator(self, method, path, body=None):
        return self.cluster.api(method, path, body, user=OPERATOR_USER)

    def get(self):
        return expect(self.as_operator("GET", self.path))

    def take(self):
        """From the old attempt: nobody holds it, and the attempt is one more."""
        lease = self.get()
        self.attempt += 1
        lease["spec"] = {"leaseDurationSeconds": 10, "leaseTransitions": self.attempt}
        for key in (PROGRESS, AGE, MESSAGE, ENDED):
            lease["metadata"].get("annotations", {}).pop(key, None)
        return expect(self.as_operator("PUT", self.path, lease))

    def grant(self, pod):
        """Taken, and given to this pod."""
        lease = self.take()
        lease["spec"] |= {"holderIdentity": pod.identity, "acquireTime": "2026-01-02T03:04:05.000000Z"}
        lease["metadata"].setdefault("annotations", {})[GRANTED] = f"{self.attempt} {pod.identity}"
        return expect(self.as_operator("PUT", self.path, lease))


def renewed(lease, when="2026-01-02T03:04:06.000000Z", **annotations):
    """The Lease as an agent sends it to renew."""
    lease = copy.deepcopy(lease)
    lease["spec"]["renewTime"] = when
    names = {"progress": PROGRESS, "age": AGE, "message": MESSAGE, "ended": ENDED}
    lease["metadata"].setdefault("annotations", {}).update({names[key]: value for key, value in annotations.items()})
    return lease
