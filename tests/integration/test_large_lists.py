"""More bytes of finished jobs than one answer may have, on a real API server. `make test-long HOLDFAST_K8S=1.32.2`: on
another version, for instance one that streams no lists."""

import concurrent.futures
import time

import pytest

from finished import copy_finished
from holdfast import QUICK_LEASES, Operator, job
from localcluster import wait_for

pytestmark = pytest.mark.long

COUNT = 3000
BYTES = 100_000  # of each job's annotation: 300 MB together, and one answer has 256 MiB at most


def make_finished(jobs, number):
    body = job(f"old-{number}")
    body["metadata"]["annotations"] = {"example.com/notes": "x" * BYTES}
    made = jobs.apply(body)
    made["status"] = {"phase": "Cancelled", "attempt": 0, "completionTime": "2026-03-01T12:00:00Z",
                      "startTime": "2026-03-01T12:00:00Z"}
    jobs.api("PUT", f"{jobs.path}/old-{number}/status", made)


def test_an_operator_starts_where_a_kind_is_larger_than_one_answer_may_be(cluster, jobs):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(make_finished, jobs, number) for number in range(COUNT)]:
            done.result()
    operator = Operator(cluster, leases=QUICK_LEASES)
    operator.start(limit=300)
    try:
        jobs.apply(job("new"))
        jobs.wait_running("new", limit=120)
        # A job counts from its first look on.
        wait_for("all jobs to count", lambda: operator.metric("holdfast_jobs", phase="Cancelled") == COUNT, 120)
    finally:
        operator.kill()


FIRST = 1_000_000
FINISHED = 100_000


def test_an_operator_starts_where_a_hundred_thousand_jobs_have_ended(cluster, jobs):
    with Operator(cluster, leases=QUICK_LEASES):
        jobs.apply(job(f"job-{FIRST}"))
        jobs.end_pod(jobs.wait_running(f"job-{FIRST}"))
        jobs.wait(f"job-{FIRST}", lambda status: status.get("phase") == "Succeeded", 60)
    copy_finished(cluster, jobs, f"job-{FIRST}", [f"job-{FIRST + number}" for number in range(1, FINISHED)])
    operator = Operator(cluster, leases=QUICK_LEASES)
    began = time.monotonic()
    operator.start(limit=400)
    try:
        print(f"ready after {time.monotonic() - began:.1f} s, {operator.metric('process_resident_memory_bytes')}")
        jobs.apply(job("new"))
        # Not its pod: the scheduler may still be reading.
        jobs.wait("new", lambda status: status.get("attempt") == 1, 120)
        # A job counts from its first look on, and a busy machine takes minutes for so many.
        wait_for("all jobs to count", lambda: operator.metric("holdfast_jobs", phase="Succeeded") == FINISHED, 300)
    finally:
        operator.kill()
