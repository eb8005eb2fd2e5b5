"""examples/workers with the real operator: the example's pool and job, as their files say, with worker pods that
run as processes of this machine."""

import json

import yaml

from agent import agent_binary
from fake_pool import WORKER
from host_node import HOSTED
from localcluster import wait_for
from pools import LIMIT, jobs, nodes, operator, pools, work  # noqa: F401
from worker_examples import (  # noqa: F401
    EXAMPLES, PAUSE, PAYLOAD, command, database, go_build, language, primes, rows,
)

CLUSTER = {"nodes": 0, "kwok": False}


def example(kind):
    return yaml.safe_load((EXAMPLES / f"workers/{kind}.yaml").read_text())


def apply_pool(pools, program, environment):  # noqa: F811
    """The example's pool, with this program and without its Secret."""
    pool = example("pool")
    template = pool["spec"].pop("template")
    [container] = template["spec"]["containers"]
    del container["envFrom"]
    container["command"] = [str(word) for word in program]
    container["env"] = [{"name": name, "value": str(value)} for name, value in environment.items()]
    template["spec"].update(HOSTED, restartPolicy="Never", terminationGracePeriodSeconds=10)
    # Two workers, so a successor need not wait for a new one.
    pools.apply("primes", template=template, **pool["spec"] | {"minWorkers": 2})
    pools.wait_live("primes", 2)


def kept(pools, job_uid):  # noqa: F811
    """The job's checkpoints in the worker Leases."""
    reports = [lease["metadata"].get("annotations", {}).get(WORKER) for lease in pools.leases("primes").values()]
    return {one.get("checkpoint") for report in reports if report for one in json.loads(report)["attempts"]
            if one["job"] == job_uid}


def test_a_job_goes_on_on_another_worker_after_its_own_was_killed(
        operator, nodes, jobs, pools, database, command, language):  # noqa: F811
    apply_pool(pools, command, database.environment() | {"AGENT_PROGRAM": agent_binary()})
    body = example("job")
    name = body["metadata"]["name"] = f"primes-{language}"
    # Only a job with stages keeps results. This stage finds nothing more: 1 is no prime.
    later = {"name": "later", "workerPool": {"name": "primes"}, "payload": '{"from": 1, "to": 1, "pageSize": 1}'}
    body["spec"].update(payload=json.dumps(PAYLOAD), message=PAUSE, stages=[later])
    uid = jobs.apply(body)["metadata"]["uid"]
    wait_for("the first checkpoint", lambda: "100" in kept(pools, uid), LIMIT)

    [run] = jobs.status(name)["runs"]
    nodes.find(run["workerName"]).kill()
    wait_for("the next attempt's checkpoint", lambda: "200" in kept(pools, uid), LIMIT)
    jobs.patch(name, message="{}")

    status = jobs.wait_phase(name, "Succeeded", "Failed")
    assert status["phase"] == "Succeeded"
    assert [(one["attempt"], one["outcome"]) for one in status["history"]] == [
        (1, "Lost"), (2, "Succeeded"), (3, "Succeeded")]
    assert [json.loads(stage["result"]) for stage in status["stages"]] == [
        {"primes": 168, "upTo": 1000}, {"primes": 168, "upTo": 1}]
    assert rows(database, uid) == {1: primes(1, 100), 2: primes(101, 1000)}


def test_an_unusable_payload_fails_the_job_at_its_first_attempt(
        operator, jobs, pools, database, command, language):  # noqa: F811
    apply_pool(pools, command, database.environment() | {"AGENT_PROGRAM": agent_binary()})
    body = example("job")
    name = body["metadata"]["name"] = f"bad-{language}"
    body["spec"]["payload"] = "no JSON"
    jobs.apply(body)
    status = jobs.wait_phase(name, "Succeeded", "Failed")
    assert (status["phase"], status["attempt"]) == ("Failed", 1)
