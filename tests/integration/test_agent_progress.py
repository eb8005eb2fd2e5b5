"""What the agent tells of its child through the Lease, and the commands beside `run`."""

import os
import stat
import subprocess

import pytest

from agent import (AGE, ENDED, LIMIT, MESSAGE, PROGRESS, Beats, agent_binary, beats,
                   turn, wait_passed, work)  # noqa: F401
from agent_ways import Link
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False}


def wait_mark(turn, mark):
    wait_for(f"the mark to be {mark}", lambda: turn.annotation(PROGRESS) == str(mark), LIMIT)


@pytest.fixture()
def running(turn, tmp_path):
    """A turn whose agent runs a child, renewed once."""
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)):
        heart.wait()
        yield turn


# -- progress ----------------------------------------------------------------------------------


def test_the_child_tells_its_progress_by_the_agent_s_command(turn):
    script = (f"{agent_binary()} progress '42 % of \u00e4ll'; while :; do sleep 1; done")
    turn.grant()
    with turn.agent(["sh", "-c", script]):
        wait_mark(turn, 1)
        assert turn.annotation(MESSAGE) == "42 % of \u00e4ll"


def test_each_progress_is_one_more_mark_and_makes_the_age_small(running):
    assert running.annotation(PROGRESS) == "0" and running.annotation(MESSAGE) is None
    for mark in (1, 2, 3):
        assert running.call("progress", f"step {mark}") == (0, "")
        wait_mark(running, mark)
        assert running.annotation(MESSAGE) == f"step {mark}"
        assert int(running.annotation(AGE)) < running.duration / 3
    wait_for("the age to grow", lambda: int(running.annotation(AGE)) > 0, LIMIT)
    assert running.annotation(PROGRESS) == "3"


def test_touching_the_file_is_progress_too(running):
    running.progress_file.touch()
    wait_mark(running, 1)
    running.progress_file.touch()
    wait_mark(running, 2)
    assert running.call("progress") == (0, "")
    wait_mark(running, 3)
    assert not running.annotation(MESSAGE)


def test_a_message_is_one_line_of_bounded_utf_8(running):
    running.progress_file.write_bytes(b"a\nb\x1b[1m\xff " + "\u20ac".encode() * 5000)
    wait_mark(running, 1)
    message = running.annotation(MESSAGE)
    assert message.startswith("a b [1m\ufffd \u20ac")
    assert 250 < len(message.encode()) <= 256


