"""Jobs that wait in a JobQueue, on a real control plane: how many at once, in which order, how fast, and what
they say meanwhile."""

import pytest

from holdfast import job, runs
from lives import flush_audit
from localcluster import wait_for
from queues import Queues, permits, queue, said
from record import STORE_AS_JSON, Recorder

CLUSTER = {"apiserver_flags": [STORE_AS_JSON]}
LIMIT = 60


@pytest.fixture()
def queues(cluster, namespace):
    return Queues(cluster, namespace)


def queued(name, seconds=1, exit_code=None, priority=None, key=None, of="encode", **spec):
    reference = {"name": of, "priority": priority, "key": key}
    return job(name, annotations=runs(seconds, exit_code),
               queue={field: value for field, value in reference.items() if value is not None}, **spec)


def reason(status):
    return (status.get("waiting") or {}).get("reason")


def is_queued(status):
    return reason(status) == "Queued"


def wait_said(jobs, names):
    for name in names:
        jobs.wait(name, is_queued, LIMIT, f"{name} to wait in its queue")


def test_no_more_jobs_run_than_the_queue_allows_and_all_end(cluster, operator, jobs, queues):
    names = [f"job-{number}" for number in range(7)]
    with Recorder(cluster, jobs.namespace) as record:
        queues.apply(queue("encode", concurrency=2))
        for name in names:
            jobs.apply(queued(name, seconds=3))  # a simulated pod may end a second early
        record.wait_ended(names, LIMIT)
        assert permits(record).most == 2
        # The last has waited for more than the second after which a job says so.
        assert said(record, names[-1], "Queued") == 1
    assert jobs.status(names[-1])["attempt"] == 1
    wait_for("the queue to say that nothing runs", lambda: queues.status("encode").get("running") == 0
             and queues.status("encode").get("waiting") == 0, LIMIT)
    assert not queues.status("encode").get("admitting")


def test_a_job_that_waits_says_so_and_the_queue_says_who_waits(cluster, operator, jobs, queues):
    queues.apply(queue("encode", concurrency=1))
    jobs.apply(queued("first", seconds=3600))
    jobs.wait_phase("first", "Running", limit=LIMIT)
    for name in ("second", "third"):
        jobs.apply(queued(name))
        wait_said(jobs, [name])
    status = jobs.status("second")
    assert status["phase"] == "Pending" and status["attempt"] == 0
    assert "encode" in status["waiting"]["message"]
    conditions = jobs.conditions("second")
    assert conditions["Reconciling"]["reason"] == "Queued"
    told = queues.wait("encode", lambda s: s.get("waiting") == 2, LIMIT)
    assert told["running"] == 1
    assert told["head"] == ["second", "third"]
    assert told["oldestWaitingSince"] <= status["waiting"]["since"]
    admitting = {c["type"]: c for c in told["conditions"]}["Admitting"]
    assert (admitting["status"], admitting["reason"]) == ("False", "Full")
    columns = cluster.kubectl("get", "jq", "encode", "-n", jobs.namespace).stdout.splitlines()
    assert columns[0].split() == ["NAME", "RUNNING", "WAITING", "OLDEST", "HOLD", "AGE"]
    assert columns[1].split()[:3] == ["encode", "1", "2"]


def test_the_highest_priority_starts_first_and_then_the_oldest(cluster, operator, jobs, queues):
    with Recorder(cluster, jobs.namespace) as record:
        queues.apply(queue("encode", concurrency=1, hold=True))
        names = ["old", "young", "urgent", "later", "changed"]
        for name, priority in zip(names, (0, 0, 5, -5, 0)):
            jobs.apply(queued(name, seconds=0, priority=priority))
            wait_said(jobs, [name])  # so that no two are of one second
        jobs.patch("changed", queue={"name": "encode", "priority": 9})
        queues.wait("encode", lambda s: (s.get("head") or [""])[0] == "changed", LIMIT)
        assert queues.status("encode")["head"] == ["changed", "urgent", "old", "young", "later"]
        queues.patch("encode", hold=False)
        record.wait_ended(names, LIMIT)
        assert permits(record).started == ["changed", "urgent", "old", "young", "later"]


