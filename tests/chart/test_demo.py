"""What `make demo` and `make e2e` check before they build anything, and what they say of a step that fails."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess

import pytest
from chart import ROOT
from localcluster import ClusterError, tools

# Docker and kind as far as hack/kind/up asks them: each call is a line in the log. What FAILS matches fails.
FAKE = """#!/bin/bash
echo "${0##*/} $*" >>"$LOG"
if [[ -n $FAILS && "${0##*/} $*" =~ $FAILS ]]; then echo "no luck" >&2; exit 1; fi
[[ "$*" != "get clusters" ]] || echo "$CLUSTERS"
"""


@pytest.fixture
def up(tmp_path):
    """Runs hack/kind/up and returns its exit code, its lines on stderr and the calls of Docker and kind."""
    for name in ("docker", "kind"):
        (tmp_path / name).write_text(FAKE)
        (tmp_path / name).chmod(0o755)

    def run(*arguments, fails="^docker image inspect", clusters="", **variables):
        log = tmp_path / "log"
        log.write_text("")
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "LOG": str(log),
                       "FAILS": fails, "CLUSTERS": clusters} | variables
        done = subprocess.run([ROOT / "hack/kind/up", *arguments], env=environment, capture_output=True, text=True,
                              check=False, timeout=60)
        return done.returncode, done.stderr.splitlines(), log.read_text().splitlines()

    return run


def called(calls, start):
    return [call for call in calls if call.startswith(start)]


@pytest.mark.parametrize("version", ["1.36.3", "v1.36.3"])
def test_a_version_is_taken_with_and_without_its_v(up, version):
    code, _, calls = up("test", HOLDFAST_K8S=version)
    assert code == 0
    [create] = called(calls, "kind create cluster")
    assert create.endswith("--image kindest/node:v1.36.3")
    # The node image is there before the long build begins.
    assert calls.index("docker pull --quiet kindest/node:v1.36.3") < calls.index(called(calls, "docker build")[0])


@pytest.mark.parametrize("version", ["1.34", "vv1.34.4", "latest", "1.34.4; x"])
def test_what_is_no_version_is_refused_before_anything_is_built(up, version):
    code, lines, calls = up("test", HOLDFAST_K8S=version)
    assert (code, calls) == (1, [])
    assert lines == [f"hack/kind/up: HOLDFAST_K8S is '{version}': give a version such as 1.34.4 or v1.34.4, or unset it"]


def test_what_is_no_name_is_refused_before_anything_is_built(up):
    code, lines, calls = up("Demo_1")
    assert (code, len(lines), calls) == (1, 1, [])


def test_an_image_that_is_not_to_be_had_is_told_before_anything_is_built(up):
    for arguments in (["test"], ["--check", "test"]):
        code, lines, calls = up(*arguments, HOLDFAST_K8S="v1.34.99", fails="^docker (image inspect|pull)")
        assert code == 1 and not called(calls, "docker build")
        assert lines[-1].startswith("hack/kind/up: Docker cannot get kindest/node:v1.34.99: ")


def test_the_variables_of_others_do_not_matter(up):
    code, _, calls = up("test", K8S="v1.34.4", KIND_IMAGE="nowhere/node:1", KEEP="1", clusters="test")
    assert code == 0
    assert not called(calls, "docker pull")
    [create] = called(calls, "kind create cluster")
    assert "--image" not in create


def test_the_usual_image_is_taken_where_it_is_here(up):
    code, _, calls = up("test", fails="^$")
    assert code == 0 and not called(calls, "docker pull")
    assert called(calls, "kind create cluster")[0].endswith("--image kindest/node:v1.34.4")


def test_a_check_builds_nothing(up):
    code, lines, calls = up("--check", "test")
    assert (code, lines) == (0, [])
    assert not called(calls, "docker build") and not called(calls, "kind create")


def test_a_cluster_that_is_kept_needs_no_node_image(up):
    code, _, calls = up("test", HOLDFAST_K8S="1.36.3", HOLDFAST_KEEP="1", clusters="test")
    assert code == 0
    assert called(calls, "kind export kubeconfig") and not called(calls, "kind create") + called(calls, "docker pull")


@pytest.mark.parametrize("step", ["docker build --tag holdfast:local", "docker build --tag holdfast-workload",
                                  "kind create", "kind load"])
def test_each_step_that_fails_says_in_one_line_what_to_do(up, step):
    code, lines, calls = up("test", fails=f"^(docker image inspect|{step})")
    assert code == 1 and called(calls, step)
    assert len([line for line in lines if line.startswith("hack/kind/up: ")]) == 1
    assert lines[-1].startswith("hack/kind/up: ") and "the lines above say why" in lines[-1]


# ---- hack/demo.


@pytest.fixture
def demo(monkeypatch, tmp_path):
    loader = importlib.machinery.SourceFileLoader("demo", str(ROOT / "hack/demo"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "FAILURE", tmp_path / "build/demo-failure.txt")
    return module


def test_a_version_that_is_not_pinned_is_told_before_anything_is_built(demo, monkeypatch):
    def tool_plan():
        return tools.tool_plan("1.99.0")

    monkeypatch.setattr(demo, "tool_plan", tool_plan)
    monkeypatch.setattr(demo.subprocess, "run", lambda *_, **__: pytest.fail("something was run"))
    with pytest.raises(SystemExit) as ended:
        demo.run(["--local"])
    assert re.fullmatch(r"hack/demo: Kubernetes 1\.99\.0 is not pinned; there is .*1\.34\.4.*", ended.value.code)


def test_a_set_up_that_fails_is_one_line(demo, monkeypatch):
    monkeypatch.setattr(demo.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2, "", ""))
    monkeypatch.setattr(demo, "why_no_kind", lambda: "kind is not in PATH")
    with pytest.raises(SystemExit) as ended:
        demo.run([])
    assert ended.value.code.startswith("hack/demo: the set-up failed; ") and "\n" not in ended.value.code


def test_on_kind_the_check_comes_first_and_says_itself_what_to_do(demo, monkeypatch):
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(demo.subprocess, "run", run)
    monkeypatch.setattr(demo, "why_no_kind", lambda: "")
    monkeypatch.setattr(demo, "ensure_clients", lambda **_: pytest.fail("something was built"))
    with pytest.raises(SystemExit) as ended:
        demo.run([])
    assert ended.value.code == 1
    assert [command[1] for command in commands] == ["--check"]


def test_what_goes_wrong_later_is_one_line_and_a_file(demo, monkeypatch):
    def fail(local):
        raise ClusterError("waited 60 s for the survivor\n  the end of its log:\n    ...")

    monkeypatch.setattr(demo, "main", fail)
    with pytest.raises(SystemExit) as ended:
        demo.run([])
    assert ended.value.code == ("hack/demo: waited 60 s for the survivor; all of it is in build/demo-failure.txt. To "
                                "begin again: make demo-down && make demo")
    assert "the end of its log" in demo.FAILURE.read_text()


# ---- The name of the variable.


def make(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("K8S", "HOLDFAST_K8S", "MAKEFLAGS", "MAKELEVEL")} | variables
    # A makefile of one target that prints what our recipes would see.
    script = f"include {ROOT}/Makefile\nsays:\n\t@echo \"[$$HOLDFAST_K8S]\"\n"
    return subprocess.run(["make", "-s", "-f", "-", "says", *arguments], input=script, env=environment, cwd=ROOT,
                          capture_output=True, text=True, check=False, timeout=60)


def test_make_hands_on_our_variable_and_none_that_others_export():
    assert make().stdout == "[]\n"
    assert make(K8S="v1.34.4").stdout == "[]\n"
    assert make(HOLDFAST_K8S="1.36.3").stdout == "[1.36.3]\n"
    assert make("HOLDFAST_K8S=1.36.3").stdout == "[1.36.3]\n"
    refused = make("K8S=1.36.3")
    assert refused.returncode != 0 and "say HOLDFAST_K8S=1.36.3" in refused.stderr


def test_tools_take_both_forms_of_a_version():
    assert tools.plain_version("v1.34.4") == tools.plain_version("1.34.4") == "1.34.4"
    said = subprocess.run(["/usr/bin/python3", "-c", "from localcluster import tools; print(tools.DEFAULT_K8S_VERSION)"],
                          env=dict(os.environ, HOLDFAST_K8S="v1.36.3", PYTHONPATH=str(ROOT / "tests/support")),
                          capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "1.36.3\n"
