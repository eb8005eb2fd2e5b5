"""kubectl holdfast convert: Jobs as people have them, and the API server takes what comes out."""

import copy
import json

import pytest
import yaml

from plugin import Plugin

MAIN = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "true"]}


def batch(name, pod=None, template_metadata=None, **spec):
    template = {"spec": {"restartPolicy": "Never", "containers": [copy.deepcopy(MAIN)], **(pod or {})}}
    if template_metadata:
        template["metadata"] = template_metadata
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


DISRUPTION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
JOBS = {
    "plain": batch("plain", backoffLimit=4),
    "indexed": batch("indexed", completions=10, parallelism=3, completionMode="Indexed"),
    "limits-of-indexes": batch("limits", completions=10, parallelism=3, completionMode="Indexed",
                               backoffLimitPerIndex=1, maxFailedIndexes=5),
    "failure-policy": batch("policy", podFailurePolicy={"rules": [
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}}, DISRUPTION]}),
    "failure-policy-of-disruptions": batch("spot", podFailurePolicy={"rules": [DISRUPTION]}),
    "fail-index": batch("fail-index", completions=5, completionMode="Indexed", backoffLimitPerIndex=2, podFailurePolicy={
        "rules": [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}}]}),
    "success-policy": batch("leader", completions=4, parallelism=4, completionMode="Indexed",
                            successPolicy={"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}),
    "suspended": batch("asleep", suspend=True),
    "parallel": batch("parallel", completions=20, parallelism=5),
    "on-failure": batch("on-failure", pod={"restartPolicy": "OnFailure"}, backoffLimit=2),
    "sidecar": batch("sidecar", pod={"initContainers": [
        {"name": "proxy", "image": "envoy:1", "restartPolicy": "Always"}, {"name": "set-up", "image": "busybox"}]}),
    "times": batch("times", activeDeadlineSeconds=600, ttlSecondsAfterFinished=60),
    "replacement": batch("replacement", podReplacementPolicy="Failed"),
    "fractions": batch("fractions", pod={"containers": [MAIN | {"resources": {"requests": {"cpu": 0.5, "memory": "64Mi"}}}]}),
    "spread": batch("spread", template_metadata={"labels": {"app": "spread"}}, pod={"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
         "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": "spread"}}}]}),
    "volumes": batch("volumes", pod={"volumes": [{"name": "work", "emptyDir": {"sizeLimit": "1Gi"}}], "containers": [
        MAIN | {"volumeMounts": [{"name": "work", "mountPath": "/work"}], "envFrom": [{"secretRef": {"name": "keys"}}]}],
        "tolerations": [{"key": "spot", "operator": "Exists"}], "priorityClassName": "low"}),
    "dots": batch("nightly.v2"),
    "cron": {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": {
        "schedule": "0 3 * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": batch("x", backoffLimit=1)["spec"]}}},
}


@pytest.fixture(scope="module")
def plugin(bare_cluster):
    return Plugin(bare_cluster)


def apply(cluster, text):
    return cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=text, check=False)


@pytest.mark.parametrize("name", sorted(JOBS))
def test_the_api_server_takes_what_a_manifest_becomes(bare_cluster, plugin, name):
    result = plugin("convert", "-f", "-", input=yaml.safe_dump(JOBS[name]))
    assert result.code == 0, result.err
    print(f"\n$ kubectl holdfast convert -f {name}.yaml\n{result.err}{result.out}")
    assert all(line.startswith("differs: ") for line in result.err.splitlines())
    answer = apply(bare_cluster, result.out)
    assert answer.returncode == 0, answer.stderr
    assert "unknown field" not in answer.stderr


# The API server has filled in defaults, a selector, labels and a status by then.
@pytest.mark.parametrize("name", sorted(set(JOBS) - {"cron", "dots"}))
def test_the_api_server_takes_what_a_job_in_the_cluster_becomes(bare_cluster, plugin, name):
    bare_cluster.kubectl("create", "-f", "-", input=json.dumps(JOBS[name]))
    stored = bare_cluster.kubectl("get", "job", JOBS[name]["metadata"]["name"], "-o", "yaml").stdout
    result = plugin("convert", "-f", "-", input=stored)
    assert result.code == 0, result.err
    converted = yaml.safe_load(result.out)
    assert set(converted) == {"apiVersion", "kind", "metadata", "spec"}
    assert "uid" not in json.dumps(converted["metadata"])
    assert "selector" not in converted["spec"]
    answer = apply(bare_cluster, result.out)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(("object_", "says"), [
    (batch("queue", parallelism=4), "set spec.completions"),
    (batch("nothing", completions=0), "has nothing to do"),
    ({"apiVersion": "v1", "kind": "Pod"}, "reads a Job or a CronJob"),
], ids=["work-queue", "no-completions", "a-pod"])
def test_what_cannot_be_said_is_refused_and_says_what_to_do(plugin, object_, says):
    result = plugin("convert", "-f", "-", input=object_)
    assert result.code == 2
    assert result.out == ""
    assert says in result.err
