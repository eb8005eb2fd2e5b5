"""helm on the chart, and values to give it: what the chart's tests share."""

import json
import os
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/holdfast"
NAMESPACE = "holdfast-system"
RELEASE = "holdfast"

DIGEST = "sha256:" + "0123456789abcdef" * 4
# Name: values. What a platform team sets, one thing or many at a time.
VALUES = {
    "defaults": {},
    "one-replica": {"replicas": 1, "podDisruptionBudget": {"enabled": False}},
    "stopped": {"replicas": 0},
    "private-registry": {
        "image": {"repository": "registry.example.com/team/holdfast", "digest": DIGEST, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccount": {"name": "batch", "annotations": {"example.com/role": "batch"}}},
    "some-namespaces": {"watchNamespaces": ["media", "proofs"], "workerNamespaces": ["media"]},
    "no-heartbeats": {"workerNamespaces": []},
    "no-policies": {"workerNamespaces": [], "authorPolicy": {"enabled": False}, "flowControl": {"enabled": False}},
    "watched": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}, "lostAfterSeconds": 120},
        "dashboards": {"enabled": True},
        "networkPolicy": {"enabled": True, "metricsFrom": [
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]}},
    "bare": {"networkPolicy": {"enabled": False}, "releasePods": {"enabled": False},
             "podDisruptionBudget": {"enabled": False}, "resources": {}},
    "placed": {
        "podAnnotations": {"example.com/a": "1"}, "podLabels": {"team": "batch"},
        "priorityClassName": "system-cluster-critical", "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]}}},
    "told": {"notifications": {"source": "https://cluster-1.example.com", "targets": [
        {"name": "chat", "url": "https://hooks.example.com:8443/in?k=1", "secretRef": {"name": "chat"},
         "events": ["Failed", "Stalled"], "namespaces": ["media"]},
        {"name": "inside", "url": "https://hooks.inside.svc", "secretRef": {"name": "inside", "key": "signing"},
         "caRef": {"name": "inside-ca"}, "allowedCIDRs": ["10.96.0.0/12", "fd00::/8"]}]}},
    "extended": {
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"},
                     {"name": "NO_PROXY", "valueFrom": {"configMapKeyRef": {"name": "proxy", "key": "no"}}}],
        "extraArgs": ["--id=eu-1"],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "corporate-ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ssl/corporate", "readOnly": True}],
        "podSecurityContext": {"runAsUser": 1234, "fsGroup": 1234}, "securityContext": {"runAsGroup": 1234},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]}},
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"}},
    "tuned": {"operator": {
        "workers": 64, "shards": 32, "leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "500ms",
        "qps": 50, "logLevel": "debug", "logFormat": "text"}},
}


class Helm:
    """The pinned helm. Callable: helm("lint", CHART). With `cluster` its commands act there."""

    def __init__(self, path, folder, cluster=None):
        self._path = path
        self._folder = pathlib.Path(folder)
        self._cluster = cluster

    def on(self, cluster):
        return Helm(self._path, self._folder, cluster)

    def __call__(self, *args, check=True, values=None, timeout=120):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "HELM_NAMESPACE": NAMESPACE}
        if self._cluster:
            environment["KUBECONFIG"] = str(self._cluster.kubeconfig)
        argv = [str(self._path), *map(str, args)]
        if values is not None:
            argv.append("--values=-")  # JSON is YAML
        done = subprocess.run(argv, input=json.dumps(values or {}), text=True, capture_output=True,
                              timeout=timeout, env=environment, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"helm {' '.join(map(str, args))} ended with {done.returncode}:\n{done.stderr}")
        return done

    def template(self, values=None, *flags):
        """The rendered text, hooks included."""
        return self("template", RELEASE, CHART, *flags, values=values or {}).stdout

    def objects(self, values=None, *flags):
        return [item for item in yaml.safe_load_all(self.template(values, *flags)) if item]


def pick(objects, kind, **metadata):
    """The one object of this kind, with this metadata."""
    [found] = [item for item in objects if item["kind"] == kind and
               all(item["metadata"].get(key) == value for key, value in metadata.items())]
    return found
