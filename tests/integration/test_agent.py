"""The agent before a real API server: its turn, its child, and what it costs."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from agent import (ENDED, LIMIT, PROGRESS, Beats, Turn, agent_binary, alive, beats,
                   descendants, python, turn, work)  # noqa: F401
from agent_ways import Gate, Stranger
from fence import grant, lease_rules
from localcluster import wait_for
from localcluster.pki import Authority

CLUSTER = {"nodes": 0, "kwok": False}
MOST_BYTES = 10_000_000
MOST_KIB = 10 * 1024


# -- its turn ----------------------------------------------------------------------------------


def test_it_waits_for_its_turn_and_says_why_once(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.write(lambda lease: lease["spec"].update(leaseTransitions=0))
    with turn.agent(beats(heart.path)) as agent:
        agent.wait_said("it is still attempt 0's; this is attempt 1")
        turn.take()
        agent.wait_said("it is not given to this pod yet")
        turn.grant("job-1-other/some-uid")
        agent.wait_said("it is job-1-other/some-uid's")
        assert not heart.pids() and turn.renewed() is None
        turn.grant()
        heart.wait()
        assert len(agent.stderr().splitlines()) == 3, agent.stderr()
        assert agent.stdout() == b""


def test_a_lease_that_is_not_there_yet_is_waited_for(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.delete()
    with turn.agent(beats(heart.path)) as agent:
        agent.wait_said("it does not exist")
        turn.make()
        turn.grant()
        heart.wait()


def test_the_child_starts_only_after_an_acknowledged_renewal(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)):
        heart.wait()
        assert turn.annotation(PROGRESS) == "0"
        assert turn.renewed() < heart.first()


def test_without_an_acknowledgement_no_child_starts(turn, cluster, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with Gate(cluster) as gate:
        gate.close()
        with turn.agent(beats(heart.path), KUBERNETES_SERVICE_PORT=gate.port) as agent:
            turn.wait_renewed()
            agent.wait_said("the API server did not answer")
            assert not heart.pids()
            gate.open()
            heart.wait()
            assert turn.renewed() < heart.first()


def test_without_the_right_to_renew_no_child_starts(cluster, namespace, tmp_path):
    grant(cluster, namespace, "reader", lease_rules("get"), (namespace, "default"))
    turn = Turn(cluster, namespace, tmp_path)
    turn.grant()
    heart = Beats(tmp_path / "beats")
    with turn.agent(beats(heart.path)) as agent:
        agent.wait_said("cannot update resource")
        assert not heart.pids()
        grant(cluster, namespace, "writer", lease_rules("update"), (namespace, "default"))
        heart.wait()


def test_a_later_attempt_ends_it_before_the_child_was_there(turn, tmp_path):
    turn.grant("job-2-other/some-uid", attempt=2)
    with turn.agent(beats(tmp_path / "beats")) as agent:
        agent.check_fenced("the Lease is attempt 2's; this is attempt 1")
    assert not (tmp_path / "beats").exists()


def test_the_fence_of_the_api_server_ends_it_before_the_child_was_there(turn, work, cluster, tmp_path):
    (tmp_path / "other").mkdir()
    other = Turn(cluster, work, tmp_path / "other")
    turn.grant()
    turn.write_token(other.pod.token())
    with turn.agent(beats(tmp_path / "beats")) as agent:
        agent.check_fenced("only the pod that holds this Lease may renew it")
    assert not (tmp_path / "beats").exists()


def test_a_signal_ends_it_while_it_waits(turn, tmp_path):
    with turn.agent(beats(tmp_path / "beats")) as agent:
        agent.wait_said("it is not given to this pod yet")
        agent.signal(signal.SIGTERM)
        agent.check_fenced("asked to end before it had the Lease")
    assert not (tmp_path / "beats").exists()


# -- whom it trusts ----------------------------------------------------------------------------


def test_a_server_of_an_unknown_ca_is_refused(turn, tmp_path):
    (tmp_path / "pki").mkdir()
    authority = Authority(tmp_path / "pki")
    authority.create()
    with Stranger(*authority.server("stranger", ["IP:127.0.0.1"])) as stranger:
        with turn.agent(["true"], KUBERNETES_SERVICE_PORT=stranger.port) as agent:
            agent.wait_said("the certificate of the API server at 127.0.0.1")
            assert "is refused" in agent.stderr()
        assert stranger.received == b""


def test_a_certificate_for_another_address_is_refused(turn, cluster):
    authority = Authority(cluster.folder / "pki")
    with Stranger(*authority.server("elsewhere", ["IP:127.0.0.9", "DNS:localhost"])) as stranger:
        with turn.agent(["true"], KUBERNETES_SERVICE_PORT=stranger.port) as agent:
            agent.wait_said("IP address mismatch")
        assert stranger.received == b""


def test_a_ca_that_is_rotated_on_disk_is_used_by_the_next_connection(turn, tmp_path):
    ca = turn.credentials / "ca.crt"
    right = ca.read_bytes()
    (tmp_path / "pki").mkdir()
    authority = Authority(tmp_path / "pki")
    authority.create()
    ca.write_bytes(authority.cert.read_bytes())
    turn.grant()
    with turn.agent(["true"]) as agent:
        agent.wait_said("is refused")
        ca.write_bytes(right)
        assert agent.wait() == 0


def test_what_an_image_says_to_openssl_is_not_heard(turn, tmp_path):
    (tmp_path / "openssl.cnf").write_text("openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                                          "system_default = old\n[old]\nMaxProtocol = TLSv1.1\n")
    turn.grant()
    with turn.agent(["true"], OPENSSL_CONF=tmp_path / "openssl.cnf") as agent:
        assert agent.wait() == 0, agent.stderr()


# -- the child ---------------------------------------------------------------------------------


@pytest.mark.parametrize("script,code", [
    ("exit 0", 0), ("exit 7", 7), ("exit 255", 255),
    ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("kill -SEGV $$", 139),
])
def test_the_exit_code_and_the_signal_of_the_child_are_kept_and_left_in_the_lease(turn, script, code):
    turn.grant()
    with turn.agent(["sh", "-c", script]) as agent:
        assert agent.wait() == code
        assert agent.stdout() == b"" and agent.stderr() == ""
    assert turn.annotation(ENDED) == str(code)


@pytest.mark.parametrize("command,code,words", [
    ("no-such-command", 127, "No such file"), ("/etc/passwd", 126, "Permission denied"),
    ("/etc/passwd/x", 127, "Not a directory"),
])
def test_a_command_that_cannot_be_run_is_said_in_one_line(turn, command, code, words):
    turn.grant()
    with turn.agent([command]) as agent:
        assert agent.wait() == code
        line = agent.stderr()
    assert line.startswith(f'holdfast: cannot run "{command}": ') and words in line
    assert line.count("\n") == 1
    assert turn.annotation(ENDED) == str(code)


def test_input_and_output_are_untouched(turn, tmp_path):
    data = bytes(range(256)) * 1000
    (tmp_path / "input").write_bytes(data)
    turn.grant()
    script = "import sys; b = sys.stdin.buffer.read(); sys.stdout.buffer.write(b); sys.stderr.write('own')"
    with open(tmp_path / "input", "rb") as stdin, turn.agent(python(script), stdin=stdin) as agent:
        assert agent.wait() == 0
        assert agent.stdout() == data and agent.stderr() == "own"


_WITNESS = """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(status["SigBlk"].strip(), status["SigIgn"].strip(), os.getpgrp() == os.getpid(),
      sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < 1000))
