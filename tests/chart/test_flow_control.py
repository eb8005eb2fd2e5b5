"""The operator's requests have seats of their own in the API server: those of thousands of agents never keep them."""

import http.client
import itertools
import json
import socket
import ssl
import threading
import time

import pytest
import yaml
from chart import NAMESPACE, pick
from fence import TokenClient, expect, grant, token_of, wait_account, wait_allowed
from holdfast import install
from localcluster import Cluster, wait_for

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
KINDS = {"FlowSchema", "PriorityLevelConfiguration", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
         "RoleBinding"}
# As few as the API server takes to share out, so that few threads take them all.
SEATS = ["--max-requests-inflight=20", "--max-mutating-requests-inflight=20"]
# The API server serves service accounts in turn, so that one of them alone keeps nobody waiting for long.
ACCOUNTS, AGENTS_EACH = 40, 3
SLOW = "slow"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SLOW}/leases"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=0, kwok=False, scheduler=False, audit=False, quiet=True, apiserver_flags=SEATS) as cluster:
        install(cluster)
        cluster.kubectl("create", "namespace", SLOW)
        for name in (NAMESPACE, SLOW):
            wait_account(cluster, name)
        yield cluster


def installed(cluster, helm, **values):
    """The chart's account with its rights, and with its flow control or without."""
    cluster.kubectl("delete", "flowschema,prioritylevelconfiguration", "-l", "app.kubernetes.io/name=holdfast")
    objects = [item for item in helm.objects({"workerNamespaces": [], **values}) if item["kind"] in KINDS
               and "helm.sh/hook" not in item["metadata"].get("annotations", {})]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
    account = f"system:serviceaccount:{NAMESPACE}:holdfast"
    wait_allowed(cluster, "default", account, "list", "durablejobs", "holdfast.dev")
    return objects


