"""The alerts speak of metrics that the operator has, with its own labels and buckets."""

import json
import re

import pytest
from chart import pick
from holdfast import Operator, install, job
from localcluster import wait_for

# PromQL's own words.
FUNCTIONS = {"absent", "and", "by", "exported_namespace", "histogram_quantile", "increase", "le", "max", "max_over_time", "min", "pool",
             "queue", "rate", "sum", "target"}
ALERTS = {"HoldfastJobPastItsDeadline", "HoldfastRecoveryOverItsBound", "HoldfastNobodyAtWork", "HoldfastWatchStale",
          "HoldfastQueueAdmitsNothing", "HoldfastJobsFailed", "HoldfastQueueWaitsLong", "HoldfastPoolGivesNoSlot",
          "HoldfastNotificationsFail", "HoldfastGuardMissing"}


@pytest.fixture(scope="module")
def rules(helm):
    rule = pick(helm.objects({"prometheusRule": {"enabled": True}}), "PrometheusRule")
    return {rule["alert"]: rule["expr"] for group in rule["spec"]["groups"] for rule in group["rules"]}


@pytest.fixture(scope="module")
def samples(cluster, tmp_path_factory):
    """The names and labels of a running operator's /metrics, while a job waits in a queue beside a pool, and there is
    a target of notifications."""
    targets = tmp_path_factory.mktemp("targets") / "targets.json"
    targets.write_text(json.dumps({"targets": [
        {"name": "chat", "url": "https://hooks.example.com/", "secretFile": "/nowhere"}]}))
    install(cluster)
    queue = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "JobQueue", "metadata": {"name": "encode"},
             "spec": {"hold": True}}
    waits = job("waits", queue={"name": "encode"})
    pool = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": "small"},
            "spec": {"minWorkers": 0, "template": waits["spec"]["template"]}}
    items = {"apiVersion": "v1", "kind": "List", "items": [queue, waits, pool]}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(items))
    with Operator(cluster, f"--notifications={targets}") as operator:
        wait_for("the metrics of queue and pool", lambda: all(
            any(kind in name for name in operator.metrics()) for kind in ("holdfast_queue_", "holdfast_pool_")), 30)
        return list(operator.metrics())


def test_there_is_an_alert_for_each_promise(rules):
    assert ALERTS <= set(rules)


def test_every_metric_of_an_alert_is_one_that_the_operator_has(rules, samples):
    known = {sample.partition("{")[0] for sample in samples}
    asked = {alert: set(re.findall(r"[a-z_]{2,}", re.sub(r"\{[^}]*\}|\[\w+\]", "", text))) - FUNCTIONS
             for alert, text in rules.items()}
    assert all(asked.values())
    assert {alert: names - known for alert, names in asked.items() if names - known} == {}


def test_every_label_of_an_alert_is_one_that_its_metric_has(rules, samples):
    """namespace and service are Prometheus' own, of the target."""
    for text in rules.values():
        for metric, selector in re.findall(r"([a-z_]+)\{([^}]*)\}", text):
            labels = dict(re.findall(r'(\w+)=~?"([^"]*)"', selector))
            assert labels.pop("namespace") and labels.pop("service")
            series = [sample for sample in samples if sample.startswith(metric)]
            for label, values in labels.items():
                for value in values.split("|"):
                    assert any(f'{label}="{value}"' in sample for sample in series), (metric, label, value)


def test_the_wait_in_a_queue_that_fires_is_a_value_of_the_chart(helm):
    rendered = helm.template({"prometheusRule": {"enabled": True, "queueWaitSeconds": 90}})
    assert re.search(r"holdfast_queue_oldest_wait_seconds.* > 90$", rendered, re.MULTILINE)
    assert "3600" not in rendered


@pytest.mark.parametrize("window", [15, 40, 60, 119, 300, 600])
def test_the_bound_of_recovery_is_the_next_bucket_of_the_histogram(helm, samples, window):
    rendered = helm.template({"prometheusRule": {"enabled": True, "lostAfterSeconds": window}})
    buckets = {float(found[1]) for found in (re.search(r'recovery_seconds_bucket.*le="([\d.]+)"', sample)
                                             for sample in samples) if found}
    bound = re.search(r"holdfast_recovery_seconds_bucket.* > (\d+)$", rendered, re.MULTILINE)[1]
    assert float(bound) == min(bucket for bucket in buckets if bucket >= window + 1)
