"""kubectl holdfast explain and top, about jobs in the states in which people ask: on a real control plane, with a
real operator. The pages are also printed (pytest -s), to be read by a person."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import time

import pytest

from fake_pool import allow_workers
from holdfast import QUICK_LEASES, indexed, job, runs
from localcluster import wait_for
from plugin import Plugin, plugin_binary
from queues import Queues, queue

CLUSTER = {"nodes": 3}
OPERATOR_LEASES = QUICK_LEASES
LIMIT = 60
UTF8 = {"LC_ALL": "C.UTF-8"}
SLOW = {"initialSeconds": 600, "maxSeconds": 600, "jitterPercent": 0}
# With the screen of 24 rows, whose last one has the shell's prompt.
ROWS, COLUMNS = 23, 80

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture()
def plugin(cluster, namespace):
    return Plugin(cluster).within(namespace)


def explain(plugin, name, *flags, show=True):
    """The page, which fits onto the screen."""
    result = plugin("explain", name, *flags, env=UTF8)
    assert result.code == 0, result.err
    assert result.err == ""
    lines = result.out.splitlines()
    assert len(lines) <= ROWS, result.out
    assert all(len(line) <= COLUMNS for line in lines), result.out
    if show:
        print(f"\n$ kubectl holdfast explain {name}\n{result.out}")
    return result.out


def fact(page, label):
    """What stands behind this label, in one line; None: nothing does."""
    found = re.search(rf"^  {label} +(.*(?:\n {{11}}\S.*)*)", page, re.MULTILINE)
    return re.sub(r"\s+", " ", found[1]) if found else None


def commands(page):
    """The commands of the page, as a shell reads them."""
    text = page.replace("\\\n", " ")
    return [re.sub(r" +", " ", line.strip()) for line in text.splitlines() if line.startswith(" " * 13 + "kubectl")]


def run_commands(cluster, page):
    """Each command that only reads does what it says: its names and flags are right."""
    ran = 0
    for command in commands(page):
        words = shlex.split(command)[1:]
        if words[0] == "holdfast" or words[0] in ("logs", "exec", "delete", "cordon", "edit"):
            continue
        if words[0] == "patch":
            words.append("--dry-run=server")
        answer = cluster.kubectl(*words, check=False)
        assert answer.returncode == 0, f"{command}: {answer.stderr}"
        ran += 1
    return ran


def test_a_job_that_runs(cluster, plugin, jobs):
    jobs.apply(job("runs", annotations=runs(600), attemptDeadlineSeconds=3600))
    jobs.wait("runs", lambda s: (s.get("waiting") or {}).get("reason") == "PodRunning", LIMIT)
    page = explain(plugin, "runs")
    assert page.splitlines()[0].split()[:2] == [f"{jobs.namespace}/runs", "Running"]
    assert fact(page, "What") == "PodRunning: its pod runs"
    assert re.match(r"attempt 1 ends", fact(page, "Next"))
    assert re.search(r"1 running [├─]*>", page)
    assert "A attempt deadline in " in page


def test_a_job_in_back_off(cluster, plugin, jobs):
    jobs.apply(job("fails", annotations=runs(2, 3), retryBackoff=SLOW))
    jobs.wait_phase("fails", "Backoff")
    page = explain(plugin, "fails")
    assert fact(page, "What").startswith("RetryBackoff: ")
    assert re.match(r"in (9m\d+s|10m) \(", fact(page, "By"))
    assert fact(page, "Next") == "attempt 2 starts"
    assert "exit code 3" in fact(page, "Last")
    assert fact(page, "Spent") == "1 of 6 failures, 0 of 50 losses"
    assert f"kubectl holdfast logs fails -n {jobs.namespace} --attempt 1" in commands(page)
    assert re.search(r"  2 next +┄*B", page)
    assert "B back-off ends in " in page


def test_a_job_that_has_failed(plugin, jobs):
    jobs.apply(job("failed", annotations=runs(1, 7), backoffLimit=0))
    jobs.wait_phase("failed", "Failed")
    page = explain(plugin, "failed")
    assert fact(page, "What").startswith("BackoffLimitExceeded: ")
    assert fact(page, "Took").endswith("; 1 attempt")
    assert "exit code 7" in fact(page, "Attempt")
    assert "ended with exit code 7" in fact(page, "Why")
    assert f"kubectl holdfast retry failed -n {jobs.namespace}" in commands(page)


def test_a_job_that_has_succeeded(plugin, jobs):
    jobs.apply(job("good", annotations=runs(1), ttlSecondsAfterFinished=3600))
    jobs.wait_phase("good", "Succeeded")
    page = explain(plugin, "good")
    assert "Succeeded" in page.splitlines()[0]
    assert fact(page, "Deleted").startswith("in ")


def test_a_job_that_waits_in_a_queue_knows_its_place(cluster, plugin, jobs):
    Queues(cluster, jobs.namespace).apply(queue("encode", concurrency=1))
    jobs.apply(job("first", annotations=runs(600), queue={"name": "encode"}))
    jobs.wait_phase("first", "Running")
    for name, priority in (("low", 0), ("middle", 5), ("high", 9)):
        jobs.apply(job(name, queue={"name": "encode", "priority": priority}))
    for name in ("low", "middle", "high"):
        jobs.wait(name, lambda s: (s.get("waiting") or {}).get("reason") == "Queued", LIMIT)
    wait_for("the queue to count them", lambda: "of 3 that wait" in explain(plugin, "low", show=False), LIMIT)
    page = explain(plugin, "middle")
    assert fact(page, "Queue").startswith("encode: place 2 of 3 that wait; 1 of 1 permit in use; priority 5")
    assert "Full: " in fact(page, "Queue")
    assert "place 1 of 3" in fact(explain(plugin, "high"), "Queue")
    assert "place 3 of 3" in fact(explain(plugin, "low"), "Queue")
    assert run_commands(cluster, page) == 2


def test_a_job_without_its_queue_or_pool(cluster, plugin, jobs):
    jobs.apply(job("lost", queue={"name": "nowhere"}))
    jobs.wait("lost", lambda s: (s.get("waiting") or {}).get("reason") == "QueueMissing", LIMIT)
    page = explain(plugin, "lost")
    assert page.splitlines()[0].split("  ")[1] == "Pending, needs a person"
    assert fact(page, "You can").startswith("Create the JobQueue nowhere")
    assert run_commands(cluster, page) == 1


# This operator has no image of the agent, so no worker can start.
def test_a_job_that_waits_for_a_warm_worker(cluster, plugin, jobs):
    allow_workers(cluster, jobs.namespace)
    template = {"spec": {"containers": [{"name": "worker", "image": "busybox:1.36", "command": ["true"]}]}}
    jobs.api("POST", f"/apis/holdfast.dev/v1alpha1/namespaces/{jobs.namespace}/workerpools", {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": "thumbnails"},
        "spec": {"template": template, "maxWorkers": 2}})
    shot = job("shot", workerPool={"name": "thumbnails"}, payload="{}")
    del shot["spec"]["template"]
    jobs.apply(shot)
    jobs.wait("shot", lambda s: (s.get("waiting") or {}).get("reason") == "WorkerAwaited", LIMIT)
    page = explain(plugin, "shot")
    pool = fact(page, "Pool")
    assert re.match(r"thumbnails: \d workers? of at most 2.*; 0 of 0 slots busy; 1 run waiting", pool)
    assert "no worker can start: " in pool
    assert "correct the pool's template" in fact(page, "You can")
    assert run_commands(cluster, page) == 1


def test_a_pod_that_no_node_takes(cluster, plugin, jobs):
    jobs.apply(job("homeless", pod={"nodeSelector": {"disk": "gold"}}))
    jobs.wait("homeless", lambda s: (s.get("waiting") or {}).get("reason") == "PodUnschedulable", LIMIT)
    page = explain(plugin, "homeless")
    assert "nodes are available" in fact(page, "Why")
    assert fact(page, "By").startswith("no time limit")
    assert run_commands(cluster, page) == 1


def test_a_pod_behind_a_gate(cluster, plugin, jobs):
    jobs.apply(job("gated", pod={"schedulingGates": [{"name": "example.com/licence"}]}))
    jobs.wait("gated", lambda s: (s.get("waiting") or {}).get("reason") == "PodGated", LIMIT)
    page = explain(plugin, "gated")
    assert "example.com/licence" in fact(page, "Why")
    assert run_commands(cluster, page) == 1


def test_a_pod_that_a_quota_refuses(cluster, plugin, jobs):
    cluster.api("POST", f"/api/v1/namespaces/{jobs.namespace}/resourcequotas",
                {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    jobs.apply(job("refused"))
    jobs.wait("refused", lambda s: (s.get("waiting") or {}).get("reason") == "PodCreationRefused", LIMIT)
    page = explain(plugin, "refused")
    assert "exceeded quota: none" in fact(page, "Why")
    assert "quota of the namespace is used up" in fact(page, "You can")
    assert run_commands(cluster, page) == 1


def test_a_suspended_and_a_cancelled_job(cluster, plugin, jobs):
    for name in ("asleep", "dropped"):
        jobs.apply(job(name, annotations=runs(600)))
        jobs.wait_running(name)
    jobs.patch("asleep", suspend=True)
    jobs.patch("dropped", cancel=True)
    jobs.wait_phase("asleep", "Suspended")
    jobs.wait_phase("dropped", "Cancelled")
    assert f"kubectl holdfast resume asleep -n {jobs.namespace}" in commands(explain(plugin, "asleep"))
    assert fact(explain(plugin, "dropped"), "What").startswith("Cancelled: ")


def test_many_runs_are_summed_up(cluster, plugin, jobs):
    jobs.apply(indexed("sweep", 40, 20, annotations=runs(1) | {"holdfast-test/exit-code": "0"}))
    jobs.apply(indexed("bad", 6, 6, annotations=runs(1, 3), backoffLimitPerIndex=0))
    jobs.apply(indexed("wide", 500, 20, annotations=runs(600)))
    jobs.wait_phase("bad", "Failed")
    page = explain(plugin, "bad")
    assert fact(page, "What").startswith("FailedIndexes: ")
    assert fact(page, "Failed") == "indexes 0-5"
    assert f"kubectl holdfast retry bad -n {jobs.namespace} --failed-indexes" in commands(page)
    assert f"kubectl holdfast logs bad -n {jobs.namespace} --index 0" in commands(page)
    jobs.wait("wide", lambda s: s.get("active") == 20, LIMIT)
    page = explain(plugin, "wide")
    assert fact(page, "Runs").startswith("0 of 500 done, 20 open")
    assert re.match(r"run \d+ for longest, ", fact(page, "Running"))


def test_stages_have_a_line_each(plugin, jobs):
    template = {"spec": job("x")["spec"]["template"]["spec"], "metadata": {"annotations": runs(600)}}
    jobs.apply(job("staged", annotations=runs(1),
                   stages=[{"name": "verify", "template": template},
                           {"name": "clean", "when": "Always", "template": template}]))
    jobs.wait("staged", lambda s: s.get("stage") == "verify" and s.get("phase") == "Running", LIMIT)
    page = explain(plugin, "staged")
    assert "Running, stage verify" in page.splitlines()[0]
    stages = page[page.index("\nStages\n"):].splitlines()[2:5]
    assert [line.split()[:3] for line in stages] == [
        ["✓", "main", "Succeeded"], [">", "verify", "Running"], ["·", "clean", "Pending"]]


def test_a_silent_node(cluster, plugin, jobs):
    jobs.apply(job("cut-off", annotations=runs(600), lostAfterSeconds=60))
    jobs.wait_running("cut-off")
    node = jobs.wait("cut-off", lambda s: (s.get("runs") or [{}])[0].get("nodeName"), LIMIT)["runs"][0]["nodeName"]
    cluster.kill_node(node)
    try:
        jobs.wait("cut-off", lambda s: (s.get("waiting") or {}).get("reason") == "NodeSilent", LIMIT)
        page = explain(plugin, "cut-off")
        assert re.match(r"in \d+s \(", fact(page, "By"))
        assert re.search(r"1 open +├─*>┄*L", page)
        assert f"kubectl cordon {node}" in commands(page)
    finally:
        cluster.revive_node(node)


def test_an_operator_that_is_away_is_told_of(cluster, operator, plugin, jobs):
    jobs.apply(job("waits", annotations=runs(1, 1), retryBackoff={"initialSeconds": 1, "maxSeconds": 1}))
    jobs.wait_phase("waits", "Backoff", "Running")
    operator.signal(signal.SIGSTOP)
    try:
        jobs.apply(job("unread", annotations=runs(1)))
        page = {}

        def told():
            page["text"] = explain(plugin, "unread", show=False)
            return "late: it should have read the job" in (fact(page["text"], "Operator") or "")

        wait_for("the page to say that nobody reads the job", told, LIMIT)
        print(page["text"])
        assert fact(page["text"], "What").startswith("OperatorAwaited: ")
        pod = fact(page["text"], "Operator").split("Replica ")[1].split()[0].rsplit("-", 1)[0]
        assert commands(page["text"]) == [f"kubectl logs {pod} -n holdfast-system --tail=50"]
    finally:
        operator.signal(signal.SIGCONT)
    jobs.wait_phase("unread", "Succeeded", limit=LIMIT)


def test_whoever_sees_only_jobs_gets_a_page_all_the_same(cluster, jobs, plugin):
    cluster.api("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{jobs.namespace}/roles", {
        "metadata": {"name": "see"}, "rules": [{"apiGroups": ["holdfast.dev"], "resources": ["durablejobs"],
                                                "verbs": ["get", "list"]}]})
    cluster.api("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{jobs.namespace}/rolebindings", {
        "metadata": {"name": "see"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see"},
        "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}]})
    jobs.apply(job("fails", annotations=runs(2, 3), retryBackoff=SLOW))
    jobs.wait_phase("fails", "Backoff")
    reader = Plugin(cluster, user="reader").within(jobs.namespace)
    assert "exit code 3" in fact(explain(reader, "fails"), "Last")
    stranger = Plugin(cluster, user="stranger").within(jobs.namespace)("explain", "fails")
    assert stranger.code == 2
    assert len(stranger.err.splitlines()) == 1
    missing = plugin("explain", "nobody")
    assert missing.code == 2
    assert len(missing.err.splitlines()) == 1


def test_ascii_where_the_locale_has_no_utf8(plugin, jobs):
    jobs.apply(job("plain", annotations=runs(2, 3), retryBackoff=SLOW))
    jobs.wait_phase("plain", "Backoff")
    page = plugin("explain", "plain", env={"LC_ALL": "C"}).out
    assert page.isascii()
    assert re.search(r"1 Failed +\|", page)


def test_watch_prints_each_change_until_the_end(plugin, jobs):
    jobs.apply(job("short", annotations=runs(3)))
    result = plugin("explain", "short", "--watch", env=UTF8)
    assert result.code == 0, result.err
    pages = result.out.split(f"{jobs.namespace}/short  ")[1:]
    assert len(pages) >= 2
    assert pages[-1].startswith("Succeeded")


def test_top_lists_the_worst_first(cluster, plugin, jobs):
    jobs.apply(job("good", annotations=runs(600)))
    jobs.apply(job("lost", queue={"name": "nowhere"}))
    jobs.apply(job("failed", annotations=runs(1, 7), backoffLimit=0))
    jobs.wait_running("good")
    jobs.wait("lost", lambda s: (s.get("waiting") or {}).get("reason") == "QueueMissing", LIMIT)
    jobs.wait_phase("failed", "Failed")
    result = plugin("top", env=UTF8)
    assert result.code == 0, result.err
    print(f"\n$ kubectl holdfast top\n{result.out}")
    lines = result.out.splitlines()
    assert lines[0].split() == ["NAME", "PHASE", "WAITING", "SINCE", "OPEN", "DONE", "ATTEMPT", "AGE"]
    assert [line.split()[0] for line in lines[1:]] == ["lost", "failed", "good"]
    everywhere = Plugin(cluster)("top", "-A", env=UTF8)
    assert f"{jobs.namespace}" in everywhere.out
    assert everywhere.out.splitlines()[0].split()[0] == "NAMESPACE"


class Screen:
    """The plugin on a terminal of 80 columns and 24 rows. `raw` is what it has written."""

    def __init__(self, plugin, *args):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a run of the tests in the background ignores it
            environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "TERM": "xterm", "LC_ALL": "C.UTF-8",
                           "KUBECONFIG": str(plugin.kubeconfig)}
            command = [plugin_binary(), *args, "-n", plugin.namespace]
            os.execvpe("sh", ["sh", "-c", 'stty rows 24 cols 80; exec "$0" "$@"', *command], environment)
        self.raw = ""

    def wait(self, what, shows):
        deadline = time.monotonic() + LIMIT
        while not shows(self.raw):
            assert time.monotonic() < deadline, f"{what}: {self.raw[-3000:]!r}"
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.raw += os.read(self.terminal, 65536).decode(errors="replace")

    def stop(self):
        os.write(self.terminal, b"\x03")
        try:
            while text := os.read(self.terminal, 65536):
                self.raw += text.decode(errors="replace")
        except OSError:  # the terminal is closed
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def frames(raw):
    """What stood on the screen, one after the other. Each frame begins at the upper left corner."""
    body = raw[raw.index("\x1b[H"):].split("\x1b[?25h")[0]
    return [frame for frame in body.split("\x1b[H") if frame]


@pytest.mark.parametrize("args", [["top"], ["explain", "live", "--watch"]], ids=["top", "explain"])
def test_a_live_screen_does_not_flicker_and_gives_the_terminal_back(plugin, jobs, args):
    jobs.apply(job("live", annotations=runs(600)))
    jobs.wait_running("live")
    screen = Screen(plugin, *args)
    screen.wait("the job that runs", lambda raw: "Running" in raw)
    jobs.patch("live", suspend=True)
    screen.wait("the job that is suspended", lambda raw: "Suspended" in raw)
    screen.wait("some frames", lambda raw: raw.count("\x1b[H") > 4)
    screen.stop()
    raw = screen.raw
    assert raw.startswith("\x1b[?1049h")
    assert raw.count("\x1b[?1049h") == 1
    assert "\x1b[?1049l" in raw
    assert "\x1b[?25h" in raw
    # A screen that is cleared first flickers. Each line is cleared behind its new text.
    assert "\x1b[2J" not in raw
    for frame in frames(raw)[:-1]:
        assert frame.endswith("\x1b[J")
        lines = re.split(r"\r+\n", frame.removesuffix("\x1b[J"))  # the terminal makes \r\n of \n
        assert len(lines) <= 24
        assert all(line.endswith("\x1b[K") and len(line.removesuffix("\x1b[K")) <= 80 for line in lines)
