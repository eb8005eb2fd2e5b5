"""A cluster with real kubelets, by its kubeconfig: the same view of it that the local one gives, Holdfast
installed in it by Helm, and, where its nodes are kind's, the nodes themselves.

    with RealCluster(kubeconfig, image="holdfast:e2e", workload="...") as cluster:
        cluster.install()
        cluster.api("GET", "/api/v1/nodes")
"""

import base64
import contextlib
import datetime
import json
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.request

from holdfast import ROOT, die_with_parent
from localcluster import ClusterError, wait_for
from localcluster.api import ProxyClient
from localcluster.tools import ensure_clients

CHART = ROOT / "charts/holdfast"
SYSTEM = "holdfast-system"
RELEASE = "holdfast"
OPERATORS = (f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector="
             "app.kubernetes.io%2Fname%3Dholdfast%2Capp.kubernetes.io%2Fcomponent%3Doperator")
# Seconds from an operator's start until its caches have all nodes.
SYNCED = 3
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def node_lease(cluster, node):
    """The Lease by which the node shows life."""
    return cluster.api("GET", f"{NODE_LEASES}/{node}")[1]


def moment(text):
    """A time of the API, in seconds since the epoch."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class RealCluster:
    """`kind`: the name of the kind cluster whose nodes these are, or None: they are not to be touched.
    `tools`: paths of kubectl and helm, default: the pinned ones."""

    def __init__(self, kubeconfig, image, workload, kind=None, tools=None):
        self.kubeconfig, self.image, self.workload, self.kind = kubeconfig, image, workload, kind
        self.tools = tools or ensure_clients()
        self._proxy = None
        self._client = None

    def __enter__(self):
        # Everything that a kubeconfig can ask for to log in is kubectl's to know.
        self._proxy = subprocess.Popen(
            [str(self.tools["kubectl"]), "proxy", "--port=0"], env=self._environment(), text=True,
            stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        found = re.search(r":(\d+)$", self._proxy.stdout.readline().strip())
        if not found:
            raise ClusterError("kubectl proxy did not start")
        self._client = ProxyClient(int(found[1]))
        return self

    def __exit__(self, *_):
        self._proxy.terminate()
        self._proxy.wait()

    def _environment(self):
        return dict(os.environ, KUBECONFIG=str(self.kubeconfig))

    @property
    def proxy_address(self):
        """host:port of `kubectl proxy`, which needs no credentials."""
        return self._client.address

    # -- as localcluster.Cluster ----------------------------------------------------------------

    def api(self, method, path, body=None, content_type="application/json", timeout=30):
        """(status, parsed JSON) of a raw call."""
        return self._client.request(method, path, body, content_type, timeout)

    def watch(self, path, resource_version="", timeout=60, **params):
        """Yields watch events; see ApiClient.watch."""
        return self._client.watch(path, resource_version, timeout, **params)

    def kubectl(self, *args, input=None, check=True, timeout=180):
        """Runs kubectl; with check a CompletedProcess of a success, else of any end."""
        return self._run([str(self.tools["kubectl"]), *args], input, check, timeout)

    def api_as(self, token, method, path, body=None):
        """The same as the bearer of a token, and as nobody else: past kubectl's own certificate."""
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
        server = config["clusters"][0]["cluster"]
        tls = ssl.create_default_context(cadata=base64.b64decode(server["certificate-authority-data"]).decode())
        request = urllib.request.Request(
            server["server"] + path, method=method, data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30, context=tls) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    # -- Holdfast in it ---------------------------------------------------------------------------

    def helm(self, *args, check=True, timeout=600):
        """Runs helm."""
        return self._run([str(self.tools["helm"]), *args], None, check, timeout)

    def install(self, *arguments):
        """The chart with the image under test, and what else is said; also as an upgrade."""
        repository, _, tag = self.image.rpartition(":")
        # A tag that was built anew is another image all the same, and no other pod without this.
        built = self.docker("image", "inspect", "--format", "{{.Id}}", self.image).stdout.strip() if self.kind else ""
        self.helm("upgrade", "--install", RELEASE, str(CHART), "--namespace", SYSTEM,
                  "--create-namespace", "--wait", "--timeout", "5m",
                  "--set", f"image.repository={repository},image.tag={tag}",
                  "--set-string", f"podAnnotations.image={built}", *arguments)
        self.await_operators()

    def is_installed(self):
        """Whether somebody's release is there."""
        return self.helm("status", RELEASE, "--namespace", SYSTEM, check=False).returncode == 0

    def uninstall(self):
        self.helm("uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "5m")

    def operators(self):
        """The operator's pods that are ready."""
        return [pod for pod in self.api("GET", OPERATORS)[1]["items"]
                if not pod["metadata"].get("deletionTimestamp") and any(
                    c["type"] == "Ready" and c["status"] == "True"
                    for c in pod["status"].get("conditions", []))]

    def await_operators(self, count=2, limit=180):
        """Until so many replicas are ready, hold all the shards between them, and have seen each node renew its Lease:
        one that has just started counts a silence from its start."""
        def at_work():
            pods = self.operators()
            return len(pods) >= count and sum(self.metric_of(pod, "holdfast_shards_held") for pod in pods) == 32

        wait_for(f"{count} operators to hold all shards", at_work, limit, poll=0.5)
        began = max(moment(status["state"]["running"]["startedAt"]) for pod in self.operators()
                    for status in pod["status"]["containerStatuses"])

        def seen():
            return all(moment(node_lease(self, node)["spec"]["renewTime"]) > began + SYNCED for node in self.workers())

        wait_for("each node to renew its Lease", seen, limit, poll=0.5)

    def spread_operators(self):
        """One on each of the two workers: after a node was away both may be on the other one."""
        def where():
            return [pod["spec"]["nodeName"] for pod in self.operators()]

        self.await_operators()
        if len(set(where())) < 2:
            self.kubectl("-n", SYSTEM, "rollout", "restart", "deployment/holdfast")
            self.kubectl("-n", SYSTEM, "rollout", "status", "deployment/holdfast")
            self.await_operators()
        assert len(set(where())) == 2, f"the scheduler put new replicas on one node: {where()}"

    def operators_said(self, seconds, lines=60):
        """The last lines that the operators have logged in this time, but those on single jobs that go well."""
        said = self.kubectl("-n", SYSTEM, "logs", "-l", "app.kubernetes.io/component=operator", "--prefix",
                            "--tail=-1", "--timestamps", f"--since={int(seconds)}s", "--ignore-errors", check=False)
        kept = [line for line in said.stdout.splitlines() if "job moved" not in line]
        return "\n".join(line[:300] for line in kept[-lines:])

    def metric_of(self, pod, name, **labels):
        """The sum of the samples of this name with these labels that this replica shows. OSError where it
        does not answer."""
        path = f"/api/v1/namespaces/{SYSTEM}/pods/{pod['metadata']['name']}:8080/proxy/metrics"
        status, text = self.api("GET", path, timeout=5)
        if status != 200 or not isinstance(text, str):
            raise OSError(f"{path}: {status} {str(text)[:200]}")
        samples = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for found, value in samples
                   if all(f'{key}="{wanted}"' in found for key, wanted in labels.items()))

    def metric(self, name, **labels):
        """The same over all replicas, once all answer."""
        return sum(wait_for(f"{name} of the replicas", lambda: [
            self.metric_of(pod, name, **labels) for pod in self.operators()], 60))

    # -- kind's nodes -----------------------------------------------------------------------------

    def workers(self):
        """The names of the nodes that jobs may run on."""
        nodes = self.api("GET", "/api/v1/nodes")[1]["items"]
        return [node["metadata"]["name"] for node in nodes if not any(
            taint["key"] == "node-role.kubernetes.io/control-plane"
            for taint in node["spec"].get("taints", []))]

    def docker(self, *args, check=True, timeout=120):
        """Runs docker."""
        return self._run(["docker", *args], None, check, timeout)

    def load_image(self, image):
        """Gives an image of this machine to the nodes, which then need no registry for it."""
        self._run(["kind", "load", "docker-image", image, "--name", self.kind], None, True, 300)

    def on_node(self, node, *command, check=True):
        """Runs a command inside a node; its standard output."""
        return self.docker("exec", node, *command, check=check).stdout

    @contextlib.contextmanager
    def lost(self, node, how, back):
        """The node is lost by `docker HOW NODE` for the block and comes back by `docker BACK NODE`."""
        self.docker(how, node)
        try:
            yield
        finally:
            self.docker(back, node)
            self.await_node(node)
            self.await_operators()

    def await_node(self, node, limit=180):
        """Until it is ready and takes pods."""
        def ready():
            status, body = self.api("GET", f"/api/v1/nodes/{node}")
            return status == 200 and not body["spec"].get("taints") and any(
                c["type"] == "Ready" and c["status"] == "True" for c in body["status"]["conditions"])

        wait_for(f"node {node} to be ready", ready, limit, poll=0.5)

    def container_of(self, node, pod, name="main"):
        """(id, process id in the node) of a pod's running container."""
        found = self.on_node(node, "crictl", "ps", "-q", "--label",
                             f"io.kubernetes.pod.uid={pod['metadata']['uid']}", "--name", f"^{name}$")
        if not found.strip():
            raise ClusterError(f"pod {pod['metadata']['name']} has no running container {name} on {node}")
        container = found.split()[0]
        info = json.loads(self.on_node(node, "crictl", "inspect", container))
        return container, info["info"]["pid"]

    @contextlib.contextmanager
    def frozen(self, node, container):
        """All processes of a container stand still for the block (the cgroup freezer), and go on then."""
        runtime = ("ctr", "-n", "k8s.io", "task")
        self.on_node(node, *runtime, "pause", container)
        try:
            yield
        finally:
            self.on_node(node, *runtime, "resume", container)

    def _run(self, argv, text, check, timeout):
        result = subprocess.run(argv, input=text, text=True, capture_output=True, timeout=timeout,
                                check=False, env=self._environment())
        if check and result.returncode != 0:
            raise ClusterError(f"{' '.join(argv)}: exit {result.returncode}\n{result.stdout.strip()[-2000:]}\n"
                               f"{result.stderr.strip()[-4000:]}")
        return result
