"""Where the tools of the local cluster come from, and what a person who waits for a build is told."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys

import pytest
from chart import ROOT
from localcluster import tools

PLAN = [("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
        ("kube-apiserver", "kubernetes-1.34.4", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kubectl", "kubernetes-1.34.4", "k8s.io/kubernetes/cmd/kubectl")]
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
OTHER_MACHINE = {"amd64": "arm64", "arm64": "amd64"}[MACHINE]


@pytest.fixture(autouse=True)
def nothing_is_there(monkeypatch, tmp_path):
    """No cache, no download of setup-envtest, no folder of ready-made binaries."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


def put(folder, *names, mode=0o755):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(mode)
    return folder


def envtest(tmp_path, version, machine=MACHINE):
    return tmp_path / f"data/kubebuilder-envtest/k8s/{version}-linux-{machine}"


def test_nothing_is_found_where_nothing_is():
    assert tools.find_tools(PLAN) == {}
    assert tools.envtest_folders(34) == []


def test_a_tool_that_was_built_is_found_under_the_hash_of_its_pins():
    folder = put(tools.module_dir("etcd"), "etcd")
    assert tools.find_tools(PLAN) == {"etcd": folder / "etcd"}


def test_ready_made_binaries_are_used_before_those_that_were_built(monkeypatch, tmp_path):
    put(tools.module_dir("etcd"), "etcd")
    built = put(tools.module_dir("kubernetes-1.34.4"), "kubectl")
    assets = put(tmp_path / "assets", "etcd", "kube-apiserver")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert tools.find_tools(PLAN) == {"etcd": assets / "etcd", "kube-apiserver": assets / "kube-apiserver",
                                      "kubectl": built / "kubectl"}


def test_what_setup_envtest_has_downloaded_is_used_where_nothing_was_built(tmp_path):
    downloaded = put(envtest(tmp_path, "1.34.1"), "etcd", "kube-apiserver", "kubectl")
    built = put(tools.module_dir("etcd"), "etcd")
    found = tools.find_tools(PLAN)
    assert found == {"etcd": built / "etcd", "kube-apiserver": downloaded / "kube-apiserver",
                     "kubectl": downloaded / "kubectl"}


def test_of_the_downloads_the_newest_of_the_minor_version_and_the_machine_comes_first(tmp_path):
    for version in ("1.34.2", "1.34.10", "1.34.9", "1.33.12", "1.3.4"):
        put(envtest(tmp_path, version), "etcd")
    put(envtest(tmp_path, "1.34.11", OTHER_MACHINE), "etcd")
    put(envtest(tmp_path, "1.34.x"), "etcd")
    assert [folder.name for folder in tools.envtest_folders(34)] == [
        f"1.34.{patch}-linux-{MACHINE}" for patch in (10, 9, 2)]


def test_without_a_tool_of_kubernetes_no_download_counts(tmp_path):
    put(envtest(tmp_path, "1.34.1"), "etcd")
    assert tools.find_tools(PLAN[:1]) == {}


def test_what_cannot_be_run_is_not_found(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(put(tmp_path / "assets", "etcd", mode=0o644)))
    (tmp_path / "assets/kubectl").mkdir()
    assert tools.find_tools(PLAN) == {}


class Clock:
    """Each look is so many seconds later."""

    def __init__(self, step):
        self.now, self.step = 0, step

    def monotonic(self):
        self.now += self.step
        return self.now


class Build:
    """A `go build -v` that prints these lines."""

    def __init__(self, lines):
        self.stdout, self.waited = iter(lines), False

    def wait(self):
        self.waited = True


def follow(monkeypatch, lines, packages, step):
    said = []
    monkeypatch.setattr(tools, "time", Clock(step))
    monkeypatch.setattr(tools.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(
        command, 0, "\n".join(f"package/{number}" for number in range(packages)) + "\n", ""))
    build = Build(lines)
    output = tools._follow(build, "etcd", {"etcd": "go.etcd.io/etcd/server/v3"}, {}, said.append)
    assert build.waited
    return said, output