def test_that_the_progress_deadline_has_passed_is_told_at_that_moment(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.duration = 60  # an ordinary renewal comes after 18 s at the earliest
    turn.grant()
    with turn.agent(beats(heart.path), HOLDFAST_PROGRESS_DEADLINE_SECONDS=3):
        heart.wait()
        wait_for("the age to be told", lambda: turn.annotation(AGE) != "0", LIMIT)
        assert int(turn.annotation(AGE)) >= 3 and turn.annotation(PROGRESS) == "0"
        assert turn.renewed() - heart.first() < 18


def test_the_last_progress_is_told_with_the_end(turn):
    turn.grant()
    with turn.agent(["sh", "-c", f"{agent_binary()} progress done; exit 3"]) as agent:
        assert agent.wait() == 3
    assert (turn.annotation(PROGRESS), turn.annotation(MESSAGE), turn.annotation(ENDED)) == ("1", "done", "3")


def test_an_end_that_cannot_be_told_is_not_waited_for(turn, cluster, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with Link(cluster) as link:
        with turn.agent(beats(heart.path), KUBERNETES_SERVICE_PORT=link.port) as agent:
            heart.wait()
            link.cut_off()
            [pid] = heart.pids()
            os.kill(pid, 15)
            assert agent.wait() == 143
            assert agent.stderr() == ""
    assert turn.annotation(ENDED) is None


# -- check -------------------------------------------------------------------------------------


def test_check_is_content_while_the_agent_waits_or_the_child_runs_and_the_lease_is_fresh(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    assert turn.call("check") == (1, "holdfast: no agent has started here\n")
    with turn.agent(beats(heart.path)) as agent:
        agent.wait_said("it is not given to this pod yet")
        wait_passed(turn.duration)
        assert turn.call("check") == (0, "")
        turn.grant()
        heart.wait()
        assert turn.call("check") == (0, "")
        turn.wait_renewed()
        assert turn.call("check") == (0, "")
        [pid] = heart.pids()
        os.kill(pid, 9)
        agent.wait()
        assert turn.call("check") == (1, "holdfast: the command does not run\n")


def test_check_sees_that_the_agent_was_killed_or_stopped(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)) as agent:
        heart.wait()
        agent.signal(19)
        wait_for("check to see it", lambda: turn.call("check")[0] == 1, LIMIT)
        assert "the last renewal that was acknowledged is" in turn.call("check")[1]


def test_check_does_not_ask_the_users_own_probe_once_the_lease_is_stale(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)) as agent:
        heart.wait()
        agent.signal(19)
        wait_for("check to see it", lambda: turn.call("check", "--", "true")[0] == 1, LIMIT)


def test_check_sees_that_an_agent_that_waits_was_stopped(turn):
    with turn.agent(["true"]) as agent:
        agent.wait_said("it is not given to this pod yet")
        agent.signal(19)
        wait_for("check to see it", lambda: turn.call("check")[0] == 1, LIMIT)
        assert "has not been at work for" in turn.call("check")[1]


def test_check_asks_the_users_own_probe_while_the_child_runs_and_not_before(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    probe = ["check", "--", "sh", "-c", "exit 7"]
    with turn.agent(beats(heart.path)) as agent:
        agent.wait_said("it is not given to this pod yet")
        assert turn.call(*probe) == (0, "")
        turn.grant()
        heart.wait()
        wait_for("the child to be on record", lambda: turn.call(*probe) == (7, ""), LIMIT)
        assert turn.call("check", "--", "true") == (0, "")
        assert turn.call("check", "--", "/no/such") == (
            127, 'holdfast: cannot run "/no/such": No such file or directory\n')
        [pid] = heart.pids()
        os.kill(pid, 9)
        agent.wait()
        assert turn.call("check", "--", "true") == (1, "holdfast: the command does not run\n")


# -- install -----------------------------------------------------------------------------------


def test_install_copies_the_program_whole_and_for_everybody(turn, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    for _ in range(2):  # over an old one, too
        assert turn.call("install", str(folder)) == (0, "")
    copy = folder / "agent"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    with open(agent_binary(), "rb") as original:
        assert copy.read_bytes() == original.read()
    assert [one.name for one in folder.iterdir()] == ["agent"]
    assert subprocess.run([copy, "--version"], check=True, capture_output=True).stderr == b""


def test_install_where_it_cannot_says_why(turn, tmp_path):
    code, line = turn.call("install", str(tmp_path / "nowhere"))
    assert code == 1 and "No such file or directory" in line and line.count("\n") == 1


# -- what it refuses ---------------------------------------------------------------------------


@pytest.mark.parametrize("name,value,words", [
    ("HOLDFAST_LEASE_NAMESPACE", "", "is not set"),
    ("HOLDFAST_LEASE_NAME", "../x", "not the name of an object"),
    ("HOLDFAST_LEASE_DURATION_SECONDS", "30s", "not a whole number from 1 to 3600"),
    ("HOLDFAST_PROGRESS_DEADLINE_SECONDS", "0", "not a whole number"),
    ("HOLDFAST_ATTEMPT", "", "is not set"),
    ("HOLDFAST_POD_NAME", "", "is not set"),
    ("HOLDFAST_POD_UID", "", "is not set"),
    ("HOLDFAST_PROGRESS_FILE", "progress", "not an absolute path"),
    ("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc", "names are not resolved"),
    ("KUBERNETES_SERVICE_PORT", "https", "not a whole number from 1 to 65535"),
])
def test_a_wrong_environment_is_refused_in_one_line_that_names_it(turn, name, value, words):
    code, line = turn.call("run", "--", "true", environment=turn.environment(**{name: value}))
    assert code == 2
    assert line.startswith(f"holdfast: {name} ") and words in line and line.count("\n") == 1
    assert turn.termination_log.read_text() == line


def test_a_wrong_environment_is_refused_also_where_there_is_no_termination_log(turn, tmp_path):
    for log in (tmp_path / "none", tmp_path / "no/folder", "relative"):
        code, line = turn.call("run", "--", "true", environment=turn.environment(
            HOLDFAST_POD_UID="", HOLDFAST_TERMINATION_LOG=log))
        assert code == 2 and "HOLDFAST_POD_UID is not set" in line
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("arguments", [
    [], ["run"], ["run", "--"], ["dance"], ["progress", "two", "words"], ["check", "this"],
    ["check", "--"],
    ["install"],
])
def test_wrong_arguments_are_refused_in_one_line(turn, arguments):
    code, line = turn.call(*arguments)
    assert code == 2 and line.startswith("holdfast: ") and line.count("\n") == 1


@pytest.mark.parametrize("command", ["check", "progress"])
def test_the_commands_for_the_child_say_when_they_are_called_elsewhere(turn, command):
    code, line = turn.call(command, environment={})
    assert code == 2 and "HOLDFAST_PROGRESS_FILE is not set" in line


def test_credentials_that_are_missing_are_waited_for(turn):
    token = (turn.credentials / "token").read_text()
    (turn.credentials / "token").unlink()
    turn.grant()
    with turn.agent(["true"]) as agent:
        agent.wait_said("token: No such file or directory")
        turn.write_token("")
        agent.wait_said("token is not a token")
        turn.write_token(token)
        assert agent.wait() == 0
