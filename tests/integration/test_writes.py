"""What a job costs the API server: the operator's writes, counted in the audit log, whatever their
answer was."""

import time

import pytest

from holdfast import Jobs, job, place, runs
from lives import (BY_HAND, LONG_BACKOFF, SHORT_BACKOFF, flush_audit, operator_writes, settle, wait_events, wait_told)
from localcluster import wait_for
from losses import new_namespace

pytestmark = pytest.mark.usefixtures("operator")

STATUS = ("update", "durablejobs/status", 200)
POD = ("create", "pods", 201)
RELEASE = ("patch", "pods", 200)
EVENT = ("create", "events", 201)
REST = 60


def cost(cluster, offset, jobs):
    """The operator's writes in the jobs' namespace. What it still had to write would have come
    before the end of a job that was applied later."""
    later = Jobs(cluster, jobs.namespace)
    later.apply(job("later", pod=BY_HAND))
    later.end_pod(later.wait_pod("later", lambda pod: True))
    settle(later, "later")
    flush_audit(cluster, offset)
    return [
        (write.verb, write.what, write.code)
        for write in operator_writes(cluster, offset, jobs.namespace)
        if not write.name.startswith("later")
    ]


def test_a_job_whose_pod_ends_at_once_costs_four_writes_and_one_event(cluster, jobs):
    offset = cluster.audit_offset()
    jobs.apply(job("short", pod=BY_HAND))
    jobs.end_pod(jobs.wait_pod("short", lambda pod: True))
    assert settle(jobs, "short")["phase"] == "Succeeded"
    wait_events(jobs, "short", "Completed")
    writes = cost(cluster, offset, jobs)
    writes.remove(EVENT)  # beside the others
    assert writes == [STATUS, POD, STATUS, RELEASE]


def test_the_write_that_releases_a_pod_drops_the_record_of_its_field_owners(cluster, jobs):
    """Else the API server decodes and encodes the record at each later write of the pod, and at its deletion."""
    jobs.apply(job("released", pod=BY_HAND))
    pod = jobs.wait_pod("released", lambda pod: True)
    assert pod["metadata"]["managedFields"]
    jobs.end_pod(pod)
    settle(jobs, "released")
    released = wait_for("the pod's release", lambda: next(
        (pod["metadata"] for pod in jobs.pods("released") if "finalizers" not in pod["metadata"]), None), 60)
    assert "managedFields" not in released
    # A later write does not bring the record back.
    path = f"/api/v1/namespaces/{jobs.namespace}/pods/{released['name']}"
    status, labelled = cluster.api("PATCH", path, {"metadata": {"labels": {"seen": "yes"}}}, content_type="merge")
    assert status == 200 and labelled["metadata"]["labels"]["seen"] == "yes"
    assert "managedFields" not in labelled["metadata"]


def test_a_job_whose_pod_runs_for_longer_costs_five_writes_and_one_event(cluster, jobs):
    """That it runs is on record once it has for 3 s."""
    offset = cluster.audit_offset()
    jobs.apply(job("longer", annotations=runs(8)))
    status = settle(jobs, "longer")
    assert status["phase"] == "Succeeded" and place(status)["nodeName"]
    wait_events(jobs, "longer", "Completed")
    writes = cost(cluster, offset, jobs)
    writes.remove(EVENT)
    assert writes == [STATUS, POD, STATUS, STATUS, RELEASE]


def test_each_failed_attempt_costs_four_more_writes_and_one_event(cluster, jobs):
    offset = cluster.audit_offset()
    jobs.apply(job("fails", pod=BY_HAND, retryBackoff=SHORT_BACKOFF))
    jobs.end_pod(jobs.wait_pod("fails", lambda pod: True), phase="Failed", exit_code=1)
    jobs.wait("fails", lambda s: s.get("attempt") == 2, 60)
    jobs.end_pod(jobs.wait_pod("fails", lambda pod: True))
    assert settle(jobs, "fails")["phase"] == "Succeeded"
    wait_events(jobs, "fails", "AttemptFailed", "Completed")
    attempt = [STATUS, POD, STATUS, RELEASE]
    assert sorted(cost(cluster, offset, jobs)) == sorted(attempt + attempt + [EVENT, EVENT])


def test_a_job_that_is_created_suspended_costs_one_write(cluster, jobs):
    offset = cluster.audit_offset()
    jobs.apply(job("sleeps", suspend=True))
    jobs.wait_phase("sleeps", "Suspended")
    assert cost(cluster, offset, jobs) == [STATUS]


def test_a_change_of_the_spec_that_asks_for_nothing_costs_one_write(cluster, jobs):
    jobs.apply(job("runs"))
    wait_told(jobs, "runs", "PodRunning")
    offset = cluster.audit_offset()
    generation = jobs.patch("runs", backoffLimit=3)["metadata"]["generation"]
    jobs.wait("runs", lambda s: s["observedGeneration"] == generation, 60)
    assert cost(cluster, offset, jobs) == [STATUS]


def renews(write):
    return (write.verb, write.what) == ("update", "leases") and write.name.startswith("holdfast-member-")


def assert_silent(cluster, seconds):
    """Nobody waits for anything: the operator renews its member Lease, and writes nothing else,
    nowhere."""
    offset = cluster.audit_offset()
    end = time.monotonic() + seconds

    def over():
        # Read once: the log grows meanwhile.
        writes = operator_writes(cluster, offset)
        assert [write for write in writes if not renews(write)] == []
        return writes and time.monotonic() >= end

    wait_for(f"{seconds} s to pass", over, seconds + 60, poll=0.5)
    # The log was alive meanwhile: nodes renew their Leases.
    assert any(event.get("objectRef", {}).get("resource") == "leases" for event in cluster.audit_events(offset)[0])


@pytest.mark.long
def test_at_rest_nothing_but_lease_renewals_is_written_for_a_minute(cluster):
    jobs = Jobs(cluster, new_namespace(cluster, "at-rest"))
    failing = dict(annotations=runs(0, exit_code=1), retryBackoff=LONG_BACKOFF)
    for number in range(5):
        jobs.apply(job(f"succeeds-{number}", annotations=runs(0)))
    jobs.apply(job("gives-up", annotations=runs(0, exit_code=1), backoffLimit=0))
    jobs.apply(job("cancelled", cancel=True))
    jobs.apply(job("suspended", suspend=True))
    jobs.apply(job("backs-off", **failing))
    jobs.apply(job("runs", activeDeadlineSeconds=3600, attemptDeadlineSeconds=3000))
    jobs.apply(job("nowhere", pod={"nodeSelector": {"no": "where"}}, startDeadlineSeconds=3600))
    jobs.apply(job("expires", annotations=runs(0), ttlSecondsAfterFinished=3600))
    ended = [item["metadata"]["name"] for item in jobs.list()]
    for name in ("suspended", "backs-off", "runs", "nowhere"):
        ended.remove(name)
    settle(jobs, *ended)
    jobs.wait_phase("suspended", "Suspended")
    jobs.wait_phase("backs-off", "Backoff")
    wait_told(jobs, "runs", "PodRunning")
    wait_told(jobs, "nowhere", "PodUnschedulable")
    wait_events(jobs, "backs-off", "AttemptFailed")
    wait_events(jobs, "gives-up", "AttemptFailed", "BackoffLimitExceeded")
    wait_events(jobs, "cancelled", "Cancelled")
    for name in [*(f"succeeds-{number}" for number in range(5)), "expires"]:
        wait_events(jobs, name, "Completed")
    flush_audit(cluster, cluster.audit_offset())
    assert_silent(cluster, REST)
