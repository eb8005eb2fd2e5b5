"""The workflows cannot be run here; what can be said of them without is said."""

import json
import re
import subprocess

import pytest
import yaml
from chart import ROOT
from localcluster.tools import k8s_versions


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))


def workflow(name):
    return yaml.safe_load((ROOT / f".github/workflows/{name}.yaml").read_text())


@pytest.fixture(scope="module")
def jobs():
    return workflow("ci")["jobs"]


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_make_in_it_names_a_target(path):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {word for job in yaml.safe_load(path.read_text())["jobs"].values() for command in commands(job)
              for word in re.findall(r"make ([a-z0-9-]+)", command)}
    assert called and called <= targets, called - targets


def test_every_kubernetes_that_is_pinned_is_tested(jobs):
    assert sorted(jobs["test"]["strategy"]["matrix"]["k8s"]) == k8s_versions()


def test_real_nodes_are_of_the_same_minor_versions(jobs):
    def minors(versions):
        return sorted(version.lstrip("v").rpartition(".")[0] for version in versions)

    nodes = [entry["node"] for entry in jobs["e2e"]["strategy"]["matrix"]["include"]]
    assert minors(nodes) == minors(jobs["test"]["strategy"]["matrix"]["k8s"])


def test_each_push_runs_clang_tidy(jobs):
    [job] = [job for job in jobs.values() if "make tidy" in commands(job)]
    assert "if" not in job


def test_each_night_runs_the_unit_tests_under_each_sanitizer():
    nightly = workflow("nightly")
    assert nightly[True]["schedule"]  # YAML reads the key `on` as true
    job = nightly["jobs"]["sanitize"]
    assert "make unit PRESET=${{ matrix.preset }}" in commands(job)
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    sanitizers = [preset["name"] for preset in presets if "HOLDFAST_SANITIZE" in preset.get("cacheVariables", {})]
    assert sorted(job["strategy"]["matrix"]["preset"]) == sorted(sanitizers)


def test_each_night_runs_the_tests_that_wait_for_minutes():
    assert any("make test-long" in commands(job) for job in workflow("nightly")["jobs"].values())


@pytest.mark.parametrize("target", ["check-format", "tidy"])
def test_a_check_of_no_files_fails(target, tmp_path):
    """Git refuses to list a tree of another user, as in a container. The check must not pass then."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1)
    script = recipe.strip().lstrip("@").replace("$(BUILD)", "build").replace("$$", "$")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode != 0
