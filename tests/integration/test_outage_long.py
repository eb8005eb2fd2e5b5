"""The API server is down for a minute, and for five: no attempt is lost by that, and everything goes on
within a minute of its return."""

import time

import pytest

from holdfast import job, runs
from localcluster import wait_for
from outages import NODES, assert_nothing_lost, run_on_each_node

pytestmark = pytest.mark.usefixtures("operator")

GOES_ON = 60
PACE = {"initialSeconds": 20, "factor": 1, "maxSeconds": 20, "jitterPercent": 0}


@pytest.mark.parametrize("minutes", [1, 5])
def test_an_api_server_that_is_down_for_minutes_loses_no_attempt_and_all_goes_on_within_one(
        cluster, jobs, minutes):
    run_on_each_node(jobs)
    jobs.apply(job("retries", annotations=runs(0, "1,0"), retryBackoff=PACE))
    jobs.apply(job("sleeps", suspend=True, annotations=runs(0)))
    jobs.wait_phase("retries", "Backoff")
    jobs.wait_phase("sleeps", "Suspended")
    cluster.kill_apiserver()
    began = time.monotonic()
    wait_for("the outage to last", lambda: time.monotonic() - began > 60 * minutes, 60 * minutes + 30,
             poll=0.5)
    cluster.start_apiserver()
    restored = time.time()
    # What was due meanwhile, what is asked for now, and what is new.
    jobs.patch("sleeps", suspend=False)
    jobs.apply(job("late", annotations=runs(0)))
    for name in ("retries", "sleeps", "late"):
        status = jobs.wait_phase(name, "Succeeded", limit=GOES_ON)
        assert status["disruptions"] == 0, name
    print(f"after {minutes} min: all goes on within {time.time() - restored:.1f} s")
    assert_nothing_lost(cluster, jobs, NODES, restored)
