"""kubectl holdfast logs and completion, on a real API server with a kubelet that has only logs."""

import os
import subprocess

import pytest
from fake_kubelet import FakeKubelet
from plugin import Plugin, plugin_binary
from resource_api import job, unique_name

PATH = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs"
SINCE = "2026-01-02T03:04:05Z"


@pytest.fixture(scope="session")
def kubelet(bare_cluster, tmp_path_factory):
    with FakeKubelet(bare_cluster, "node-of-logs", tmp_path_factory.mktemp("kubelet")) as kubelet:
        yield kubelet


@pytest.fixture(scope="session")
def plugin(bare_cluster):
    return Plugin(bare_cluster)


@pytest.fixture()
def with_status(bare_cluster):
    """Makes a job with this status, as the operator would have written it."""

    def make(name, **fields):
        status, answer = bare_cluster.api("POST", PATH, job(name))
        assert status == 201, answer
        running = {"phase": "Running", "startTime": SINCE, "completions": "0/1", "observedGeneration": 1,
                   "failures": 0, "disruptions": 0, "attempt": fields["attempt"]}
        for one in (running, running | fields):
            status, answer = bare_cluster.api("PATCH", f"{PATH}/{name}/status", {"status": one}, content_type="merge")
            assert status == 200, answer
        return answer

    return make


def test_the_log_of_the_last_attempt_is_printed(kubelet, plugin, with_status):
    name = unique_name("logs")
    made = with_status(name, attempt=2, runs=[{"index": 0, "attempt": 2, "podName": f"{name}-2", "podUID": "u",
                                               "startTime": SINCE}])
    labels = {"holdfast.dev/job-uid": made["metadata"]["uid"]}
    kubelet.pod(f"{name}-1", labels=labels | {"holdfast.dev/attempt": "1"})
    kubelet.pod(f"{name}-2", labels=labels | {"holdfast.dev/attempt": "2"})
    kubelet.logs[f"{name}-1"] = "first\n"
    kubelet.logs[f"{name}-2"] = "second\nüml\n"
    assert plugin("logs", name).out == "second\nüml\n"
    assert plugin("logs", f"dj/{name}", "--attempt", "1").out == "first\n"
    assert plugin("logs", name, "--tail", "7").code == 0
    assert kubelet.asked[-1][1]["tailLines"] == "7"
    missing = plugin("logs", name, "--attempt", "9")
    assert missing.code == 2 and "nothing is known of an attempt 9" in missing.line


def test_of_a_warm_workers_log_only_the_jobs_own_lines_are_printed(kubelet, plugin, with_status):
    name = unique_name("warm")
    worker = unique_name("worker")
    with_status(name, attempt=3, runs=[{"index": 0, "attempt": 3, "workerName": worker, "workerUID": "w",
                                        "startTime": SINCE}])
    kubelet.pod(worker)
    kubelet.logs[worker] = f"agent: ready\n[{name} 3] one\n[{name}x 3] other\n[{name} 2] older\n[{name} 3] two\n"
    result = plugin("logs", name)
    assert (result.code, result.out) == (0, "one\ntwo\n"), result.err
    assert kubelet.asked[-1][1]["sinceTime"] == SINCE
    assert plugin("logs", name, "--tail", "1").out == "two\n"


def test_a_pod_that_is_gone_is_said_with_how_its_attempt_ended(plugin, with_status):
    name = unique_name("gone")
    with_status(name, attempt=1, phase="Backoff", failures=1,
                runs=[{"index": 0, "attempt": 1, "podName": f"{name}-1", "nextAttemptTime": SINCE, "failures": 1}],
                history=[{"attempt": 1, "podName": f"{name}-1", "outcome": "Failed", "reason": "exit code 3",
                          "startTime": SINCE, "endTime": SINCE}])
    result = plugin("logs", name)
    assert result.code == 2
    assert f"the pod {name}-1 of attempt 1 is gone, and its log with it" in result.line


def test_a_job_without_an_attempt_has_no_log(plugin, bare_cluster):
    name = unique_name("new")
    bare_cluster.api("POST", PATH, job(name))
    result = plugin("logs", name)
    assert result.code == 2 and "has no attempt yet, it is Pending" in result.line


def completed(plugin, *words, program=None):
    return subprocess.run([program or plugin_binary(), *([] if program else ["__complete"]), *words], text=True,
                          capture_output=True, timeout=60, check=True,
                          env={"KUBECONFIG": str(plugin.kubeconfig), "HOME": "/nowhere"}).stdout.splitlines()


def test_verbs_flags_and_jobs_are_completed(plugin, bare_cluster, tmp_path):
    name = unique_name("complete-me")
    bare_cluster.api("POST", PATH, job(name))
    assert completed(plugin, "su") == ["submit", "suspend"]
    assert "--failed-indexes" in completed(plugin, "retry", "--")
    assert completed(plugin, "submit", "-o", "") == ["json", "name", "wide", "yaml"]
    assert completed(plugin, "cancel", "complete-me") == [name]
    # As kubectl itself asks, by another name of the program.
    link = tmp_path / "kubectl_complete-holdfast"
    os.symlink(plugin_binary(), link)
    assert completed(plugin, "cancel", "complete-me", program=str(link)) == [name, ":4"]


def test_the_script_of_bash_completes(plugin):
    folder = os.path.dirname(plugin_binary())
    script = subprocess.run([plugin_binary(), "completion", "bash"], text=True, capture_output=True, check=True).stdout
    typed = """
COMP_WORDS=(kubectl-holdfast ret); COMP_CWORD=1; _kubectl_holdfast; echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-uc", script + typed], text=True, capture_output=True, timeout=60, check=False,
                          env={"PATH": f"{folder}:{os.environ['PATH']}", "HOME": "/nowhere"})
    assert done.stdout.split() == ["retry"], done.stderr


def test_the_script_of_zsh_is_read():
    script = subprocess.run([plugin_binary(), "completion", "zsh"], text=True, capture_output=True, check=True).stdout
    subprocess.run(["zsh", "-n"], input=script, text=True, check=True)


def test_help_and_version_need_no_cluster():
    for arguments in (["--help"], ["help", "submit"], ["submit", "--help"], ["version"]):
        done = subprocess.run([plugin_binary(), *arguments], text=True, capture_output=True, env={}, check=False)
        assert done.returncode == 0 and "holdfast" in done.stdout

