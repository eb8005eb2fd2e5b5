"""A roll-back beside warm workers: see test_roll_back.py."""

import pytest

from localcluster import wait_for
from newer import NEWER, NOT_KNOWN, install_newer, write_as_newer
from pools import (  # noqa: F401
    LIMIT, jobs, lives, nodes, operator, pooled, pools, work,
)

CLUSTER = {"nodes": 0, "kwok": False}


@pytest.fixture(scope="module", autouse=True)
def newer_definitions(cluster):
    install_newer(cluster)


def reason(status):
    return (status.get("waiting") or {}).get("reason")


def stalled(pools, name):
    conditions = {one["type"]: one for one in pools.status(name).get("conditions", [])}
    return (conditions["Stalled"]["status"], conditions["Stalled"]["reason"]) == ("True", NOT_KNOWN)


def test_an_attempt_on_a_worker_outlives_the_roll_back(operator, jobs, pools, lives):
    pools.apply("small")
    pools.wait_live("small", 1)
    jobs.apply(pooled("first", "small", lives, {"run": 6}, {"run": 0}))
    lives.wait(1)
    operator.kill()
    job = write_as_newer(jobs, f"{jobs.path}/first", 5)
    pool = write_as_newer(jobs, f"{pools.path}/small", 6)
    operator.start()
    status = jobs.wait_phase("first", "Succeeded", limit=LIMIT)
    assert (status["attempt"], status[NEWER], job[NEWER]) == (1, 5, 5)
    assert pool["conditions"] and wait_for(
        "the pool to say that nothing runs", lambda: pools.status("small").get("busy") == 0 and pools.status("small"),
        LIMIT)
    after = pools.status("small")
    assert after[NEWER] == 6 and all(one[NEWER] == 6 for one in after["conditions"])


def test_a_pool_of_which_not_all_is_known_goes_on_and_begins_nothing(operator, jobs, pools, lives):
    pools.apply("newer", minWorkers=1, maxWorkers=2)
    pools.wait_live("newer", 1)
    jobs.apply(pooled("runs", "newer", lives, {"run": 8}))
    lives.wait(1)
    workers = set(pools.pods("newer"))
    pools.patch("newer", **{NEWER: 1}, minWorkers=2, idleSeconds=0)
    wait_for("the pool to say so", lambda: stalled(pools, "newer"), LIMIT)
    jobs.apply(pooled("waits", "newer", lives, {"run": 0}))
    status = jobs.wait("waits", lambda s: reason(s) == NOT_KNOWN, LIMIT)
    assert (status["phase"], status["attempt"]) == ("Pending", 0)
    assert "WorkerPool" in status["waiting"]["message"] and NEWER in status["waiting"]["message"]
    assert jobs.conditions("waits")["Stalled"]["reason"] == NOT_KNOWN
    assert jobs.wait_phase("runs", "Succeeded", limit=LIMIT)["attempt"] == 1
    assert set(pools.pods("newer")) == workers
    pools.patch("newer", **{NEWER: None})
    assert jobs.wait_phase("waits", "Succeeded", limit=LIMIT)["attempt"] == 1
    assert not stalled(pools, "newer")
