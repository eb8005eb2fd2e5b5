"""The dashboards of the chart: their panels and queries, as Grafana would ask them."""

import json

# What Grafana puts in; the time range is wider than a test is long.
VARIABLES = {"$__rate_interval": "1m", "$__range": "10m", "$namespace": ".*", "$job": ".*"}


def dashboards(objects):
    """{name: ConfigMap} of the dashboards among these objects."""
    return {item["metadata"]["name"]: item for item in objects
            if item["kind"] == "ConfigMap" and item["metadata"]["name"].endswith("-dashboard")}


def panels(config_map):
    [text] = config_map["data"].values()
    return [panel for panel in json.loads(text)["panels"] if panel["type"] != "row"]


def with_values(expr):
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    assert "$" not in expr, expr
    return expr


def unanswered(found, prometheus):
    """[(panel, query)] of what has no answer, over all these dashboards."""
    return [(panel["title"], target["expr"]) for item in found.values() for panel in panels(item)
            for target in panel["targets"] if not prometheus.query(with_values(target["expr"]))]


def shown_objects(template):
    """A queue that admits nothing and an empty pool: some panels are about such objects."""
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "holdfast.dev/v1alpha1", "kind": "JobQueue", "metadata": {"name": "encode"},
         "spec": {"hold": True}},
        {"apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": "small"},
         "spec": {"minWorkers": 0, "template": template}}]}
