"""Argo Workflows: a step for each index, retried always."""

import json

from localcluster.tools import ARGO, ensure_argo, pinned_version
from referee.systems.base import BESIDE_THE_CONTROL_PLANE, IMAGE_FOLDER, System, probed, worker_pod
from referee.systems.batch import AT_ONCE

NAMESPACE = "argo"
CONTROLLER, EXECUTOR = "holdfast-referee-argo:local", "holdfast-referee-argoexec:local"
RESULTS = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "executor"}, "rules": [
    {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}]}
BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "executor"},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "executor"},
           "subjects": [{"kind": "ServiceAccount", "name": "default"}]}


class Argo(System):
    name = "argo"
    vendor = "Argo"
    resource = "workflows.argoproj.io"
    listing = "argoproj.io/v1alpha1/workflows"
    settings = ("`retryStrategy: {limit: 100, retryPolicy: Always, affinity: {nodeAntiAffinity: {}}}`; tolerations of 0 s; a "
                "liveness probe")
    promise = ("`Always`: Retry all failed steps", "https://argo-workflows.readthedocs.io/en/release-3.7/retries/")
    controllers = ((NAMESPACE, "app=workflow-controller"),)

    def install(self):
        programs, manifests = ensure_argo()
        self.version = pinned_version("argo", ARGO)
        for image, program in ((CONTROLLER, "workflow-controller"), (EXECUTOR, "argoexec")):
            self.cluster.docker("build", "--tag", image, "--build-arg", f"PROGRAM={program}", "--build-arg",
                                f"TARGET=/bin/{program}", "--file", str(IMAGE_FOLDER / "Dockerfile"), str(programs))
            self.cluster.load_image(image)
        self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        objects = self.cluster.kubectl("kustomize", str(manifests / "cluster-install")).stdout
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-n", NAMESPACE, "-f", "-", input=objects)
        # The server of its page has no part in it.
        self.cluster.kubectl("-n", NAMESPACE, "delete", "deployment", "argo-server")
        container = {"name": "workflow-controller", "image": CONTROLLER, "imagePullPolicy": "Never",
                     "command": ["/bin/workflow-controller"], "securityContext": {"runAsUser": 8737},
                     "args": ["--executor-image", EXECUTOR, "--executor-image-pull-policy", "Never"]}
        self.cluster.kubectl("-n", NAMESPACE, "patch", "deployment", "workflow-controller", "-p", json.dumps(
            {"spec": {"template": {"spec": {"containers": [container], **BESIDE_THE_CONTROL_PLANE}}}}))
        self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/workflow-controller")

    def prepare(self):
        subjects = [subject | {"namespace": self.namespace} for subject in BINDING["subjects"]]
        self.cluster.kubectl("-n", self.namespace, "apply", "-f", "-", input=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": [RESULTS, BINDING | {"subjects": subjects}]}))

    def job(self, name):
        pod = probed(worker_pod(self.name, name, "{{inputs.parameters.index}}", self.seconds))
        [container] = pod["containers"]
        step = {"name": "run", "template": "run", "withSequence": {"count": str(self.indexes)},
                "arguments": {"parameters": [{"name": "index", "value": "{{item}}"}]}}
        return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": {
            "entrypoint": "all", "serviceAccountName": "default", "volumes": pod["volumes"], "tolerations": AT_ONCE,
            "templates": [{"name": "all", "steps": [[step]]},
                          {"name": "run", "inputs": {"parameters": [{"name": "index"}]},
                           "retryStrategy": {"limit": "100", "retryPolicy": "Always",
                                             "affinity": {"nodeAntiAffinity": {}}}, "container": {
                               key: value for key, value in container.items() if key != "name"}}]}}

    def claim_of(self, found, index):
        status = found.get("status", {})
        nodes = status.get("nodes", {})
        own = [node for node in nodes.values() if node.get("templateName") == "run" and index_of(node) == index]
        retries = [node for node in own if node["type"] == "Retry"]
        counted = sum(node["type"] == "Pod" and node.get("phase") == "Succeeded" for node in own)
        phase = retries[0].get("phase") if retries else None
        if phase == "Succeeded":
            return "Succeeded", counted, ""
        if phase in ("Failed", "Error") or status.get("phase") in ("Failed", "Error"):
            return "Failed", counted, (retries[0] if retries else status).get("message", "")
        return None, counted, next((node["message"] for node in own if node.get("message")), "")

    def has_ended(self, found):
        return found.get("status", {}).get("phase") in ("Succeeded", "Failed", "Error")


def index_of(node):
    """Of the parameter that its step was given."""
    for parameter in node.get("inputs", {}).get("parameters", []):
        if parameter["name"] == "index":
            return int(parameter["value"])
    return None