class Caller:
    """A service account, and what the API server says of the seats that its requests took."""

    def __init__(self, cluster, namespace, account):
        self.port = cluster.ports["kube-apiserver"]
        self.tls = ssl.create_default_context(cafile=str(cluster.folder / "pki/ca.crt"))
        self.headers = {"Authorization": f"Bearer {token_of(cluster, namespace, account)}"}

    def flow(self, path):
        """(UID of the flow schema, UID of the priority level)."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=60)
        try:
            connection.request("GET", path, headers=self.headers)
            answer = connection.getresponse()
            answer.read()
            return (answer.headers["X-Kubernetes-PF-FlowSchema-UID"],
                    answer.headers["X-Kubernetes-PF-PriorityLevel-UID"])
        finally:
            connection.close()


OURS = ["/apis/holdfast.dev/v1alpha1/durablejobs", "/api/v1/namespaces/default/pods/x", "/version",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/holdfast-member-x",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "/api/v1/nodes"]


def test_all_of_the_operators_requests_and_nobody_elses_take_its_seats(cluster, helm):
    objects = installed(cluster, helm)
    ours = tuple(expect(cluster.api("GET", f"{FLOWS}/{plural}/{pick(objects, kind)['metadata']['name']}"))
                 ["metadata"]["uid"] for plural, kind in [
                     ("flowschemas", "FlowSchema"), ("prioritylevelconfigurations", "PriorityLevelConfiguration")])
    operator = Caller(cluster, NAMESPACE, "holdfast")
    wait_for("the API server to use the flow schema", lambda: operator.flow(OURS[0]) == ours, 30)
    assert {path: operator.flow(path) for path in OURS} == dict.fromkeys(OURS, ours)
    for namespace in (SLOW, NAMESPACE):
        other = Caller(cluster, namespace, "default")
        assert all(uid not in ours for path in OURS for uid in other.flow(path))


def test_the_api_server_finds_nothing_wrong_with_them(cluster, helm):
    installed(cluster, helm)
    schema = expect(cluster.api("GET", f"{FLOWS}/flowschemas/holdfast"))
    wait_for("its priority level to be found", lambda: [
        one["status"] for one in cluster.api("GET", f"{FLOWS}/flowschemas/holdfast")[1]["status"]["conditions"]
        if one["type"] == "Dangling"] == ["False"], 30)
    assert schema["spec"]["priorityLevelConfiguration"]["name"] == "holdfast"


class HangingWebhook:
    """Takes connections and says nothing: each write to a Lease of SLOW keeps its seat for half a minute."""

    NAME = "slow.holdfast.dev"
    PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

    def __init__(self, cluster):
        self.cluster = cluster
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=4 * ACCOUNTS * AGENTS_EACH)

    def __enter__(self):
        expect(self.cluster.api("POST", self.PATH, {"metadata": {"name": self.NAME}, "webhooks": [{
            "name": self.NAME, "timeoutSeconds": 30, "failurePolicy": "Ignore", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:{self.socket.getsockname()[1]}/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SLOW}},
            "rules": [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
                       "resources": ["leases"]}]}]}))
        return self

    def __exit__(self, *_):
        expect(self.cluster.api("DELETE", f"{self.PATH}/{self.NAME}"))
        self.socket.close()


def renew_for_ever(cluster, token, stop):
    client = TokenClient(cluster, token)
    for number in itertools.count(1):
        if stop.is_set():
            return
        try:
            client.api("PATCH", f"{LEASES}/held", {"spec": {"leaseTransitions": number}},
                       "application/merge-patch+json")
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            time.sleep(0.2)  # too many at once: what is tried again is the load


@pytest.fixture()
def crowd(cluster):
    """More agents than the API server has seats, each of whose renewals takes half a minute."""
    if cluster.api("GET", f"{LEASES}/held")[0] == 404:
        expect(cluster.api("POST", LEASES, {"metadata": {"name": "held"}}))
        rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["patch"]}]
        accounts = [f"agent-{n}" for n in range(ACCOUNTS)]
        for name in accounts:
            expect(cluster.api("POST", f"/api/v1/namespaces/{SLOW}/serviceaccounts", {"metadata": {"name": name}}))
        grant(cluster, SLOW, "agents", rules, *((SLOW, name) for name in accounts))
    wait_allowed(cluster, SLOW, f"system:serviceaccount:{SLOW}:agent-0", "patch")
    tokens, stop = [token_of(cluster, SLOW, f"agent-{n}") for n in range(ACCOUNTS)], threading.Event()
    with HangingWebhook(cluster):
        threads = [threading.Thread(target=renew_for_ever, args=(cluster, token, stop), daemon=True)
                   for token in tokens * AGENTS_EACH]
        for thread in threads:
            thread.start()

        def waiting():
            text = cluster.kubectl("get", "--raw", "/metrics").stdout
            return any(line.startswith("apiserver_flowcontrol_current_inqueue_requests") and
                       'flow_schema="service-accounts"' in line and float(line.rsplit(" ", 1)[1]) > 0
                       for line in text.splitlines())

        wait_for("agents to wait for seats", waiting, 60)
        yield
        stop.set()


def seconds_for(caller, path):
    began = time.monotonic()
    caller.flow(path)
    return time.monotonic() - began


def test_without_seats_of_its_own_the_operator_waits_behind_the_agents(cluster, helm, crowd):
    """So the crowd of the next test is one that the flow schema keeps away."""
    installed(cluster, helm, flowControl={"enabled": False})
    operator = Caller(cluster, NAMESPACE, "holdfast")
    wait_for("a request that waits", lambda: seconds_for(operator, OURS[0]) > 2, 90)


def test_agents_that_take_all_seats_never_keep_the_operator_waiting(cluster, helm, crowd):
    installed(cluster, helm)
    operator = Caller(cluster, NAMESPACE, "holdfast")
    ours = expect(cluster.api("GET", f"{FLOWS}/flowschemas/holdfast"))["metadata"]["uid"]
    wait_for("the API server to use the flow schema", lambda: operator.flow("/version")[0] == ours, 90)
    slowest = max(seconds_for(operator, path) for path in OURS)
    assert slowest < 2, f"{slowest:.1f} s"
