"""Pod templates that the benchmarks give to jobs, for DurableJobs and batch/v1 Jobs alike.

What the API server does for a job depends on its template's size. `tiny` is the least that is valid.
`realistic` has 2.5 KB of JSON: two containers, variables, resources, volumes and probes.
"""

import copy

from holdfast import job, runs


def _variable(name, value):
    return {"name": name, "value": value}


def _secret(name, secret, key):
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _probe(path, port, period):
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}, "periodSeconds": period,
            "timeoutSeconds": 2, "failureThreshold": 3}


# The requests are small, so that the simulated nodes are never full.
def _resources(cpu, memory):
    return {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"cpu": cpu, "memory": memory}}


_HARDENED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True,
             "capabilities": {"drop": ["ALL"]}}

_MAIN = {
    "name": "main", "image": "registry.example.com/media/transcoder:2.14.3", "imagePullPolicy": "IfNotPresent",
    "command": ["/usr/local/bin/transcode", "--config=/etc/transcoder/config.yaml"],
    "args": ["--input=s3://media-in/2026/11/part-0042.mxf", "--output=s3://media-out/2026/11/", "--threads=4"],
    "env": [_variable("LOG_LEVEL", "info"), _variable("REGION", "eu-central-1"),
            _variable("OUTPUT_PROFILES", "2160p,1080p,720p,audio"),
            _variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel-collector.monitoring:4317"),
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            _secret("DATABASE_URL", "transcoder-db", "url"), _secret("S3_SECRET_KEY", "transcoder-s3", "secret-key")],
    "resources": _resources("2", "2Gi"),
    "ports": [{"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
    "livenessProbe": _probe("/healthz", 9090, 20), "readinessProbe": _probe("/readyz", 9090, 10),
    "volumeMounts": [{"name": "config", "mountPath": "/etc/transcoder", "readOnly": True},
                     {"name": "scratch", "mountPath": "/scratch"}],
    "securityContext": _HARDENED,
}
_LOGS = {
    "name": "logs", "image": "registry.example.com/platform/log-shipper:1.8.0", "args": ["--path=/scratch/logs"],
    "env": [_variable("CLUSTER", "prod-eu-1")], "resources": _resources("100m", "128Mi"),
    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "readOnly": True}],
    "securityContext": _HARDENED,
}
_REALISTIC = {
    "metadata": {"labels": {"app.kubernetes.io/name": "transcoder", "app.kubernetes.io/part-of": "media",
                            "team": "video"},
                 "annotations": {**runs(0), "prometheus.io/scrape": "true", "prometheus.io/port": "9090"}},
    "spec": {
        "containers": [_MAIN, _LOGS], "serviceAccountName": "default", "terminationGracePeriodSeconds": 60,
        "securityContext": {"runAsUser": 10001, "fsGroup": 10001},
        "volumes": [{"name": "config", "configMap": {"name": "transcoder-config"}},
                    {"name": "scratch", "emptyDir": {"sizeLimit": "10Gi"}}],
        "tolerations": [{"key": "batch", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
    },
}
_BY_NAME = {"tiny": job("x", annotations=runs(0))["spec"]["template"], "realistic": _REALISTIC}
NAMES = tuple(_BY_NAME)


def template(name="tiny", ends=True):
    """A copy of its own. `ends`: its simulated pods end as soon as they run, else never."""
    found = copy.deepcopy(_BY_NAME[name])
    if not ends:
        for key in runs(0):
            del found["metadata"]["annotations"][key]
    return found
