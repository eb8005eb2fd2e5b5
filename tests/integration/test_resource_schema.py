"""The definition: documented, bounded, small enough for kubectl, and as its generators make it."""

import json
import re
import subprocess

import pytest
import yaml
from crd_sources import policy_rules
from resource_api import CRD_PATH, PHASES, ROOT, accepted, crd, explained, fields_of, schema_of, status

VERSION = crd()["spec"]["versions"][0]
SPEC = dict(fields_of(schema_of("spec"), "spec"))
STATUS = dict(fields_of(schema_of("status"), "status"))
REQUIRED = {
    "spec.workerPool.name",
    "spec.queue.name",
    "spec.podFailurePolicy.rules",
    "spec.podFailurePolicy.rules[].action",
    "spec.podFailurePolicy.rules[].onExitCodes.operator",
    "spec.podFailurePolicy.rules[].onExitCodes.values",
    "spec.podFailurePolicy.rules[].onPodConditions[].type",
    "spec.successPolicy.rules",
    "spec.stages[].name",
}
# The operator has these defaults, because a rule has to see whether the field is there.
DEFAULTS = {
    "spec.completions": "1",
    "spec.heartbeat.leaseDurationSeconds": "30",
    "spec.parallelism": "1",
    "spec.backoffLimit": "6, or no limit with backoffLimitPerIndex",
    "spec.podFailurePolicy.rules[].deferSeconds": "60",
    "spec.podFailurePolicy.rules[].deferLimit": "1000",
}
# Of the longest lists and texts.
LONGEST = {
    "spec.payload": 65536,
    "status.stages": 17,
    "status.runs": 1000,
    "status.outbox": 32,
    "spec.podFailurePolicy.rules": 20,
    "spec.podFailurePolicy.rules[].onPodConditions": 20,
    "spec.podFailurePolicy.rules[].onExitCodes.values": 255,
    "spec.successPolicy.rules": 20,
    "spec.indexes": 131072,
    "spec.successPolicy.rules[].succeededIndexes": 65536,
    "status.completedIndexes": 600000,
    "status.failedIndexes": 600000,
}


def in_spec(path):
    """A stage has most fields of spec, with the same meaning and limits."""
    return path if path in REQUIRED | DEFAULTS.keys() else path.replace("spec.stages[].", "spec.")


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, check=False)


# -- generated files ----------------------------------------------------------------------------


def test_the_definition_is_up_to_date_with_its_source_and_the_api_server(pinned_kubernetes, bare_cluster, tmp_path):
    document = tmp_path / "openapi.json"
    code, answer = bare_cluster.api("GET", "/openapi/v3/api/v1")
    assert code == 200
    document.write_text(json.dumps(answer))
    result = run(ROOT / "hack/generate-crd", "--check", "--openapi", document)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_generator_says_when_the_definition_is_out_of_date(pinned_kubernetes, bare_cluster, tmp_path):
    _, answer = bare_cluster.api("GET", "/openapi/v3/api/v1")
    pod_spec = answer["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]
    pod_spec["properties"]["brandNew"] = {"type": "string"}
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(answer))
    result = run(ROOT / "hack/generate-crd", "--check", "--openapi", document)
    assert result.returncode != 0
    assert "is out of date: run hack/generate-crd" in result.stderr
    assert "brandNew" in result.stdout


def test_the_api_reference_is_up_to_date_with_the_definition():
    result = run(ROOT / "hack/generate-api-docs", "--check")
    assert result.returncode == 0, result.stderr


# -- size ---------------------------------------------------------------------------------------


def test_the_definition_is_smaller_than_250_kilobytes():
    """As JSON, as a plain apply keeps it in an annotation; all annotations together have at most 262,144 bytes."""
    assert len(json.dumps(crd(), separators=(",", ":"), ensure_ascii=False).encode()) < 250_000


