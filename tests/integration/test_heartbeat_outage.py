"""The API server away for three lease durations: whose child is alive when it comes back is not lost,
and who fenced itself meanwhile is disrupted, not failed."""

import pytest

from agent import DURATION, wait_passed, work  # noqa: F401
from host_worker import Lives, beating, jobs, nodes, operator  # noqa: F401
from lives import budgets, outcomes, settle
from localcluster import wait_for
from losses import LOST_AFTER

pytestmark = pytest.mark.long

CLUSTER = {"nodes": 0, "kwok": False}
OUTAGE = 3 * DURATION
# Long enough that two thirds of it outlast the outage, and the start of a server on a busy machine.
PATIENT = {"leaseDurationSeconds": 4 * OUTAGE}


def be_away(cluster, seconds):
    cluster.kill_apiserver()
    wait_passed(seconds)
    cluster.start_apiserver()
    # How soon the scheduler looks again is not the matter here.
    cluster.kill_scheduler()
    cluster.start_scheduler()


def test_an_outage_of_three_lease_durations_loses_no_attempt_whose_child_lives(
    cluster, operator, nodes, jobs, tmp_path
):
    lives = {}

    def start(name, *plans, **spec):
        lives[name] = Lives(tmp_path / name)
        jobs.apply(beating(name, lives[name], *plans, **spec))
        lives[name].wait(1)

    # To start all that, and the servers anew, takes a busy machine a while.
    long = OUTAGE + 4 * LOST_AFTER
    for number in range(3):
        start(f"patient-{number}", {"run": long}, heartbeat=PATIENT)
        start(f"fenced-{number}", {"deaf": number == 0}, {"run": 2})
    start("ends", {"run": 5}, {"exit": 1})
    be_away(cluster, OUTAGE)
    alive = [name for name in lives if lives[name].living(1)]
    assert alive == [name for name in lives if name.startswith("patient")]
    # Who had ended before it had to fence itself has succeeded.
    assert budgets(settle(jobs, "ends", limit=60)) == (1, 0, 0)
    for number in range(3):
        name = f"fenced-{number}"
        assert budgets(settle(jobs, name, limit=60)) == (2, 0, 1)
        assert outcomes(jobs.status(name)) == ["Lost", "Succeeded"]
        assert jobs.status(name)["history"][0]["reason"] == "Fenced"
        assert lives[name].overlaps() == []
    for number in range(3):
        assert budgets(settle(jobs, f"patient-{number}", limit=120)) == (1, 0, 0)


def test_an_operator_that_is_killed_counts_no_silence_from_before_and_ends_nobody(
    cluster, operator, nodes, jobs, tmp_path
):
    lives = [Lives(tmp_path / f"goes-on-{number}") for number in range(3)]
    for number, one in enumerate(lives):
        jobs.apply(beating(f"goes-on-{number}", one, {"run": 2 * DURATION}))
    for one in lives:
        one.wait(1)
    for _ in range(2):
        operator.kill()
        operator.start()
    for number in range(3):
        assert budgets(settle(jobs, f"goes-on-{number}", limit=60)) == (1, 0, 0)
