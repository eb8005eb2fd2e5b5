"""Whatever hangs around the agent, its child is dead when the Lease is over: files, folders, stderr.
The agent's own thread touches none of them."""

import os

import pytest

from agent import (ANOTHER, ENDED, EXIT_FENCED, LIMIT, MESSAGE, NO_KILL, Beats, beats, boot_time,
                   common, turn, wait_passed, work)  # noqa: F401
from agent_ways import Link
from hanging import HangingFolder, hanging_folders  # noqa: F401
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False}


@pytest.fixture()
def link(cluster):
    with Link(cluster) as link:
        yield link


@pytest.fixture()
def beside(turn, tmp_path):
    """The folder of the agent's files, and of nothing else."""
    folder = tmp_path / "beside"
    folder.mkdir()
    turn.progress_file = folder / "progress"
    return folder


def wait_dead_in_time(turn, heart, renewed):
    """All workers, by five sixths of the Lease's duration since that renewal; the agent may go on."""
    wait_for("the workers to be dead", lambda: not heart.living(), LIMIT)
    assert heart.last() <= turn.killed_by(renewed)


# -- its own files -----------------------------------------------------------------------------


def test_a_folder_that_hangs_does_not_keep_the_child_of_an_agent_that_is_cut_off(
    hanging_folders, turn, link, beside, tmp_path
):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf", "away"), KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait(2)
        with HangingFolder(beside):
            # The Lease is renewed all the same.
            turn.wait_renewed()
            turn.wait_renewed()
            link.cut_off()
            renewed = turn.renewed()
            wait_dead_in_time(turn, heart, renewed)
            assert len(heart.told_to_end()) == 1
        agent.check_fenced("no renewal was acknowledged for")


def test_an_agent_whose_folder_hangs_from_the_first_waits_and_works_as_ever(hanging_folders, turn, beside, tmp_path):
    heart = Beats(tmp_path / "beats")
    with (HangingFolder(beside) as folder, turn.agent(beats(heart.path, "deaf")) as agent, folder.ends_first()):
        turn.grant()
        heart.wait()
        turn.wait_renewed()
        turn.take()
        renewed = turn.renewed_before()
        wait_dead_in_time(turn, heart, renewed)
        folder.end()
        agent.check_fenced("the Lease is attempt 2's")


def test_a_folder_that_hangs_does_not_keep_the_end_of_the_child_from_the_lease(hanging_folders, turn, beside, tmp_path):
    turn.grant()
    script = f"until [ -e {tmp_path}/over ]; do sleep 0.05; done; exit 3"
    with turn.agent(["sh", "-c", script]) as agent:
        turn.wait_renewed()
        with HangingFolder(beside):
            wait_passed(2)  # a look at the progress file falls into this
            (tmp_path / "over").touch()
            wait_for("the end to be told", lambda: turn.annotation(ENDED) == "3", LIMIT)
        assert agent.wait() == 3


def test_credentials_that_hang_end_the_child_in_time(hanging_folders, turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf", "away")) as agent:
        heart.wait(2)
        turn.wait_renewed()
        with HangingFolder(turn.credentials):
            wait_for("the child to be told to end", heart.told_to_end, LIMIT)
            wait_dead_in_time(turn, heart, turn.renewed())
        agent.check_fenced("no renewal was acknowledged for")


# -- what a child puts in their place ----------------------------------------------------------


def test_a_link_in_place_of_the_progress_file_is_not_followed(hanging_folders, turn, beside, tmp_path):
    heart = Beats(tmp_path / "beats")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    turn.grant()
    with (HangingFolder(elsewhere) as folder, turn.agent(beats(heart.path)) as agent, folder.ends_first()):
        heart.wait()
        turn.progress_file.symlink_to(elsewhere / "progress")
        # The agent may put its own there at any moment.
        (beside / "link").symlink_to(elsewhere / "state")
        (beside / "link").rename(beside / "progress.agent")
        for _ in range(3):
            turn.wait_renewed()
        assert turn.call("check") == (0, "")
        # What it was made is a file again.
        turn.progress_file.unlink()
        assert turn.call("progress", "on") == (0, "")
        wait_for("the progress", lambda: turn.annotation(MESSAGE) == "on", LIMIT)
        assert agent.process.poll() is None and len(heart.living()) == 1


def test_a_link_to_somebody_s_file_is_no_way_to_read_it(turn, beside, tmp_path):
    heart = Beats(tmp_path / "beats")
    (tmp_path / "secret").write_text("secret")
    turn.grant()
    with turn.agent(beats(heart.path)):
        heart.wait()
        turn.progress_file.symlink_to(tmp_path / "secret")
        turn.wait_renewed()
        turn.wait_renewed()
        assert turn.annotation(MESSAGE) is None


def test_pipes_in_place_of_its_files_are_not_waited_for(turn, link, beside, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf"), KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait()
        for name in ("progress", "progress.agent"):
            os.mkfifo(beside / "pipe")
            (beside / "pipe").rename(beside / name)
        # Where the next state is written before it gets its name.
        os.mkfifo(beside / f"progress.agent.{agent.pid}")
        for _ in range(2):
            turn.wait_renewed()
        assert turn.call("check") == (0, "")
        link.cut_off()
        renewed = turn.renewed()
        agent.check_fenced("no renewal was acknowledged for")
        assert not heart.living()
        assert heart.last() <= turn.killed_by(renewed)


# -- its last words ----------------------------------------------------------------------------


def test_a_stderr_that_nobody_reads_is_not_waited_for(turn, link, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    command = ["sh", "-c", 'yes >&2 & exec "$@"', "sh", *beats(heart.path, "deaf")]
    reader, writer = os.pipe()
    try:
        with turn.agent(command, stderr=writer, KUBERNETES_SERVICE_PORT=link.port) as agent:
            heart.wait()
            turn.wait_renewed()
            link.cut_off()
            renewed = turn.renewed()
            assert agent.wait() == EXIT_FENCED
            assert heart.last() <= turn.killed_by(renewed)
    finally:
        os.close(reader)
        os.close(writer)
    assert "no renewal was acknowledged for" in turn.termination_log.read_text()


@pytest.fixture()
def common_log(turn, common):
    """The folder of the termination message, and of nothing else."""
    folder = common / "log"
    folder.mkdir()
    turn.termination_log = folder / "message"
    turn.termination_log.touch()
    return folder


def test_a_child_that_no_signal_reaches_ends_though_the_last_words_cannot_be_written(
    hanging_folders, turn, link, common, common_log
):
    heart = Beats(common / "beats")
    turn.grant()
    with (HangingFolder(common_log) as folder, turn.agent(
            [*ANOTHER, *beats(heart.path)], prefix=NO_KILL, KUBERNETES_SERVICE_PORT=link.port),
          folder.ends_first()):
        heart.wait()
        turn.wait_renewed()
        link.cut_off()
        renewed = turn.renewed()
        # Its number is another here, so its silence alone shows that it is dead.
        wait_for("the Lease to be over", lambda: boot_time() > renewed + turn.duration + 1, LIMIT)
        assert not heart.told_to_end()
        assert heart.last() <= turn.killed_by(renewed)
