"""The agent fences itself: a child never outlives its Lease, by the children's own timestamps, and
nothing less than that ends one."""

import signal
import subprocess

import pytest

from agent import (ANOTHER, ENDED, EXIT_FENCED, LIMIT, NO_KILL, NOISE, Beats, Turn, beats, common, turn,
                   wait_passed, work)  # noqa: F401
from agent_ways import Gate, Link
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False}
# Where it is the deadlines themselves that are looked at: their reserve grows with the duration.
LONG = 20
# The agent counts from a moment before the one that it writes into the Lease. Seconds.
STAMPED = 0.01


@pytest.fixture()
def long_turn(cluster, work, tmp_path):
    return Turn(cluster, work, tmp_path, duration=LONG)


@pytest.fixture()
def link(cluster):
    with Link(cluster) as link:
        yield link


def check_ended_in_time(turn, heart, renewed):
    """All workers are dead, and were by five sixths of the Lease's duration since that renewal."""
    assert not heart.living()
    assert heart.last() <= turn.killed_by(renewed)


# -- a Lease that is lost ----------------------------------------------------------------------


def taken(turn):
    turn.take()


def given_to_the_next(turn):
    turn.grant("job-2-next/some-uid", attempt=turn.attempt + 1)


def given_to_another_pod(turn):
    turn.grant("job-1-other/some-uid")


def made_anew(turn):
    turn.delete()
    turn.make(turn.pod.identity)


@pytest.mark.parametrize("loss,words", [
    (taken, "the Lease is attempt 2's; this is attempt 1"),
    (given_to_the_next, "the Lease is attempt 2's; this is attempt 1"),
    (given_to_another_pod, "the Lease is job-1-other/some-uid's"),
    (made_anew, "the Lease was deleted and created again"),
])  # fmt: skip
def test_a_worker_whose_lease_is_lost_is_dead_within_a_sixth_of_its_duration(turn, tmp_path, loss, words):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf", "away")) as agent:
        heart.wait(2)
        turn.wait_renewed()
        loss(turn)
        renewed = turn.renewed_before()
        agent.check_fenced(words)
        [told] = heart.told_to_end().values()  # the one in the process group
        assert heart.last() <= told + turn.duration / 6 + NOISE
        check_ended_in_time(turn, heart, renewed)


def test_nobody_else_s_lease_is_made_or_renewed_by_a_worker_that_lost_its_own(turn, tmp_path):
    turn.grant()
    heart = Beats(tmp_path / "beats")
    with turn.agent(beats(heart.path)) as agent:
        heart.wait()
        turn.delete()
        agent.check_fenced("the Lease was deleted")
    assert turn.cluster.api("GET", turn.path)[0] == 404


