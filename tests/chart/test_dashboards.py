"""The dashboards and alerts of the chart, asked of a real Prometheus that scrapes a real operator."""

import json
import re

import pytest
import yaml
from chart import CHART, NAMESPACE, ROOT, pick
from dashboards import dashboards, panels, shown_objects, unanswered
from doc_pages import Page
from holdfast import Jobs, Operator, install, job, runs
from lives import BY_HAND, SHORT_BACKOFF, settle
from localcluster import wait_for
from prometheus import Prometheus, check_rules
from webhooks import serving, targets_flags

TARGET = {"namespace": NAMESPACE, "service": "holdfast", "pod": "operator-0"}
KINDS = {"stat", "timeseries", "table"}


def installed(helm, **values):
    return dashboards(helm.objects({"dashboards": {"enabled": True, **values}}))


@pytest.fixture(scope="module")
def rules(helm):
    return pick(helm.objects({"prometheusRule": {"enabled": True}}), "PrometheusRule")


@pytest.fixture(scope="module")
def receivers(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("receivers"), ["chat", "gone"]) as made:
        made["gone"].answers = [410]
        yield made


@pytest.fixture(scope="module")
def prometheus(cluster, receivers, tmp_path_factory):
    """It has scraped an operator whose jobs have succeeded, failed, waited in a queue, lost a pod, and told a target."""
    install(cluster)
    jobs = Jobs(cluster, "media")
    cluster.kubectl("apply", "-n", "media", "-f", "-", input=json.dumps(shown_objects(job("any")["spec"]["template"])))
    targets = targets_flags(tmp_path_factory.mktemp("targets"), [made.target(name) for name, made in receivers.items()])
    with Operator(cluster, *targets) as operator:
        wait_for("the first scrape to have something", lambda: operator.metrics(), 30)
        with Prometheus(tmp_path_factory.mktemp("prometheus"), [(operator.address, TARGET)]) as server:
            jobs.apply(job("waits", queue={"name": "encode"}))
            wait_for("the namespace to be scraped", lambda: server.query(
                'holdfast_namespace_jobs{exported_namespace="media"} > 0'), 60)
            jobs.apply(job("fine", annotations=runs(0), notify=["chat"]))
            jobs.apply(job("bad", annotations=runs(0, exit_code=1), backoffLimit=0, notify=["gone"]))
            jobs.apply(job("lost", pod=BY_HAND, retryBackoff=SHORT_BACKOFF))
            pod = jobs.wait_pod("lost", lambda pod: True)["metadata"]["name"]
            jobs.api("DELETE", f"/api/v1/namespaces/media/pods/{pod}")
            settle(jobs, "fine")
            settle(jobs, "bad")
            for outcome in ("Succeeded", "Failed", "Lost"):
                wait_for(f"an attempt that ended as {outcome} to be scraped", lambda: server.query(
                    f'increase(holdfast_namespace_attempts_total{{outcome="{outcome}"}}[1m]) > 0'), 60)
            wait_for("a recovery to be scraped", lambda: server.query(
                "increase(holdfast_namespace_recoveries_total[1m]) > 0"), 60)
            for metric in ('holdfast_notifications_total{target="chat",result="delivered"}',
                           'holdfast_notifications_dropped_total{target="gone"}'):
                wait_for(f"{metric} to be scraped", lambda: server.query(f"increase({metric}[1m]) > 0"), 60)
            yield server


def test_the_dashboards_are_where_the_sidecar_of_grafana_looks(helm):
    found = installed(helm, annotations={"grafana_folder": "Batch"})
    assert set(found) == {"holdfast-jobs-dashboard", "holdfast-operator-dashboard"}
    for item in found.values():
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert item["metadata"]["annotations"] == {"grafana_folder": "Batch"}
        [(name, text)] = item["data"].items()
        assert name.endswith(".json") and json.loads(text)["uid"]
    assert not [item for item in helm.objects({}) if item["kind"] == "ConfigMap"]


def test_each_panel_has_a_title_a_unit_and_says_what_it_shows(helm):
    for item in installed(helm).values():
        titles = [panel["title"] for panel in panels(item)]
        assert len(set(titles)) == len(titles) > 10
        for panel in panels(item):
            assert panel["type"] in KINDS and panel["description"].endswith("."), panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"] and panel["targets"], panel["title"]


