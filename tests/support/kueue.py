"""The real Kueue beside a local cluster, installed from its own chart: its CRDs, rights and webhooks.

    with Kueue(cluster, manageJobsWithoutQueueName=True) as kueue:      # more of Kueue's own configuration
        kueue.flavor("spot", {"pool": "spot"})
        kueue.cluster_queue("team", {"spot": {"cpu": "4"}}, preemption={"withinClusterQueue": "LowerPriority"})
        kueue.local_queue("default", "jobs", "team")
        kueue.workloads("default")
"""

import base64
import subprocess
import urllib.request
from pathlib import Path

import yaml
from localcluster import wait_for
from localcluster.tools import ensure_helm, ensure_kueue

NAMESPACE = "kueue-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kueue-controller-manager"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
API = "/apis/kueue.x-k8s.io/v1beta2"
WEBHOOKS = "kueue-webhook-service"
CERTIFICATE = f"/api/v1/namespaces/{NAMESPACE}/secrets/kueue-webhook-server-cert"
# What runs Kueue in a cluster, and its aggregated API, which our tests do not ask.
NOT_INSTALLED = {"Deployment", "APIService"}
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
GATE = "kueue.x-k8s.io/admission"
# Of a ClusterQueue: a workload takes the quota of those with a lower priority.
PREEMPTS = {"preemption": {"withinClusterQueue": "LowerPriority"}}


class Queues:
    """The objects of a Kueue that runs in this cluster. `log`: a file to name if it does not do what is awaited."""

    def __init__(self, cluster, log=None):
        self.cluster, self._log = cluster, log

    def flavor(self, name, node_labels):
        """A ResourceFlavor: nodes with these labels."""
        self._create("resourceflavors", "ResourceFlavor", name, {"nodeLabels": node_labels})

    def cluster_queue(self, name, quotas, **spec):
        """`quotas` by flavor and resource; all flavors have the same resources."""
        resources = list(next(iter(quotas.values())))
        flavors = [{"name": flavor, "resources": [{"name": resource, "nominalQuota": quota[resource]}
                                                  for resource in resources]} for flavor, quota in quotas.items()]
        self._create("clusterqueues", "ClusterQueue", name, {
            "namespaceSelector": {}, "resourceGroups": [{"coveredResources": resources, "flavors": flavors}], **spec})

    def local_queue(self, namespace, name, cluster_queue):
        """Returns when Kueue takes workloads for it."""
        path = self._create(f"namespaces/{namespace}/localqueues", "LocalQueue", name, {"clusterQueue": cluster_queue})

        def active():
            conditions = self.cluster.api("GET", path)[1].get("status", {}).get("conditions", [])
            return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)

        wait_for(f"the LocalQueue {name} to be active", active, 60, self._log)

    def priority_class(self, name, value):
        """A WorkloadPriorityClass: of Kueue alone, pods keep their own priority."""
        self._create("workloadpriorityclasses", "WorkloadPriorityClass", name, value=value)

    def _create(self, collection, kind, name, spec=None, **fields):
        body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **fields}
        if spec is not None:
            body["spec"] = spec
        status, answer = self.cluster.api("POST", f"{API}/{collection}", body)
        assert status == 201, answer
        return f"{API}/{collection}/{name}"

    def set_quota(self, name, flavor, **resources):
        """Another nominalQuota of one flavor of a ClusterQueue."""
        path = f"{API}/clusterqueues/{name}"
        groups = self.cluster.api("GET", path)[1]["spec"]["resourceGroups"]
        [found] = [entry for group in groups for entry in group["flavors"] if entry["name"] == flavor]
        for entry in found["resources"]:
            entry["nominalQuota"] = resources.get(entry["name"], entry["nominalQuota"])
        status, answer = self.cluster.api("PATCH", path, {"spec": {"resourceGroups": groups}}, content_type="merge")
        assert status == 200, answer

    def workloads(self, namespace):
        """Of one namespace."""
        status, answer = self.cluster.api("GET", f"{API}/namespaces/{namespace}/workloads")
        assert status == 200, answer
        return answer["items"]

    def workload_of(self, namespace, owner):
        """The Workload that this object (a pod, a Job) owns, or None."""
        for workload in self.workloads(namespace):
            if any(reference["uid"] == owner["metadata"]["uid"]
                   for reference in workload["metadata"].get("ownerReferences", [])):
                return workload
        return None

    def wait_answers(self):
        """Kueue gives its CA to the webhooks; the API server hears of it a moment later."""
        wait_for("the API server to reach Kueue's webhooks", self._answers, 60, self._log)

    def _answers(self):
        """Whether the webhooks for Kueue's own objects, for Jobs and for pods do."""
        pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        job = {"metadata": {"name": "probe"}, "spec": {"template": {"spec": pod["spec"] | {"restartPolicy": "Never"}}}}
        flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
        tries = [("/api/v1/namespaces/default/pods", pod), ("/apis/batch/v1/namespaces/default/jobs", job),
                 (f"{API}/resourceflavors", flavor)]
        return all(self.cluster.api("POST", f"{path}?dryRun=All", body)[0] == 201 for path, body in tries)