def test_a_worker_whose_lease_is_gone_has_the_time_of_its_last_renewal(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf")) as agent:
        heart.wait()
        turn.wait_renewed()
        turn.delete()
        renewed = turn.renewed_before()
        agent.check_fenced("the Lease was deleted")
        [told] = heart.told_to_end().values()
        assert told > renewed + turn.duration * 2 / 3 - STAMPED
        check_ended_in_time(turn, heart, renewed)


def test_a_worker_whose_job_is_deleted_has_its_pods_grace(turn, cluster, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf")) as agent:
        heart.wait()
        turn.wait_renewed()
        offset = cluster.audit_offset()
        turn.delete()
        wait_for("it to be told that there is none", lambda: any(
            event.get("objectRef", {}).get("name") == turn.name and event["user"]["username"] != "admin"
            and event.get("responseStatus", {}).get("code", 0) >= 400
            for event in cluster.audit_events(offset)[0]), LIMIT)
        agent.signal(signal.SIGTERM)
        wait_for("the child to be told to end", heart.told_to_end, LIMIT)
        wait_passed(turn.duration * 3 / 2)
        assert heart.living()
        # The job was not deleted after all: somebody has it work again.
        turn.make("job-2-next/some-uid")
        agent.check_fenced("the Lease was deleted and created again")


# -- no answers --------------------------------------------------------------------------------


def test_a_worker_that_is_cut_off_is_told_to_end_at_two_thirds_and_dead_by_five_sixths(long_turn, link, tmp_path):
    turn, heart = long_turn, Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf", "away"), KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait(2)
        # Right after a renewal none is under way. One whose answer is lost would not count.
        turn.wait_renewed()
        turn.wait_renewed()
        link.cut_off()
        renewed = turn.renewed()
        agent.check_fenced("no renewal was acknowledged for")
        [told] = heart.told_to_end().values()
        # The agent counts from shortly before it writes the time into the renewal.
        assert renewed + turn.duration * 2 / 3 - 1 < told
        check_ended_in_time(turn, heart, renewed)


def test_a_child_that_hears_the_end_is_not_killed(turn, link, tmp_path):
    turn.grant()
    script = f"trap 'echo tidy; exit 0' TERM; touch {tmp_path}/there; while :; do sleep 0.05; done"
    with turn.agent(["sh", "-c", script], KUBERNETES_SERVICE_PORT=link.port) as agent:
        wait_for("the child", (tmp_path / "there").exists, LIMIT)
        link.cut_off()
        agent.check_fenced("no renewal was acknowledged for")
        assert agent.stdout() == b"tidy\n"


def test_there_is_no_way_back_once_fencing_has_begun(turn, link, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf"), KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait()
        link.cut_off()
        wait_for("the child to be told to end", heart.told_to_end, LIMIT)
        link.mend()
        before = turn.get()
        agent.check_fenced("no renewal was acknowledged for")
        assert turn.get() == before
        assert not heart.living()


def test_an_api_server_that_is_away_for_half_the_duration_changes_nothing(long_turn, link, tmp_path):
    turn, heart = long_turn, Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path), KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait()
        turn.wait_renewed()
        link.cut_off()
        wait_passed(turn.duration / 2)
        link.mend()
        turn.wait_renewed(agent)
        assert agent.process.poll() is None and agent.stderr() == ""
        assert not heart.told_to_end() and len(heart.living()) == 1


def test_a_renewal_that_the_api_server_puts_off_comes_when_it_asked(long_turn, cluster, tmp_path):
    """Less than 1 s apart are the tries of a renewal that failed without such a word."""
    turn, heart = long_turn, Beats(tmp_path / "beats")
    turn.grant()
    with Gate(cluster) as gate:
        with turn.agent(beats(heart.path), KUBERNETES_SERVICE_PORT=gate.port) as agent:
            heart.wait()
            turn.wait_renewed(agent)
            gate.put_off(3)
            began = len(gate.renewals)
            turn.wait_renewed(agent)
            first, second = gate.renewals[began:]
            assert 3 <= second - first < 4 + NOISE
            # A pause of which the Lease would run out still leaves it one try, which takes a sixth.
            gate.put_off(3600)
            began = len(gate.renewals)
            turn.wait_renewed(agent)
            first, second = gate.renewals[began:]
            assert 2 <= second - first <= turn.duration * (2 / 3 - 3 / 10 - 1 / 6) + NOISE
            assert agent.process.poll() is None and not heart.told_to_end()


def test_a_renewal_whose_answer_was_lost_does_not_end_the_worker(turn, link, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path), KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait()
        link.mute = True
        turn.wait_renewed()  # applied, and nobody was told
        link.mute = False
        turn.wait_renewed()
        turn.wait_renewed()
        assert agent.process.poll() is None and len(heart.living()) == 1


def test_an_annotation_that_the_operator_writes_does_not_end_the_worker(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)) as agent:
        heart.wait()
        for number in range(3):
            turn.write(lambda lease, number=number: lease["metadata"]["annotations"].update(
                {"holdfast.dev/of-the-operator": str(number)}))
            turn.wait_renewed()
            assert turn.annotation("holdfast.dev/of-the-operator") == str(number)
        assert agent.process.poll() is None and len(heart.living()) == 1


def test_a_token_that_is_rotated_on_disk_is_used_by_the_next_request(long_turn, tmp_path):
    turn, heart = long_turn, Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)) as agent:
        heart.wait()
        turn.wait_renewed()
        turn.write_token("no-token-at-all")
        before = turn.get()["spec"]["renewTime"]
        wait_passed(turn.duration * 0.45)  # a renewal falls into this, and is refused
        assert turn.get()["spec"]["renewTime"] == before
        turn.write_token(turn.pod.token())
        turn.wait_renewed()
        assert agent.process.poll() is None and len(heart.living()) == 1


