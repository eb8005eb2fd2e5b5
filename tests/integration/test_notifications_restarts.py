"""No event is lost by an operator that is killed, nor by a receiver that is away."""

import time

import pytest

from holdfast import QUICKEST_LEASES, Operator, job, runs
from webhooks import Receiver, targets_flags

KILLS = 5


@pytest.fixture(scope="module")
def receiver(tmp_path_factory):
    with Receiver(tmp_path_factory.mktemp("receiver")) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def operator(cluster, receiver, tmp_path_factory):
    flags = targets_flags(tmp_path_factory.mktemp("targets"), [receiver.target("chat")])
    with Operator(cluster, *flags, leases=QUICKEST_LEASES) as operator:
        yield operator


def check_all_told(jobs, receiver, names):
    """Each job's event came, at least once, always with the same id and body, and its outbox is empty."""
    for name in names:
        jobs.wait(name, lambda s: "completionTime" in s and not s.get("outbox"), 180)
        uid = jobs.get(name)["metadata"]["uid"]
        messages = receiver.of(name)
        assert {one.id for one in messages} == {f"{uid}/1"}, name
        assert len({one.body for one in messages}) == 1, name
        receiver.verify(messages[-1])
        assert "NotificationFailed" not in jobs.conditions(name)


def test_an_operator_that_is_killed_at_any_moment_forgets_no_event(jobs, operator, receiver):
    names = [f"killed-{number}" for number in range(2 * KILLS)]
    for number in range(KILLS):
        for name in names[2 * number:2 * number + 2]:
            jobs.apply(job(name, annotations=runs(0), notify=["chat"]))
        # Not to wait for anything, but to kill at another moment of the jobs' lives each time.
        time.sleep(0.4 * number)
        operator.kill()
        operator.start()
    check_all_told(jobs, receiver, names)


def test_a_receiver_that_is_away_gets_all_when_it_is_back(jobs, operator, receiver):
    receiver.stop()
    names = [f"away-{number}" for number in range(5)]
    for name in names:
        jobs.apply(job(name, annotations=runs(0), notify=["chat"]))
        jobs.wait_phase(name, "Succeeded")
    operator.kill()
    operator.start()
    for name in names:
        assert jobs.status(name)["outbox"][0]["targets"] == ["chat"]
        assert not receiver.of(name)
    receiver.start()
    check_all_told(jobs, receiver, names)