"""


def test_the_child_leads_a_process_group_with_nothing_blocked_and_nothing_inherited(turn):
    turn.grant()
    with turn.agent(python(_WITNESS)) as agent:
        assert agent.wait() == 0, agent.stderr()
        blocked, ignored, leads, *files = agent.stdout().decode().split(" ", 3)
    assert int(blocked, 16) == 0 and leads == "True"
    # Python itself ignores SIGPIPE and SIGXFSZ; what this test was started with is inherited. The last
    # descriptor is that of its listing.
    inherited = re.search(r"^SigIgn:\s*(\w+)", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE)
    assert int(ignored, 16) & ~((1 << 12) | (1 << 24) | int(inherited[1], 16)) == 0
    assert files == ["[0, 1, 2, 3]\n"]


_LISTENER = """
import os, signal, sys, time
names = sys.argv[1].split(",")
who = "child" if os.fork() else "below"
def heard(number, _):
    os.write(1, f"{who} {signal.Signals(number).name}\\n".encode())
for name in names:
    signal.signal(getattr(signal, name), heard)
os.write(1, f"{who} ready\\n".encode())
while True:
    time.sleep(100)
"""


def test_signals_are_handed_on_to_the_whole_process_group(turn):
    names = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT",
             "SIGALRM", "SIGTSTP"]
    turn.grant()
    with turn.agent(python(_LISTENER, ",".join(names))) as agent:
        def heard(name):
            return all(f"{who} {name}\n" in agent.stdout().decode() for who in ("child", "below"))

        wait_for("both to listen", lambda: heard("ready"), LIMIT)
        for name in names:
            agent.signal(getattr(signal, name))
            wait_for(f"both to hear {name}", lambda name=name: heard(name), LIMIT)
        assert agent.process.poll() is None


def zombies(pid):
    return [one for one in descendants(pid) if not alive(one)]


def test_orphans_come_to_the_agent_and_are_reaped(turn, tmp_path):
    turn.grant()
    script = f"for i in $(seq 50); do (true &) ; done; touch {tmp_path}/done; exec sleep 1000"
    with turn.agent(["sh", "-c", script]) as agent:
        wait_for("the orphans to be left", (tmp_path / "done").exists, LIMIT)
        wait_for("all to be reaped", lambda: not zombies(agent.pid) and len(descendants(agent.pid)) == 1, LIMIT)


def test_what_the_child_leaves_behind_is_killed(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    left = " ".join(f"'{word}'" if "\n" not in word else "\"$BEATS\"" for word in
                    beats(heart.path, "deaf", "away"))
    with turn.agent(["sh", "-c", f"{left} & while [ $(cut -d' ' -f2 {heart.path} | sort -u | wc -l) -lt 2 ];"
                     " do sleep 0.05; done; exit 5"], BEATS=beats(heart.path)[4]) as agent:
        assert agent.wait() == 5, agent.stderr()
    assert len(heart.pids()) == 2 and not heart.living()
    assert turn.annotation(ENDED) == "5"


def test_the_child_dies_with_the_agent(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf")) as agent:
        heart.wait()
        agent.signal(signal.SIGKILL)
        agent.wait()
        wait_for("the child to die", lambda: not heart.living(), LIMIT)


# -- what it costs -----------------------------------------------------------------------------


def test_it_is_one_small_static_program():
    binary = pathlib.Path(agent_binary())
    assert binary.stat().st_size <= MOST_BYTES
    headers = subprocess.run(["readelf", "-lW", binary], capture_output=True, text=True, check=True)
    assert "INTERP" not in headers.stdout and "DYNAMIC" not in headers.stdout


def test_it_renews_in_less_than_ten_mebibytes(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)) as agent:
        heart.wait()
        for _ in range(3):
            turn.wait_renewed()
        status = pathlib.Path(f"/proc/{agent.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    print(f"VmHWM {peak} KiB, {os.stat(agent_binary()).st_size} bytes")
    assert peak < MOST_KIB