# -- an agent that is stopped ------------------------------------------------------------------


def test_an_agent_that_was_stopped_for_longer_than_its_lease_kills_before_anything_else(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf", "away")) as agent:
        heart.wait(2)
        turn.wait_renewed()
        agent.signal(signal.SIGSTOP)
        stopped = turn.get()
        wait_passed(turn.duration + 1)
        assert len(heart.living()) == 2
        # It would be let in again.
        agent.signal(signal.SIGCONT)
        agent.check_fenced("no renewal was acknowledged for")
        assert not heart.living()
        assert not heart.told_to_end(), "there was time for a SIGTERM, so not at once"
        assert turn.get() == stopped


def test_an_agent_that_is_stopped_before_its_child_starts_none_when_it_wakes(turn, cluster, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with Gate(cluster) as gate:
        gate.close()
        with turn.agent(beats(heart.path), KUBERNETES_SERVICE_PORT=gate.port) as agent:
            turn.wait_renewed()
            agent.signal(signal.SIGSTOP)
            gate.open()  # the acknowledgement is there when it wakes
            wait_passed(turn.duration + 1)
            given_to_the_next(turn)
            agent.signal(signal.SIGCONT)
            agent.check_fenced("attempt 2's")
    assert not heart.path.exists()


# -- as the first process of a container -------------------------------------------------------

CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")


def test_as_the_first_process_of_a_container_it_leaves_nobody_alive(turn, link, tmp_path):
    if subprocess.run([*CONTAINER, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody make a process namespace (unshare)")
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path, "deaf", "away"), prefix=CONTAINER, KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait(2)
        turn.wait_renewed()
        link.cut_off()
        renewed = turn.renewed()
        assert agent.wait() == EXIT_FENCED
        assert heart.last() <= turn.killed_by(renewed)
        assert turn.termination_log.read_text() == agent.stderr()


def test_a_child_that_no_signal_reaches_ends_with_the_agent_in_time(turn, link, common):
    heart = Beats(common / "beats")
    turn.grant()
    with turn.agent([*ANOTHER, *beats(heart.path)], prefix=NO_KILL, KUBERNETES_SERVICE_PORT=link.port) as agent:
        heart.wait()
        turn.wait_renewed()
        link.cut_off()
        renewed = turn.renewed()
        assert agent.wait() == EXIT_FENCED
        assert not heart.told_to_end()
        assert heart.last() <= turn.killed_by(renewed)
        assert "no renewal was acknowledged for" in turn.termination_log.read_text()


def test_a_daemon_that_no_signal_reaches_does_not_keep_a_finished_worker(turn, common):
    heart = Beats(common / "beats")
    turn.grant()
    script = f'"$@" & until [ -s {heart.path} ]; do sleep 0.05; done; exit 4'
    with turn.agent(["sh", "-c", script, "sh", *ANOTHER, *beats(heart.path)], prefix=NO_KILL) as agent:
        assert agent.wait() == 4
        ended = heart.last()
        assert turn.annotation(ENDED) == "4"
        wait_passed(1)
        assert heart.last() == ended
