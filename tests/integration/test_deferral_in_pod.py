"""Deferrals with a heartbeat: the agent runs the command again in the same pod."""

import signal

from agent import turn, work  # noqa: F401
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False}
DEFERRALS = "holdfast.dev/deferrals"


def until(told, times, end="exit 0"):
    """A shell command that says "not yet" until it has run so often. Each run is a line in `told`."""
    return ["sh", "-c", f'echo "$HOLDFAST_ATTEMPT $HOLDFAST_CHECKPOINT" >>{told}; '
                        f'[ $(wc -l <{told}) -ge {times} ] || exit 75; {end}']


def test_a_command_that_says_not_yet_runs_again_as_the_same_attempt(turn, tmp_path):
    told = tmp_path / "told"
    turn.grant()
    with turn.agent(until(told, 3), HOLDFAST_DEFER="75:1:100") as agent:
        assert agent.wait() == 0
    assert told.read_text().split() == ["1"] * 3
    assert turn.annotation(DEFERRALS) == "2"


def test_what_it_left_behind_is_gone_when_it_runs_again(turn, tmp_path):
    told, alive = tmp_path / "told", tmp_path / "alive"
    # Each run leaves a process that ignores signals, and the second one looks for the first one's.
    script = f"""
        [ ! -e {alive} ] || ! kill -0 $(cat {alive}) 2>/dev/null || exit 3
        (trap "" TERM HUP; exec sleep 600) & echo $! >{alive}; echo x >>{told}
        [ $(wc -l <{told}) -ge 2 ] || exit 75
    """
    turn.grant()
    with turn.agent(["sh", "-c", script], HOLDFAST_DEFER="75:1:100") as agent:
        assert agent.wait() == 0
    assert len(told.read_text().split()) == 2


def test_the_pod_ends_once_the_limit_is_reached(turn, tmp_path):
    told = tmp_path / "told"
    turn.grant()
    with turn.agent(until(told, 99), HOLDFAST_DEFER="75:1:5", HOLDFAST_DEFERRALS="3") as agent:
        assert agent.wait() == 75
    assert len(told.read_text().split()) == 3, "two were left of five, and the one that goes beyond"


def test_an_agent_that_is_told_to_end_while_it_waits_ends_with_the_deferred_code(turn, tmp_path):
    told = tmp_path / "told"
    turn.grant()
    with turn.agent(until(told, 99), HOLDFAST_DEFER="75:600:100") as agent:
        wait_for("the first run", told.exists, 60)
        wait_for("it to wait", lambda: turn.call("check")[0] == 0, 60)
        turn.wait_renewed()
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 75
