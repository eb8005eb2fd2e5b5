"""A roll-back: the CRDs and the statuses are those of a newer version, and this operator is the older one. No job is
left without an end, and what this operator does not know it writes back as it was."""

import copy

import pytest

from holdfast import QUICK_LEASES, TERMINAL, Operator, indexed, job, runs
from lane import LANE, BatchJobs, batch_job
from localcluster import wait_for
from newer import NEWER, NOT_KNOWN, install_newer, write_as_newer
from queues import Queues, queue

LIMIT = 90
SOON = {"initialSeconds": 1, "factor": 1, "maxSeconds": 1, "jitterPercent": 0}


@pytest.fixture(scope="module", autouse=True)
def newer_definitions(cluster):
    install_newer(cluster)


def check_kept(before, after):
    """What must outlive all writes of this operator."""
    assert after[NEWER] == before[NEWER]
    conditions = {one["type"]: one for one in after["conditions"]}
    for one in before.get("conditions", []):
        assert conditions[one["type"]].get(NEWER) == one[NEWER], one
    for one in before.get("stages", []):
        [now] = [stage for stage in after["stages"] if stage["name"] == one["name"]]
        assert now.get(NEWER) == one.get(NEWER), one
    kept = {one["attempt"]: one for one in after.get("history", [])}
    for one in before.get("history", []):
        assert kept.get(one["attempt"], one) == one


def end_running(jobs):
    """Plays the kubelets: whatever runs ends well. A pod that is being deleted may be gone by now."""
    for pod in jobs.pods():
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
            try:
                jobs.end_pod(pod)
            except AssertionError as error:
                assert "answered 404" in str(error)


def test_what_a_newer_operator_was_in_the_middle_of_ends(cluster, jobs, namespace):
    queues, batch = Queues(cluster, namespace), BatchJobs(cluster, namespace)
    with Operator(cluster, *LANE, leases=QUICK_LEASES) as operator:
        queues.apply(queue("narrow", concurrency=1))
        stages = [job("x", annotations=runs(600), retryBackoff=SOON)["spec"] | {"name": name}
                  for name in ("second-one", "third")]
        plain = [job(f"load-{number}", annotations=runs(600)) for number in range(20)]
        many = indexed("many", 6, 3, annotations=runs(600), retryBackoff=SOON)
        for body in plain + [
                many, job("one-failed", annotations=runs(0, "1,1,0"), retryBackoff=SOON | {"maxSeconds": 600,
                                                                                          "initialSeconds": 600}),
                job("staged", annotations=runs(1), stages=stages),
                job("rests", annotations=runs(600), suspend=True),
                job("gated", pod={"schedulingGates": [{"name": "test/wait"}]}),
                job("holds", annotations=runs(600), queue={"name": "narrow"}),
                job("stopping", annotations=runs(600))]:
            jobs.apply(body)
        batch.apply(batch_job("lane", annotations=runs(600), completions=2, parallelism=1))
        for name in ["stopping", "many", "holds", "lane", *(f"load-{number}" for number in range(20))]:
            jobs.wait_phase(name, "Running", limit=LIMIT)
        # A queue admits jobs of the same second in any order.
        jobs.apply(job("queued", annotations=runs(600), queue={"name": "narrow"}))
        jobs.wait("staged", lambda s: s.get("stage") == "second-one" and s["phase"] == "Running", LIMIT)
        jobs.wait_phase("one-failed", "Backoff", limit=LIMIT)
        jobs.wait_phase("rests", "Suspended", limit=LIMIT)
        jobs.wait("queued", lambda s: (s.get("waiting") or {}).get("reason") == "Queued", LIMIT)
        # An ended attempt in the history of a job with many runs.
        jobs.end_pod(jobs.pods("many")[0], "Failed", 1)
        jobs.wait("many", lambda s: s.get("failures") == 1, LIMIT)
        operator.kill()
        jobs.patch("stopping", cancel=True)
        # The newer operator takes over, and writes into each status what this one does not know.
        before = {one["metadata"]["name"]: write_as_newer(jobs, f"{jobs.path}/{one['metadata']['name']}", number)
                  for number, one in enumerate(jobs.list())}
        write_as_newer(jobs, f"{queues.path}/narrow", 77)
        # And it is rolled back, in the middle of everything.
        operator.start()
        jobs.patch("rests", suspend=False)
        jobs.patch("one-failed", retryBackoff=SOON)
        for pod in jobs.pods("gated"):
            jobs.api("PATCH", f"{jobs.pods_path}/{pod['metadata']['name']}",
                     {"spec": {"schedulingGates": None}}, content_type="merge")

        def all_ended():
            end_running(jobs)
            return all(one["status"].get("phase") in TERMINAL for one in jobs.list())

        wait_for("all jobs to end", all_ended, 240)
        for name, status in before.items():
            after = jobs.status(name)
            assert after["phase"] == ("Cancelled" if name == "stopping" else "Succeeded"), after
            check_kept(status, after)
        batch.wait_condition("lane", "Complete")
        told = queues.wait("narrow", lambda s: s.get("running") == 0, LIMIT)
        assert told[NEWER] == 77 and all(one[NEWER] == 77 for one in told["conditions"])
        assert "a write was refused" not in operator.log()


