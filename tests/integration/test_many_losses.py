"""A node dies with many jobs on it. Each job is lost once; they share the live reads of the node; and what
follows a verdict comes after it. How fast it goes is measured by tests/bench/losses.py."""

import concurrent.futures
import types

import pytest

from holdfast import OPERATOR_USER, Jobs, job, place
from localcluster import wait_for
from losses import CAME, LOST_AFTER, new_namespace, write_times
from many_losses import lease_reads, verdicts

CLUSTER = {"nodes": 0}
JOBS = 64
LIMIT = 120


@pytest.fixture(scope="module")
def lost(cluster, operator):
    cluster.add_node("dies")
    jobs = Jobs(cluster, new_namespace(cluster, "many"))
    names = [f"job-{number}" for number in range(JOBS)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: jobs.apply(job(name, lostAfterSeconds=LOST_AFTER)), names))

    def told():
        return [one["metadata"]["name"] for one in jobs.list() if place(one.get("status", {})).get("nodeName")]

    wait_for("all jobs to run", lambda: len(told()) == JOBS, LIMIT)
    cluster.add_node("other")
    offset = cluster.audit_offset()
    cluster.kubectl("cordon", "dies")
    cluster.kill_node("dies")
    wait_for("all verdicts", lambda: len(verdicts(cluster, offset, OPERATOR_USER)) == JOBS, LIMIT)
    # What follows is over: each job's next attempt runs on the other node.
    wait_for("all jobs to run again", lambda: len(told()) == JOBS, LIMIT)
    return types.SimpleNamespace(jobs=jobs, names=names, offset=offset)


def test_each_job_is_lost_once(lost):
    for status in (one["status"] for one in lost.jobs.list()):
        assert (status["attempt"], status["disruptions"], status["failures"]) == (2, 1, 0), status
        assert [entry["reason"] for entry in status["history"]] == ["NodeSilent"]


def test_the_jobs_share_the_live_reads_of_their_node(cluster, lost):
    reads = lease_reads(cluster, lost.offset, "dies", OPERATOR_USER)
    assert 1 <= len(reads) <= JOBS / 2
    # No verdict without a read before it.
    assert reads[0][0] <= min(verdicts(cluster, lost.offset, OPERATOR_USER, CAME).values())


def test_a_verdict_is_on_record_before_the_next_pod_is_asked_for(cluster, lost):
    told = verdicts(cluster, lost.offset, OPERATOR_USER, CAME)
    for one in lost.jobs.list():
        pod = place(one["status"])["podName"]
        [created] = write_times(cluster, lost.offset, "create", pod, user=OPERATOR_USER, moment=CAME)
        assert told[one["metadata"]["name"]] <= created