class Kueue(Queues):
    """Kueue's manager as a process of the cluster; it ends with the cluster or the `with` block.

    feature_gates      "Name=true,..."
    configuration      fields of Kueue's own configuration file
    """

    def __init__(self, cluster, feature_gates="", **configuration):
        super().__init__(cluster, cluster.log_path("kueue"))
        self.configuration = configuration
        # Nobody asks its aggregated API.
        self.feature_gates = ",".join(filter(None, ["VisibilityOnDemand=false", feature_gates]))
        self.program, self.chart = ensure_kueue()
        self.folder = Path(cluster.folder) / "kueue"
        self.certificates = self.folder / "certificates"
        self.webhook_port, self.health_port = cluster.reserve_ports(2)

    def __enter__(self):
        self.certificates.mkdir(parents=True)
        config = self._install()
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config))
        self.start()
        return self

    def __exit__(self, *_):
        """Without its webhooks, which would refuse every pod."""
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            self.cluster.kubectl("delete", kind, "-l", "app.kubernetes.io/name=kueue")
        self.cluster.kill("kueue")
        self.cluster.wait_ended("kueue")

    def start(self):
        """Starts the manager, also again, and waits until its webhooks answer."""
        kubeconfig = self.cluster.kubeconfig_for(ACCOUNT, GROUPS, self.folder / "kubeconfig")
        self.cluster.start_process("kueue", [
            self.program, f"--config={self.folder}/config.yaml", f"--kubeconfig={kubeconfig}",
            f"--feature-gates={self.feature_gates}", "--zap-log-level=3"])
        wait_for("Kueue to be ready", lambda: self._mount_certificate() and self._ready(), 120,
                 self._log, alive=lambda: self.cluster.processes()["kueue"]["running"])
        self.wait_answers()

    def restart(self, **configuration):
        """The manager anew, with more of its configuration."""
        self.cluster.kill("kueue")
        self.cluster.wait_ended("kueue")
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | configuration))
        self.start()

    def _install(self):
        """Applies the chart and returns the manager's configuration: that of the chart, and ours."""
        done = subprocess.run([ensure_helm(), "template", "kueue", self.chart, f"--namespace={NAMESPACE}"],
                              check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        objects = [body for body in yaml.safe_load_all(done.stdout) if body and body["kind"] not in NOT_INSTALLED]
        for body in objects:
            self._point_here(body)
        self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(objects))
        [settings] = [body["data"] for body in objects if body["kind"] == "ConfigMap"]
        return yaml.safe_load(settings["controller_manager_config.yaml"]) | {
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health_port}"},
            "metrics": {"bindAddress": "0"},
            "leaderElection": {"leaderElect": False},
            "webhook": {"host": "127.0.0.1", "port": self.webhook_port, "certDir": str(self.certificates)},
        } | self.configuration

    def _point_here(self, body):
        """The API server looks a webhook's service up; one that is an ExternalName leads to this process, and the
        certificate is still checked for the service's name."""
        if body["kind"] == "Service" and body["metadata"]["name"] == WEBHOOKS:
            body["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        hooks = body.get("webhooks", [])
        if body["kind"] == "CustomResourceDefinition" and "conversion" in body["spec"]:
            hooks = [body["spec"]["conversion"].get("webhook", {})]
        for hook in hooks:
            hook["clientConfig"]["service"]["port"] = self.webhook_port

    def _mount_certificate(self):
        """Plays the kubelet: the Secret that Kueue fills is a folder that Kueue reads. True once it is filled."""
        status, secret = self.cluster.api("GET", CERTIFICATE)
        data = secret.get("data") or {} if status == 200 else {}
        for name, text in data.items():
            path = self.certificates / name
            content = base64.b64decode(text)
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
        return "tls.crt" in data

    def _ready(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5) as answer:
            return answer.status == 200


def has(workload, condition):
    """Whether this condition of the Workload is True."""
    return any(entry["type"] == condition and entry["status"] == "True"
               for entry in (workload or {}).get("status", {}).get("conditions", []))
