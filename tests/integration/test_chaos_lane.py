"""Replicas that run batch/v1 Jobs are killed: each Job has one DurableJob, ends once, and says what that one says."""

import pytest

from chaos import Feeder, Killer, check_run, lapses, seeded, summary
from holdfast import QUICKEST_LEASES, runs
from lane import LANE, BatchJobs, batch_job
from localcluster import wait_for
from record import STORE_AS_JSON, Recorder
from replicas import Replicas

CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}
LIMIT = 60


def mixed(count, rng):
    """A third each succeeds at once, fails and then succeeds, and fails always."""
    return [batch_job(f"job-{number}", annotations=runs(rng.choice((0, 0, 1, 2)), ("0", "1,0", "3")[number % 3]),
                      backoffLimit=1) for number in range(count)]


def end_of(job):
    return next((one["type"] for one in job.get("status", {}).get("conditions", [])
                 if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None)


def judge(batch, record, names):
    """All Jobs have ended as their only DurableJobs have, and those are settled."""
    jobs = {item["metadata"]["name"]: item for item in batch.api("GET", batch.path)["items"]}
    durables = {}
    for versions in record.versions("job").values():
        durables.setdefault(versions[0].object["metadata"]["ownerReferences"][0]["uid"], []).append(versions[-1].object)
    for name in names:
        [durable] = durables[jobs[name]["metadata"]["uid"]]
        status = durable["status"]
        assert end_of(jobs[name]) == {"Succeeded": "Complete", "Failed": "Failed"}[status["phase"]], (jobs[name], status)
        assert status["settled"], status


@pytest.mark.parametrize("count, replicas, strikes", [
    (90, 2, 3), pytest.param(1000, 3, 15, marks=pytest.mark.long)])
def test_each_batch_job_ends_once_while_replicas_are_killed(cluster, namespace, count, replicas, strikes):
    rng = seeded("lane")
    batch = BatchJobs(cluster, namespace)
    made = mixed(count, rng)
    names = [body["metadata"]["name"] for body in made]
    with Recorder(cluster, namespace) as record, \
            Replicas(cluster, replicas, *LANE, leases=QUICKEST_LEASES) as running:
        killer = Killer(record, rng, running.all)
        with Feeder(batch, record, made, in_flight=60) as feeder:
            for part in range(1, strikes + 1):
                feeder.allowed = count * part // strikes
                killer.strike(most_versions=200, limit=20)
            record.wait_ended(names, 300)
            assert feeder.error is None, feeder.error

        def all_end():
            jobs = batch.api("GET", batch.path)["items"]
            return len(jobs) == count and all(end_of(job) for job in jobs)

        wait_for("all Jobs to report the end", all_end, LIMIT)
        wait_for("all DurableJobs to be settled", lambda: all(
            record.status(name).get("settled") for name in names), LIMIT)
        print(summary(record, killer.kills))
        check_run(record, names, killer.kills + lapses(running))
    judge(batch, record, names)
