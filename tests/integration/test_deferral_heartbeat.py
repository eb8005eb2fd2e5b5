"""Deferrals with a heartbeat, end to end: what the operator makes of a worker that says "not yet" in its pod."""

import pytest

from agent import work  # noqa: F401
from holdfast import job
from host_node import HOSTED
from host_worker import HEARTBEAT, SOON, jobs, nodes, operator  # noqa: F401

CLUSTER = {"nodes": 0, "kwok": False}


@pytest.mark.usefixtures("nodes")
def test_an_hour_of_questions_is_one_pod(operator, jobs, tmp_path):
    told = tmp_path / "told"
    rules = [{"action": "Defer", "deferSeconds": 1, "onExitCodes": {"operator": "In", "values": [75]}}]
    jobs.apply(job("asks", command=["sh", "-c", f"echo >>{told}; [ $(wc -l <{told}) -ge 20 ] || exit 75"], heartbeat=HEARTBEAT, retryBackoff=SOON, pod=HOSTED, backoffLimit=0,
                   podFailurePolicy={"rules": rules}))
    waiting = jobs.wait("asks", lambda s: s.get("waiting", {}).get("reason") == "Deferred", 60)["waiting"]
    assert 'has said "not yet"' in waiting["message"] and "same pod" in waiting["nextAction"], waiting
    status = jobs.wait_phase("asks", "Succeeded", "Failed", limit=120)
    assert (status["phase"], status["attempt"], status["failures"]) == ("Succeeded", 1, 0), status
    assert len(jobs.pods("asks")) == 1 and len(told.read_text().splitlines()) == 20