def test_no_panel_covers_another(helm):
    for item in installed(helm).values():
        taken = set()
        for panel in panels(item):
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
            taken |= cells


def test_each_query_of_each_panel_has_an_answer(helm, prometheus):
    assert unanswered(installed(helm), prometheus) == []


def test_each_variable_has_values(helm, prometheus):
    for item in installed(helm).values():
        [text] = item["data"].values()
        asked = [variable["definition"] for variable in json.loads(text)["templating"]["list"]
                 if variable["type"] == "query"]
        assert asked
        for definition in asked:
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", definition).groups()
            assert [one for one in prometheus.query(metric) if one["metric"].get(label)], definition


def test_no_panel_asks_for_a_metric_that_nobody_has(helm, prometheus):
    """A query that adds an unknown metric to a known one would have an answer too."""
    known = prometheus.names()
    for item in installed(helm).values():
        for panel in panels(item):
            for target in panel["targets"]:
                asked = set(re.findall(r"\b(\w+)\{", target["expr"]))
                assert asked and asked <= known, (panel["title"], asked - known)


def test_promtool_accepts_the_rules(rules, tmp_path):
    assert "SUCCESS" in check_rules(rules, tmp_path)


def test_the_alerts_answer_and_only_failed_jobs_fire(rules, prometheus):
    fired = {rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"]
             if prometheus.query(rule["expr"])}
    assert fired == {"HoldfastJobsFailed"}
    [failed] = prometheus.query(next(rule["expr"] for group in rules["spec"]["groups"] for rule in group["rules"]
                                     if rule["alert"] == "HoldfastJobsFailed"))
    assert failed["metric"] == {"exported_namespace": "media"} and failed["value"][1] == "1"


def alerts(helm, **values):
    """All of them: those of the rescue come with it."""
    chosen = {"prometheusRule": {"enabled": True, **values}, "rescue": {"mode": "on"}}
    groups = pick(helm.objects(chosen), "PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("docs", ["", "https://docs.example.com/holdfast"])
def test_each_alert_links_to_a_section_that_exists(helm, docs):
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    sections = Page(ROOT / "docs/runbooks.md").anchors
    for rule in alerts(helm, docsUrl=docs):
        page, _, section = rule["annotations"]["runbook_url"].partition("#")
        assert page == (docs or f"https://holdfast.dev/docs/v{version}") + "/runbooks.html"
        assert section == rule["alert"].lower() and section in sections


def test_the_chart_and_the_operator_link_to_the_same_pages():
    base = re.search(r'kDocs = "(.*)" HOLDFAST_VERSION', (ROOT / "api/docs_link.cc").read_text())[1]
    assert f'"{base}%s"' in (CHART / "templates/prometheusrule.yaml").read_text()


def minutes(text):
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]] / 60 if text else 0


def test_each_runbook_has_its_parts_and_at_most_three_commands(helm):
    """A reader at night looks for the same words in the same order."""
    parts = re.split(r"^## (Holdfast\w+)$", (ROOT / "docs/runbooks.md").read_text(), flags=re.MULTILINE)[1:]
    books = dict(zip(parts[::2], parts[1::2]))
    assert set(books) == {rule["alert"] for rule in alerts(helm)}
    for rule in alerts(helm):
        text = books[rule["alert"]]
        said = re.findall(r"\*\*(Severity|Meaning|Impact|Fix|Until morning)\*\*", text)
        assert said == ["Severity", "Meaning", "Impact", "Fix", "Until morning"], rule["alert"]
        assert f"**Severity** {rule['labels']['severity']}, " in text, rule["alert"]
        told = re.search(r"\*\*Severity\*\* \w+, after (\d+) minutes?", text)
        # Some expressions look back, or have a time of their own.
        assert (int(told[1]) if told else 0) >= minutes(rule.get("for", "")), rule["alert"]
        [block] = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        commands = re.findall(r"^kubectl|^helm", block, re.MULTILINE)
        assert 1 <= len(commands) <= 3, rule["alert"]