def test_a_key_that_is_full_holds_nobody_else_up(cluster, operator, jobs, queues):
    names = ["a-1", "a-2", "a-3", "b-1"]
    with Recorder(cluster, jobs.namespace) as record:
        queues.apply(queue("encode", concurrency=2, concurrencyPerKey=1, hold=True))
        for name in names:
            jobs.apply(queued(name, key=name[0]))
        queues.wait("encode", lambda s: s.get("waiting") == len(names), LIMIT)
        queues.patch("encode", hold=False)
        record.wait_ended(names, LIMIT)
        most = permits(record)
        assert most.most == 2
        assert most.most_of_key == {"a": 1, "b": 1}
        # Which job of a key comes first is open: all are created within a second or two.
        assert "b-1" in most.started[:2]


def test_a_queue_on_hold_starts_nothing_and_stops_nothing(operator, jobs, queues):
    queues.apply(queue("encode", concurrency=5))
    jobs.apply(queued("runs", seconds=3600))
    jobs.wait_phase("runs", "Running", limit=LIMIT)
    queues.patch("encode", hold=True)
    jobs.apply(queued("waits", seconds=0))
    wait_said(jobs, ["waits"])
    queues.wait("encode", lambda s: any(c["reason"] == "Held" for c in s.get("conditions", [])), LIMIT)
    assert jobs.status("runs")["phase"] == "Running"
    queues.patch("encode", hold=False)
    jobs.wait_phase("waits", "Succeeded", limit=LIMIT)


def test_a_lower_limit_stops_nothing(cluster, operator, jobs, queues):
    queues.apply(queue("encode", concurrency=2))
    for name in ("one", "two"):
        jobs.apply(queued(name, seconds=3600))
        jobs.wait_phase(name, "Running", limit=LIMIT)
    queues.patch("encode", concurrency=1)
    jobs.apply(queued("three", seconds=0))
    wait_said(jobs, ["three"])
    jobs.patch("one", cancel=True)
    jobs.wait_phase("one", "Cancelled", limit=LIMIT)
    assert is_queued(jobs.status("three")), "one of two has ended, and the limit is one"
    jobs.patch("two", cancel=True)
    jobs.wait_phase("three", "Succeeded", limit=LIMIT)


def test_a_job_in_back_off_gives_its_permit_to_the_next(operator, jobs, queues):
    queues.apply(queue("encode", concurrency=1))
    jobs.apply(queued("fails", seconds=0, exit_code="1,0",
                      retryBackoff={"initialSeconds": 10, "factor": 1, "maxSeconds": 10, "jitterPercent": 0}))
    jobs.wait_phase("fails", "Backoff", limit=LIMIT)
    jobs.apply(queued("next", seconds=600))
    jobs.wait_phase("next", "Running", limit=LIMIT)
    status = jobs.wait("fails", is_queued, LIMIT)
    assert status["phase"] == "Backoff"
    assert jobs.status("next")["phase"] == "Running"
    jobs.patch("next", cancel=True)
    jobs.wait_phase("fails", "Succeeded", limit=LIMIT)


def test_jobs_without_their_queue_wait_and_go_on_when_it_is_there(operator, jobs, queues):
    jobs.apply(queued("early", seconds=0))
    jobs.wait("early", lambda s: reason(s) == "QueueMissing", LIMIT)
    stalled = jobs.conditions("early")["Stalled"]
    assert stalled["status"] == "True" and stalled["reason"] == "QueueMissing"
    queues.apply(queue("encode"))
    jobs.wait_phase("early", "Succeeded", limit=LIMIT)
    assert jobs.conditions("early")["Stalled"]["status"] == "False"

    queues.patch("encode", concurrency=1)
    jobs.apply(queued("runs", seconds=3600))
    jobs.wait_phase("runs", "Running", limit=LIMIT)
    jobs.apply(queued("waits", seconds=0))
    wait_said(jobs, ["waits"])
    queues.delete("encode")
    jobs.wait("waits", lambda s: reason(s) == "QueueMissing", LIMIT)
    assert jobs.status("runs")["phase"] == "Running"
    queues.apply(queue("encode", concurrency=1))
    jobs.wait("waits", is_queued, LIMIT)
    jobs.patch("runs", cancel=True)
    jobs.wait_phase("waits", "Succeeded", limit=LIMIT)


