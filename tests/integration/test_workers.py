"""Jobs of a WorkerPool on a real API server, with real agents in worker pods that run as processes."""

import time

from agent import DURATION
from host_worker import Lives
from lives import outcomes
from localcluster import wait_for
from pools import (  # noqa: F401
    LIMIT, jobs, lives, nodes, operator, pooled, pools, work,
)
from queues import Queues, queue

CLUSTER = {"nodes": 0, "kwok": False}


def clock():
    """As a command's lives have it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def place_of(jobs, name):
    runs = jobs.status(name).get("runs") or [{}]
    return runs[0]


def reason(status):
    return (status.get("waiting") or {}).get("reason")


def ended(jobs, name, limit=LIMIT):
    return jobs.wait(name, lambda s: s.get("phase") in ("Succeeded", "Failed", "Cancelled"), limit)


def host_pod(nodes, jobs, name):
    """The pod of the worker that the job is on."""
    worker = wait_for(f"{name} to have a worker", lambda: place_of(jobs, name).get("workerName"), LIMIT)
    return wait_for(f"{worker} to run", lambda: nodes.find(worker), LIMIT)


def test_a_job_runs_on_a_warm_worker_without_a_pod_of_its_own(operator, jobs, pools, lives):
    pools.apply("small")
    pools.wait_live("small", 1)
    jobs.apply(pooled("first", "small", lives, {"run": 0, "result": "42"}))
    status = ended(jobs, "first")
    assert (status["phase"], status["attempt"]) == ("Succeeded", 1)
    assert status["history"][0]["workerName"] in pools.pods("small")
    assert "podName" not in status["history"][0]
    assert len(lives.all(1)) == 1
    assert [pod for pod in jobs.pods() if "holdfast.dev/job-uid" in pod["metadata"].get("labels", {})] == []


def test_a_command_that_fails_is_tried_again(operator, jobs, pools, lives):
    pools.apply("small")
    jobs.apply(pooled("again", "small", lives, {"run": 0, "prints": "begins\n  no input", "exit": 3}, {"run": 0}))
    status = ended(jobs, "again")
    assert (status["phase"], status["failures"]) == ("Succeeded", 1)
    assert outcomes(status) == ["Failed", "Succeeded"]
    assert status["history"][0]["exitCode"] == 3
    assert status["history"][0]["message"] == "container command ended with exit code 3\nbegins\n  no input"


def test_slots_run_side_by_side_and_others_wait(operator, jobs, pools, tmp_path):
    pools.apply("two", slotsPerWorker=2, maxWorkers=1)
    every = [Lives(tmp_path / f"lives-{number}") for number in range(4)]
    for number, one in enumerate(every):
        jobs.apply(pooled(f"side-{number}", "two", one, {"run": 1}))
    for number in range(4):
        assert ended(jobs, f"side-{number}")["phase"] == "Succeeded"
    spans = [one.all(1)[0] for one in every]
    most = max(sum(a.first <= b.first <= a.last for a in spans) for b in spans)
    assert most == 2


def test_a_worker_that_is_killed_loses_its_attempt_and_another_one_goes_on(operator, nodes, jobs, pools, lives):
    pools.apply("pair", minWorkers=2)
    pools.wait_live("pair", 2)
    jobs.apply(pooled("killed", "pair", lives, {}, {"run": 0}))
    lives.wait(1)
    host_pod(nodes, jobs, "killed").kill()
    status = ended(jobs, "killed")
    assert (status["phase"], status["disruptions"]) == ("Succeeded", 1)
    assert outcomes(status) == ["Lost", "Succeeded"]
    assert status["history"][0]["reason"] == "WorkerLost"
    assert lives.overlaps() == []
    pools.wait_live("pair", 2)


def test_a_worker_that_is_cut_off_stops_before_its_successor_begins(operator, nodes, jobs, pools, lives):
    pools.apply("pair", minWorkers=2)
    pools.wait_live("pair", 2)
    jobs.apply(pooled("cut", "pair", lives, {}, {"run": 0}))
    lives.wait(1)
    pod = host_pod(nodes, jobs, "cut")
    pod.link.cut_off()
    pod.lose()
    status = ended(jobs, "cut", LIMIT + 2 * DURATION)
    assert outcomes(status) == ["Lost", "Succeeded"]
    assert lives.overlaps() == []
    assert lives.living(1) == []
    pod.find()


def test_cancelled_means_that_nothing_runs(operator, jobs, pools, lives):
    pools.apply("small")
    jobs.apply(pooled("stop", "small", lives, {"deaf": True, "away": True}))
    lives.wait(1, count=2)
    jobs.patch("stop", cancel=True)
    assert ended(jobs, "stop", LIMIT + 30)["phase"] == "Cancelled"
    assert lives.living(1) == []


def test_a_message_reaches_the_command(operator, jobs, pools, lives):
    pools.apply("small")
    jobs.apply(pooled("told", "small", lives, {"message": "enough"}))
    lives.wait(1)
    jobs.patch("told", message="enough")
    assert ended(jobs, "told")["phase"] == "Succeeded"


def test_the_next_attempt_goes_on_from_the_checkpoint(operator, nodes, jobs, pools, lives):
    pools.apply("small")
    jobs.apply(pooled("kept", "small", lives, {"checkpoint": "frame 12"}, {"expects": "frame 12", "run": 0}))
    wait_for("the checkpoint", lambda: lives.times("kept", 1), LIMIT)
    host_pod(nodes, jobs, "kept").kill()
    status = ended(jobs, "kept")
    assert outcomes(status) == ["Lost", "Succeeded"]


def test_a_worker_that_is_deleted_finishes_or_hands_back(operator, nodes, jobs, pools, lives, cluster):
    pools.apply("small")
    jobs.apply(pooled("finish", "small", lives, {"run": 2}))
    lives.wait(1)
    worker = place_of(jobs, "finish")["workerName"]
    cluster.api("DELETE", f"/api/v1/namespaces/{jobs.namespace}/pods/{worker}")
    status = ended(jobs, "finish")
    assert outcomes(status) == ["Succeeded"]
    wait_for("the worker to be gone", lambda: worker not in pools.pods("small"), LIMIT)
    pools.wait_live("small", 1)


def test_a_short_grace_of_the_pod_still_leaves_sigterm_and_a_moment(operator, jobs, pools, lives, cluster):
    pools.apply("small", minWorkers=2, stopGraceSeconds=60, pod={"terminationGracePeriodSeconds": 600})
    jobs.apply(pooled("drained", "small", lives, {"deaf": True}, {"run": 0}))
    lives.wait(1)
    worker = place_of(jobs, "drained")["workerName"]
    asked = clock()
    cluster.api("DELETE", f"/api/v1/namespaces/{jobs.namespace}/pods/{worker}", {"gracePeriodSeconds": 5})
    told = wait_for("SIGTERM", lambda: lives.times("term", 1), LIMIT)
    assert told[0][2] - asked < 3
    status = ended(jobs, "drained")
    assert outcomes(status) == ["Lost", "Succeeded"]
    assert status["history"][0]["reason"] == "WorkerStopped", "the agent had a second to say so"
    assert 3 < lives.last(1) - asked < 5, "it was killed a second before its pod"


def test_a_command_that_ignores_sigterm_keeps_its_slot_for_its_own_grace_alone(operator, jobs, pools, lives):
    pools.apply("one", maxWorkers=1, stopGraceSeconds=2, pod={"terminationGracePeriodSeconds": 600})
    jobs.apply(pooled("deaf", "one", lives, {"deaf": True, "away": True}, {"run": 0}, attemptDeadlineSeconds=2))
    lives.wait(1, count=2)
    status = ended(jobs, "deaf", 20)
    assert outcomes(status) == ["DeadlineExceeded", "Succeeded"]
    assert lives.overlaps() == []


def test_a_worker_that_is_gated_waits_without_limit_and_says_so(operator, jobs, pools, cluster):
    pools.apply("gated", startDeadlineSeconds=1, pod={"schedulingGates": [{"name": "example.com/quota"}]})
    [before] = wait_for("its pod", lambda: list(pools.pods("gated").values()), LIMIT)
    status = pools.wait("gated", "to say what it waits for", lambda s: s.get("message"))
    assert "its scheduling waits for example.com/quota" in status["message"]
    created = clock()
    wait_for("some seconds to pass", lambda: clock() > created + 5, 10)
    [after] = pools.pods("gated").values()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    status = pools.status("gated")
    assert status["failedStarts"] == 0 and status["starting"] == 1
    stalled = [one for one in status["conditions"] if one["type"] == "Stalled"]
    assert stalled[0]["status"] == "False"


def test_an_attempt_that_alone_runs_its_worker_out_of_memory_has_failed(operator, nodes, jobs, pools, lives):
    pools.apply("eats", slotsPerWorker=2)
    jobs.apply(pooled("eater", "eats", lives, {}, {"run": 0}))
    lives.wait(1)
    host_pod(nodes, jobs, "eater").run_out_of_memory()
    status = ended(jobs, "eater")
    assert outcomes(status) == ["Failed", "Succeeded"]
    assert (status["history"][0]["reason"], status["history"][0]["exitCode"]) == ("OOMKilled", 137)
    assert (status["failures"], status["disruptions"]) == (1, 0)


def test_those_that_are_killed_together_are_alone_from_then_on(operator, nodes, jobs, pools, tmp_path):
    pools.apply("eat", slotsPerWorker=2, maxWorkers=2)
    pools.wait_live("eat", 1)
    every = {name: Lives(tmp_path / name) for name in ("guilty", "other")}
    for name, one in every.items():
        jobs.apply(pooled(name, "eat", one, {}, {"run": 3}))
    for one in every.values():
        one.wait(1)
    assert host_pod(nodes, jobs, "guilty") is host_pod(nodes, jobs, "other")
    host_pod(nodes, jobs, "guilty").run_out_of_memory()
    for name, one in every.items():
        one.wait(2)
        assert jobs.status(name)["runs"][0]["alone"] is True
    for name in every:
        status = ended(jobs, name)
        assert outcomes(status) == ["Lost", "Succeeded"]
        assert status["history"][0]["reason"] == "WorkerOOMKilled"
    places = {name: jobs.status(name)["history"][1]["workerName"] for name in every}
    spans = [one.all(2)[0] for one in every.values()]
    together = spans[0].first <= spans[1].last and spans[1].first <= spans[0].last
    assert not together or places["guilty"] != places["other"]


def test_an_operator_that_is_killed_forgets_nothing(operator, jobs, pools, lives):
    pools.apply("small")
    jobs.apply(pooled("on", "small", lives, {"run": 4}))
    lives.wait(1)
    operator.kill()
    operator.start()
    status = ended(jobs, "on")
    assert outcomes(status) == ["Succeeded"]
    assert len(lives.all()) == 1


def test_a_job_of_many_runs_uses_all_slots(operator, jobs, pools, tmp_path):
    pools.apply("wide", minWorkers=2, slotsPerWorker=4)
    pools.wait_live("wide", 2)
    lives = Lives(tmp_path / "many")
    jobs.apply(pooled("many", "wide", lives, {"run": 0}, completions=40, parallelism=8, completionMode="Indexed"))
    status = ended(jobs, "many", 2 * LIMIT)
    assert status["phase"] == "Succeeded"
    assert status["succeeded"] == 40
    assert len(lives.all()) == 40


def test_a_job_without_its_pool_says_so_and_gives_its_permit_back(operator, jobs, pools, work, cluster, lives, tmp_path):
    Queues(cluster, work).apply(queue("encode", concurrency=1))
    pools.apply("full", maxWorkers=1)
    jobs.apply(pooled("permit-holder", "full", lives))
    lives.wait(1)
    jobs.apply(pooled("permit-first", "full", Lives(tmp_path / "first"), queue={"name": "encode"}))
    jobs.wait("permit-first", lambda s: reason(s) == "WorkerAwaited", LIMIT, "first to have the permit and no slot")
    jobs.apply(pooled("permit-second", "other", Lives(tmp_path / "second"), {"run": 0}, queue={"name": "encode"}))
    pools.delete("full")
    status = jobs.wait("permit-first", lambda s: reason(s) == "PoolMissing", LIMIT, "first to miss its pool")
    assert status["phase"] == "Pending"
    jobs.wait("permit-second", lambda s: reason(s) == "PoolMissing", LIMIT, "second to miss its pool")
    pools.apply("other", maxWorkers=1)
    assert ended(jobs, "permit-second")["phase"] == "Succeeded"
