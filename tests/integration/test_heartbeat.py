"""Jobs with a heartbeat on a real API server, with real agents and real workers."""

from agent import work  # noqa: F401
from host_worker import beating, jobs, lives, nodes, operator  # noqa: F401
from lives import settle

CLUSTER = {"nodes": 0, "kwok": False}


def test_a_job_with_a_heartbeat_succeeds(operator, nodes, jobs, lives):
    jobs.apply(beating("works", lives, {"run": 3}))
    assert settle(jobs, "works")["phase"] == "Succeeded"