def test_a_rate_spreads_the_starts(cluster, operator, jobs, queues):
    names = [f"job-{number}" for number in range(6)]
    with Recorder(cluster, jobs.namespace) as record:
        queues.apply(queue("encode", rate={"jobs": 2, "periodSeconds": 6}))
        for name in names:
            jobs.apply(queued(name, seconds=0))
        record.wait_ended(names, LIMIT)
    # Two at once, then one in 3 s each. Times in status are whole seconds.
    starts = sorted(jobs.status(name)["startTime"] for name in names)
    seconds = [int(start[17:19]) + 60 * int(start[14:16]) for start in starts]
    assert (seconds[5] - seconds[0]) % 3600 >= 11, starts
    assert queues.status("encode")["rate"]["tokens"] <= 2


def test_a_suspended_job_gives_its_place_up_and_comes_back(operator, jobs, queues):
    queues.apply(queue("encode", concurrency=1))
    jobs.apply(queued("first", seconds=3600))
    jobs.wait_phase("first", "Running", limit=LIMIT)
    jobs.apply(queued("second", seconds=0))
    wait_said(jobs, ["second"])
    jobs.patch("first", suspend=True)
    jobs.wait_phase("first", "Suspended", limit=LIMIT)
    jobs.wait_phase("second", "Succeeded", limit=LIMIT)
    jobs.patch("first", suspend=False)
    jobs.wait_phase("first", "Running", limit=LIMIT)


def test_with_policy_failed_the_permit_stays_until_the_old_pod_is_down(cluster, operator, jobs, queues):
    queues.apply(queue("encode", concurrency=1))
    jobs.apply(queued("first", seconds=3600, podReplacementPolicy="Failed"))
    pod = jobs.wait_running("first", LIMIT)
    finalizer = {"metadata": {"finalizers": pod["metadata"]["finalizers"] + ["test.example/keep"]}}
    path = f"{jobs.pods_path}/{pod['metadata']['name']}"
    jobs.api("PATCH", path, finalizer, content_type="merge")
    jobs.apply(queued("second", seconds=0))
    wait_said(jobs, ["second"])
    jobs.patch("first", suspend=True)
    jobs.wait_phase("first", "Suspended", limit=LIMIT)
    waits = is_queued(jobs.status("second"))
    pod = jobs.api("GET", path)
    if pod["status"]["phase"] == "Running":  # the simulated kubelet has not stopped it yet
        assert waits
    jobs.end_pod(pod, "Failed", 143)
    jobs.api("PATCH", path, {"metadata": {"finalizers": None}}, content_type="merge")
    jobs.wait_phase("second", "Succeeded", limit=LIMIT)


def test_queues_at_rest_cost_no_write(cluster, operator, jobs, queues):
    queues.apply(queue("encode", concurrency=1))
    jobs.apply(queued("first", seconds=3600))
    jobs.wait_phase("first", "Running", limit=LIMIT)
    for number in range(10):
        jobs.apply(queued(f"waits-{number}"))
    wait_said(jobs, [f"waits-{number}" for number in range(10)])
    told = queues.wait("encode", lambda s: s.get("waiting") == 10, LIMIT)

    def writes():
        return [(event["verb"], event["objectRef"]) for event in cluster.audit_events(offset)[0]
                if event["user"]["username"] == "holdfast-operator" and event["verb"] in ("update", "patch", "create")
                and event["objectRef"].get("resource") in ("durablejobs", "jobqueues")
                and event["objectRef"].get("namespace") == jobs.namespace]

    # Nothing moves for longer than the pause between two writes of a queue's status.
    flush_audit(cluster, cluster.audit_offset())
    offset = cluster.audit_offset()
    version = queues.get("encode")["metadata"]["resourceVersion"]
    jobs.apply(queued("other", of="nowhere"))
    jobs.wait("other", lambda s: reason(s) == "QueueMissing", LIMIT)
    marker = queued("marker", seconds=6)
    del marker["spec"]["queue"]
    jobs.apply(marker)
    jobs.wait_phase("marker", "Succeeded", limit=LIMIT)
    assert queues.get("encode")["metadata"]["resourceVersion"] == version, told
    about = [ref.get("name", "") for _, ref in writes()]
    assert [name for name in about if name.startswith("waits") or name == "encode"] == []