def test_a_word_that_this_version_does_not_know_stays(cluster, jobs):
    with Operator(cluster, leases=QUICK_LEASES) as operator:
        jobs.apply(job("word", annotations=runs(600), retryBackoff=SOON))
        jobs.end_pod(jobs.wait_running("word"), "Failed", 1)
        jobs.wait("word", lambda s: s.get("attempt") == 2 and s["phase"] == "Running", LIMIT)
        # Entries never change, so the newer operator's own end is what it wrote first.
        operator.kill()
        current = jobs.get("word")
        entry = copy.deepcopy(current["status"]["history"][0])
        current["status"]["history"].append(entry | {"attempt": 2, "outcome": "Preempted", NEWER: 5})
        current["status"]["attempt"] = 3
        current["status"]["runs"][0] |= {"attempt": 3, "startTime": "2026-01-02T03:04:05.000001Z", NEWER: 6}
        current["status"]["runs"][0].pop("podUID", None)
        jobs.api("PUT", f"{jobs.path}/word/status", current)
        operator.start()
        # Its attempt has no pod, so it is lost, and the next one is this version's.
        status = jobs.wait("word", lambda s: s.get("attempt") == 4 and s["phase"] == "Running", LIMIT)
        assert NEWER not in status["runs"][0], "it went with its attempt"
        jobs.end_pod(jobs.wait_running("word"))
        status = jobs.wait_phase("word", "Succeeded", limit=LIMIT)
        assert [one["outcome"] for one in status["history"]] == ["Failed", "Preempted", "Lost", "Succeeded"]
        assert status["history"][1][NEWER] == 5


def stalled(jobs, name):
    condition = jobs.conditions(name).get("Stalled", {})
    return (condition.get("status"), condition.get("reason")) == ("True", NOT_KNOWN)


def test_a_job_with_a_field_that_this_version_does_not_know_gets_no_attempt(cluster, jobs, namespace):
    queues, batch = Queues(cluster, namespace), BatchJobs(cluster, namespace)
    with Operator(cluster, *LANE, leases=QUICK_LEASES):
        jobs.apply(job("newer", annotations=runs(0), **{NEWER: 1}))
        jobs.apply(job("newer-stage", annotations=runs(0), stages=[
            job("x", annotations=runs(0))["spec"] | {"name": "later", NEWER: 1}]))
        jobs.apply(job("to-cancel", annotations=runs(0), **{NEWER: 1}))
        jobs.apply(job("to-delete", annotations=runs(0), **{NEWER: 1}))
        for name in ("newer", "newer-stage", "to-cancel", "to-delete"):
            status = jobs.wait(name, lambda s: (s.get("waiting") or {}).get("reason") == NOT_KNOWN, LIMIT)
            assert (status["phase"], status["attempt"]) == ("Pending", 0)
            assert NEWER in status["waiting"]["message"]
            assert stalled(jobs, name)
        assert "spec.stages[0].fromNewer" in jobs.status("newer-stage")["waiting"]["message"]
        wait_for("the Event", lambda: NOT_KNOWN in {event["reason"] for event in jobs.events("newer")}, 30)
        jobs.patch("to-cancel", cancel=True)
        jobs.wait_phase("to-cancel", "Cancelled", limit=LIMIT)
        jobs.delete("to-delete")
        wait_for("the deletion", lambda: jobs.get("to-delete") is None, LIMIT)
        # Its open attempt goes on, its end counts, and nothing follows.
        jobs.apply(job("runs-on", annotations=runs(600), retryBackoff=SOON))
        jobs.wait_running("runs-on")
        jobs.patch("runs-on", **{NEWER: 1})
        jobs.end_pod(jobs.pod("runs-on"), "Failed", 1)
        status = jobs.wait("runs-on", lambda s: (s.get("waiting") or {}).get("reason") == NOT_KNOWN, LIMIT)
        assert (status["phase"], status["attempt"], status["failures"]) == ("Backoff", 1, 1)
        assert len(jobs.pods("runs-on")) == 1
        # The DurableJob of a Job of batch/v1.
        batch.apply(batch_job("lane", annotations=runs(600)))
        jobs.wait_running("lane")
        jobs.patch("lane", **{NEWER: 1})
        jobs.end_pod(jobs.pod("lane"), "Failed", 1)
        jobs.wait("lane", lambda s: (s.get("waiting") or {}).get("reason") == NOT_KNOWN, LIMIT)
        # A queue of a newer version admits nobody.
        queues.apply(queue("newer", **{NEWER: 1}))
        jobs.apply(job("queued", annotations=runs(0), queue={"name": "newer"}))
        told = queues.wait("newer", lambda s: s.get("waiting") == 1, LIMIT)
        assert {one["type"]: one for one in told["conditions"]}["Admitting"]["reason"] == NOT_KNOWN
        # What the newer version asked for is taken back.
        for name in ("newer", "runs-on", "lane"):
            jobs.patch(name, **{NEWER: None})
        queues.patch("newer", **{NEWER: None})
        jobs.end_pod(jobs.wait_running("lane"))
        jobs.end_pod(jobs.wait_running("runs-on"))
        for name in ("newer", "runs-on", "lane", "queued"):
            jobs.wait_phase(name, "Succeeded", limit=LIMIT)
            assert not stalled(jobs, name)
        batch.wait_condition("lane", "Complete")