def test_a_plain_apply_takes_the_definition_and_takes_it_again(api):
    for _ in range(2):
        result = api.kubectl("apply", "-f", CRD_PATH)
        assert result.returncode == 0, result.stderr
    code, answer = api.cluster.api(
        "GET",
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd()['metadata']['name']}",
    )
    assert code == 200
    assert "kubectl.kubernetes.io/last-applied-configuration" in answer["metadata"]["annotations"]
    conditions = {each["type"]: each["status"] for each in answer["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions


# -- documentation ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SPEC)
def test_every_spec_field_is_documented_with_unit_default_and_what_may_change(path):
    field, text = SPEC[path], SPEC[path]["description"]
    path = in_spec(path)
    assert re.search(r"(Mutable|Immutable|While suspended|One way)\.$", text)
    if field["type"] == "integer" and path != "spec.queue.priority":
        assert re.search(r"Unit: (seconds|attempts|times|percent|runs)\.", text)
    assert ("Required. " in text) if path in REQUIRED else ("Default: " in text)
    if path in DEFAULTS:
        assert f"Default: {DEFAULTS[path]}." in text
    elif "default" in field and field["type"] != "object":
        default = field["default"]
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        assert f"Default: {shown}." in text
    elif path not in REQUIRED and field["type"] != "object":
        assert "Default: none" in text


@pytest.mark.parametrize("path", STATUS)
def test_every_status_field_is_documented(path):
    assert STATUS[path]["description"].endswith(".")


def test_nothing_below_the_template_carries_a_description():
    template = schema_of("spec")["properties"]["template"]
    assert "description" in template

    def descriptions(schema):
        for name, value in schema.items():
            if name == "properties":
                for field in value.values():
                    yield from descriptions(field)
            elif isinstance(value, dict):
                yield from descriptions(value)
            elif name == "description":
                yield value

    assert list(descriptions(template)) == [template["description"]]


@pytest.mark.parametrize(
    "path", ["spec", "spec.retryBackoff", "spec.heartbeat", "spec.podFailurePolicy", "spec.successPolicy", "status",
             "status.waiting"]
)
def test_kubectl_explain_shows_every_field_with_its_description(api, path):
    shown = explained(api, f"dj.{path}")
    words = " ".join(shown.split())
    for name, field in {**SPEC, **STATUS}.items():
        parent, _, child = name.rpartition(".")
        if parent == path:
            assert re.search(rf"^  {child}\t<", shown, re.M), name
            # Lines are broken at hyphens too.
            text = re.sub(r"- ", "-", " ".join(field["description"].split()))
            assert text in re.sub(r"- ", "-", words), name


# -- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*SPEC, *STATUS])
def test_every_field_of_ours_is_bounded(path):
    field = {**SPEC, **STATUS}[path]
    if field["type"] == "integer":
        # Beyond 2^53 a JSON number is not exact, and a bound there is not kept.
        assert -(2**53) < field["minimum"] <= field["maximum"] < 2**53
    elif field["type"] == "string":
        assert "enum" in field or field["maxLength"] <= LONGEST.get(in_spec(path), 32768)
    elif field["type"] == "array":
        assert field["maxItems"] <= LONGEST.get(in_spec(path), 16)
    else:
        assert field["type"] in ("boolean", "object")


def test_every_rule_says_what_to_do():
    def rules(schema):
        if isinstance(schema, dict):
            yield from schema.get("x-kubernetes-validations", [])
            for value in schema.values():
                yield from rules(value)
        elif isinstance(schema, list):
            for value in schema:
                yield from rules(value)

    found = list(rules(VERSION["schema"]))
    found += policy_rules()["DurableJob"]
    assert len(found) >= 20
    for rule in found:
        assert len(rule["message"]) > 20, rule


# -- names and columns --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dj", "djob", "durablejob", "durablejobs", "durablejobs.holdfast.dev"])
def test_the_resource_is_found_by_all_its_names(api, name):
    assert api.kubectl("get", name).returncode == 0


def test_the_resource_is_in_the_category_all(api):
    name = api.job_in("Running")["metadata"]["name"]
    assert f"durablejob.holdfast.dev/{name}" in api.kubectl("get", "all").stdout


def columns_of(api, name, *flags):
    """{column: cell} of `kubectl get` for one job; columns are cut where the header has them."""
    header, row = api.kubectl("get", "dj", name, *flags).stdout.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", header)]
    ends = [*starts[1:], None]
    return {header[a:b].strip(): row[a:b].strip() for a, b in zip(starts, ends)}


@pytest.mark.parametrize("phase", PHASES)
def test_get_prints_phase_completions_attempt_waiting_failures_and_age(api, phase):
    current = api.job_in(phase)
    columns = columns_of(api, current["metadata"]["name"])
    assert list(columns) == [
        "NAME", "PHASE", "COMPLETIONS", "STAGE", "ATTEMPT", "WAITING", "FAILURES", "AGE", "PROGRESS",
    ]
    assert columns["PHASE"] == phase
    assert columns["COMPLETIONS"] == current["status"]["completions"]
    assert columns["WAITING"] == current["status"].get("waiting", {}).get("reason", "")
    assert (columns["ATTEMPT"], columns["FAILURES"]) == ("1", "1")


def test_get_wide_adds_node_deadline_disruptions_and_the_two_ends_of_the_duration(api):
    current = api.job_in("Running")
    run = {"index": 0, "attempt": 1, "nodeName": "node-1"}
    current = accepted(api.put_status(current, status("Running", runs=[run], disruptions=4)))
    assert columns_of(api, current["metadata"]["name"], "-o", "wide")["NODE"] == "node-1"
    current = accepted(api.put_status(current, status("Succeeded", disruptions=4)))
    columns = columns_of(api, current["metadata"]["name"], "-o", "wide")
    assert list(columns)[8:] == ["NODE", "DEADLINE", "DISRUPTIONS", "STARTED", "COMPLETED", "PROGRESS"]
    assert columns["DISRUPTIONS"] == "4"
    assert columns["STARTED"] and columns["COMPLETED"]


def test_the_definition_is_plain_yaml_without_anchors():
    text = CRD_PATH.read_text()
    assert not any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text))
