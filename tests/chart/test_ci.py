"""The workflow cannot be run here; what can be said of it without is said."""

import re

import pytest
import yaml
from chart import ROOT
from localcluster.tools import k8s_versions


@pytest.fixture(scope="module")
def jobs():
    return yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())["jobs"]


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_every_make_in_it_names_a_target(jobs):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in jobs.values():
        called = [word for command in commands(job) for word in re.findall(r"make ([a-z0-9-]+)", command)]
        assert called and set(called) <= targets, set(called) - targets


def test_every_kubernetes_that_is_pinned_is_tested(jobs):
    assert sorted(jobs["test"]["strategy"]["matrix"]["k8s"]) == k8s_versions()


def test_real_nodes_are_of_the_same_minor_versions(jobs):
    def minors(versions):
        return sorted(version.lstrip("v").rpartition(".")[0] for version in versions)

    nodes = [entry["node"] for entry in jobs["e2e"]["strategy"]["matrix"]["include"]]
    assert minors(nodes) == minors(jobs["test"]["strategy"]["matrix"]["k8s"])
