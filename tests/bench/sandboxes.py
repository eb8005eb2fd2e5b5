"""agent-sandbox's controller and a warm pool of its sandboxes, for mode s. Its pods are simulated.

    peer = Peer(plane, "/opt/agent-sandbox-controller", "/opt/agent-sandbox/k8s")
    with Sandboxes(peer, count=300) as pool:
        plane.send([objects.post(pool.path("sandboxclaims"), claim("claim-$N"))], 300)

Holdfast neither contains nor builds agent-sandbox: its program and its manifests are given.
"""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

import yaml

from holdfast import die_with_parent
from localcluster import ClusterError, wait_for
from measure import Audit
from plane import LIMIT

NAMESPACE, NAME = "agent-sandbox-system", "agent-sandbox-controller"
PEER_USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1"
SERVED = {"sandboxes", "sandboxclaims", "sandboxtemplates", "sandboxwarmpools"}
TEMPLATE, POOL = "bench", "bench"
# The scenario's: those of the manifest, but for the profiler, which costs CPU. The program limits no requests itself.
# Conversion between API versions is the webhook's only task, and the scenario serves one version.
FLAGS = ("--leader-elect=true", f"--leader-election-namespace={NAMESPACE}", "--extensions", "--enable-webhook=false")
# A hundred sandboxes need some seconds to go on an idle machine.
GONE_SECONDS = 600


def one_version(crd):
    """The definition as the scenario has it: without the deprecated version, and so without conversion."""
    for version in crd["spec"]["versions"]:
        version["served"] = version["storage"]
    crd["spec"]["conversion"] = {"strategy": "None"}
    return crd


def objects_of(manifests):
    """What the cluster needs of these manifests: definitions and rights. The controller runs as a process here."""
    folder = pathlib.Path(manifests)
    load = lambda path: [item for item in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if item]
    definitions = [one_version(item) for path in sorted(folder.glob("crds/*.yaml")) for item in load(path)]
    roles = [item for path in sorted(folder.glob("*rbac.generated.yaml")) for item in load(path)]
    if not definitions or not roles:
        raise ClusterError(f"{folder} has no crds/*.yaml or no *rbac.generated.yaml of agent-sandbox")
    bindings = [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                 "metadata": {"name": role["metadata"]["name"]},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                             "name": role["metadata"]["name"]},
                 "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]} for role in roles]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *definitions, *roles, *bindings]


def version_of(said):
    """v1.2.3 of what `agent-sandbox-controller --version` prints."""
    found = re.search(r"version (\S+)", said)
    return found[1] if found else "of an unknown version"


def template():
    """A SandboxTemplate as the scenario's: a container that sleeps, and no Service."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "infinity"]}
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate",
            "metadata": {"name": TEMPLATE}, "spec": {"service": False, "podTemplate": {"spec": {
                "containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False}}}}


def warm_pool(count):
    """A SandboxWarmPool of so many sandboxes."""
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool",
            "metadata": {"name": POOL}, "spec": {"replicas": count, "sandboxTemplateRef": {"name": TEMPLATE}}}


def claim(name):
    """A SandboxClaim of the pool."""
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": name},
            "spec": {"warmPoolRef": {"name": POOL}}}


def is_ready(item):
    """Whether a claim has its sandbox, or a sandbox its pod."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


class Peer:
    """agent-sandbox on this cluster; its controller runs only within Sandboxes."""

    def __init__(self, plane, binary, manifests):
        self.plane, self.binary = plane, binary
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True, timeout=60)
        self.version = version_of(said.stdout)
        items = {"apiVersion": "v1", "kind": "List", "items": objects_of(manifests)}
        # The definitions are too long for what a plain apply keeps in an annotation.
        plane.cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(items))
        # The controller ends if the API server does not list them yet.
        wait_for("the API server to list agent-sandbox's resources", lambda: SERVED <= self._listed(), 60)
        self.kubeconfig = plane.service_account(PEER_USER)

    def _listed(self):
        answers = (self.plane.cluster.api("GET", path) for path in (SANDBOXES, EXTENSIONS))
        return {resource["name"] for status, one in answers if status == 200 for resource in one["resources"]}


class Sandboxes:
    """A warm pool in a namespace of its own, its controller, and all its sandboxes ready."""

    def __init__(self, peer, count, *flags):
        self.peer, self.plane, self.count, self.flags = peer, peer.plane, count, flags
        self.namespace = peer.plane.namespace("sandboxes")
        self.user = PEER_USER
        self.process = self._health = None
        self.warm = frozenset()  # names of the sandboxes that were ready at the beginning

    def __enter__(self):
        try:
            self._start()
            self._post("sandboxtemplates", template())
            self._post("sandboxwarmpools", warm_pool(self.count))
            wait_for(f"{self.count} sandboxes to be ready", self.is_full, LIMIT, poll=0.5)
            self.warm = frozenset(item["metadata"]["name"] for item in self.sandboxes() if is_ready(item))
            if len(self.warm) < self.count:
                raise ClusterError(f"the pool says that {self.count} sandboxes are ready, and {len(self.warm)} are")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        try:
            for resource in ("sandboxclaims", "sandboxwarmpools", "sandboxtemplates"):
                self.plane.cluster.api("DELETE", self.path(resource))
            wait_for("the pool's pods to be gone", lambda: not self._pods(), GONE_SECONDS, poll=1)
        finally:
            self._stop()

    def path(self, resource):
        return f"{EXTENSIONS}/namespaces/{self.namespace}/{resource}"

    def is_full(self):
        """Whether the pool has as many ready sandboxes as it shall have."""
        pool = self.plane.cluster.api("GET", f"{self.path('sandboxwarmpools')}/{POOL}")[1]
        return pool.get("status", {}).get("readyReplicas", 0) >= self.count

    def sandboxes(self):
        return self.plane.cluster.api("GET", f"{SANDBOXES}/namespaces/{self.namespace}/sandboxes")[1]["items"]

    def audit(self, offset):
        return Audit(self.plane.cluster, offset, self.namespace)

    def _pods(self):
        return self.plane.cluster.api("GET", f"/api/v1/namespaces/{self.namespace}/pods?limit=1")[1]["items"]

    def _post(self, resource, body):
        status, answer = self.plane.cluster.api("POST", self.path(resource), body)
        assert status == 201, answer

    def _start(self):
        metrics, health = self.plane.cluster.reserve_ports(2)
        self._health = f"http://127.0.0.1:{health}/readyz"
        log = pathlib.Path(self.plane.cluster.folder) / f"{self.namespace}.log"
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [self.peer.binary, f"--kubeconfig={self.peer.kubeconfig}", *FLAGS, *self.flags,
                 f"--metrics-bind-address=127.0.0.1:{metrics}", f"--health-probe-bind-address=127.0.0.1:{health}"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=die_with_parent)

        def ready():
            if self.process.poll() is not None:
                raise ClusterError(f"agent-sandbox ended with {self.process.returncode}:\n{log.read_text()[-4000:]}")
            try:
                with urllib.request.urlopen(self._health, timeout=5) as answer:
                    return answer.status == 200
            except (urllib.error.URLError, OSError, http.client.HTTPException):
                return False

        wait_for("agent-sandbox to be ready", ready, 120)

    def _stop(self):
        if self.process and self.process.poll() is None:
            # It gives its leader's Lease back.
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