def test_a_build_says_every_fifteen_seconds_how_far_it_is(monkeypatch):
    said, output = follow(monkeypatch, [f"package/{number}\n" for number in range(40)], 80, step=5)
    assert output.count("\n") == 40
    assert len(said) == 40 * 5 // tools.PROGRESS_SECONDS
    assert said[0] == ("tools: etcd: 3 of at most 80 packages compiled, at most 6 min more and the linking")
    assert "39 of at most 80 packages compiled, at most 3 min more" in said[-1]


def test_what_is_no_package_does_not_count_and_is_kept(monkeypatch):
    lines = ["# holdfast.dev/x\n", "./main.go:3:1: syntax error\n", "go: downloading a v1\n", "package/1\n"]
    said, output = follow(monkeypatch, lines, 2, step=tools.PROGRESS_SECONDS)
    assert output == "".join(lines)
    assert "0 of at most 2 packages" in said[0] and "1 of at most 2 packages" in said[-1]


def test_a_build_of_more_than_was_listed_never_has_less_than_nothing_left(monkeypatch):
    said, _ = follow(monkeypatch, ["package/1\n"] * 9, 0, step=tools.PROGRESS_SECONDS)
    assert all("at most 0 min more" in line for line in said[1:])


# ---- hack/progress: the same for a build by ninja or Docker.


@pytest.fixture(scope="module")
def progress():
    loader = importlib.machinery.SourceFileLoader("progress", str(ROOT / "hack/progress"))
    spec = importlib.util.spec_from_loader("progress", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_progress_is_read_from_the_steps_of_ninja_and_of_docker(progress):
    known = progress.Progress(5, now=0)
    assert known.text(30) == "30 s so far, about 5 min the first time"
    known.read("-- Configuring done", 10)
    known.read("[1/164] Building CXX object core/json.cc.o", 10)
    known.read("[41/164] Building CXX object core/time.cc.o", 110)
    assert known.text(120) == "step 41 of 164 after 120 s, about 6 min more"
    # Docker counts its own steps first. Another count begins anew.
    known = progress.Progress(5, now=0)
    known.read("#7 [build 3/9] COPY core core", 30)
    known.read("#12 60.1 [ 2/100] Building CXX object core/json.cc.o", 60)
    known.read("#12 80.1 [ 50/100] Building CXX object core/time.cc.o", 80)
    assert known.text(80) == "step 50 of 100 after 80 s, less than 1 min more"


def test_progress_reports_while_the_command_runs_and_keeps_quiet_about_its_output(progress):
    said = []
    script = "import time; print('[1/2] a', flush=True); time.sleep(1)"
    assert progress.run("C++", 5, [sys.executable, "-c", script], said.append, every=0.1) == 0
    assert said[0] == "==> C++: about 5 min the first time"
    assert any("C++: step 1 of 2" in line for line in said[1:-1])
    assert re.fullmatch(r"==> C\+\+: [0-9]+ s", said[-1])


def test_progress_shows_the_end_of_what_fails_and_passes_its_code_on(progress):
    said = []
    assert progress.run("C++", 5, ["sh", "-c", "echo error: no; exit 3"], said.append) == 3
    assert said[1] == "error: no" and "FAILED" in said[2]


# ---- What the demo installs.


def test_the_demo_installs_what_the_image_is_built_with_and_nothing_for_tests():
    script = (ROOT / "hack/setup").read_text()
    demo = set(re.search(r"^packages=\(\n(.*?)^\)", script, re.MULTILINE | re.DOTALL)[1].split())
    image = re.search(r"apt-get install -y --no-install-recommends(.*?)\nWORKDIR", (ROOT / "Dockerfile").read_text(),
                      re.DOTALL)[1].replace("\\", " ").split()
    # jq makes the image's list of packages.
    assert set(image) - {"jq"} <= demo
    assert not [name for name in demo if re.search("gtest|gmock|benchmark|clang|pytest", name)]
