"""What the chart's values make of the guard."""

import itertools
import re
import shutil
import textwrap

import pytest
import yaml
from chart import CHART, ROOT

KINDS = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
SHIPPED = list(yaml.safe_load_all((CHART / "files/guard.yaml").read_text()))


def guard_of(objects):
    return [item for item in objects if item["kind"] in KINDS and item["metadata"]["name"].startswith("holdfast-guard-")]


def specs_of(objects):
    return {(item["kind"], item["metadata"]["name"]): item["spec"] for item in objects}


def flag_of(objects):
    [operator] = [item for item in objects if item["kind"] == "Deployment"]
    [flag] = [flag for flag in operator["spec"]["template"]["spec"]["containers"][0]["args"] if "guard" in flag]
    return flag


@pytest.mark.parametrize("enabled,required", itertools.product([True, False], repeat=2))
def test_the_guard_is_installed_if_enabled_and_looked_for_if_required(helm, enabled, required):
    objects = helm.objects({"guard": {"enabled": enabled, "required": required}})
    shown = guard_of(objects)
    assert specs_of(shown) == (specs_of(SHIPPED) if enabled else {})
    assert flag_of(objects) == f"--require-guard={str(required).lower()}"


def test_by_default_it_is_there_and_required(helm):
    objects = helm.objects()
    assert len(guard_of(objects)) == len(SHIPPED) == 4 and flag_of(objects) == "--require-guard=true"


def test_its_version_is_that_of_the_operator(helm):
    """An operator of an earlier version goes on with it."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert {item["metadata"]["annotations"]["holdfast.dev/version"] for item in guard_of(helm.objects())} == {version}
    [built] = re.findall(r"(?m)^project\(holdfast VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert built == version


@pytest.fixture(scope="module")
def chart_with_notes(tmp_path_factory):
    """A copy of the chart that renders its notes as a ConfigMap: helm shows notes only beside an API server."""
    copy = tmp_path_factory.mktemp("notes") / "holdfast"
    shutil.copytree(CHART, copy)
    notes = textwrap.indent((copy / "templates/NOTES.txt").read_text(), 4 * " ")
    (copy / "templates/notes.yaml").write_text(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: notes}}\ndata:\n  notes: |\n{notes}")
    return copy


@pytest.mark.parametrize("values,is_said", [
    ({"enabled": False}, True), ({"enabled": False, "required": False}, False), ({}, False)])
def test_a_release_that_starts_nothing_by_itself_says_so(helm, chart_with_notes, values, is_said):
    text = helm("template", "x", chart_with_notes, "--show-only", "templates/notes.yaml", values={"guard": values}).stdout
    notes = yaml.safe_load(text)["data"]["notes"]
    assert "Run your first job" in notes
    assert ("No job starts until" in notes) == is_said
