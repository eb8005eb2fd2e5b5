"""The example of a queue on real nodes: who runs beside whom, and what kubectl shows meanwhile."""

import re

import pytest

from queues import Queues, permits
from real_jobs import dump, end_of
from test_many_runs import run_example

JOBS = ["encode-1", "encode-2", "encode-3"]
CONCURRENCY = 2


@pytest.fixture()
def queues(cluster, namespace):
    return Queues(cluster, namespace)


def shown(cluster, namespace):
    """{column: value} of what `kubectl get jobqueue` says, and the whole text. A value may be empty or have spaces."""
    text = cluster.kubectl("-n", namespace, "get", "jobqueue", "encode", "-o", "wide").stdout
    head, line = text.splitlines()
    columns = list(re.finditer(r"\S+ *", head))
    return {column[0].strip(): line[column.start():next_start].strip() for column, next_start in zip(
        columns, [after.start() for after in columns[1:]] + [None])}, text


def counts(running, waiting):
    return lambda status: (status.get("running"), status.get("waiting")) == (running, waiting)


def container_times(jobs, name):
    """(start, end) of the container of the job's only pod, by its kubelet's clock."""
    [pod] = jobs.pods(name)
    [container] = pod["status"]["containerStatuses"]
    ended = container["state"]["terminated"]
    return ended["startedAt"], ended["finishedAt"]


def check_ended(jobs, queues, record):
    for name in JOBS:
        status = end_of(jobs, name, 90)
        assert (status["phase"], status["attempt"]) == ("Succeeded", 1), dump(status)
    record.wait_ended(JOBS, 30)
    most = permits(record)
    assert most.most == CONCURRENCY
    assert most.most_of_key == {"customer-7": 1, "customer-8": 1}
    status = queues.wait("encode", counts(0, 0), 30)
    assert not status.get("head") and not status.get("admitting"), dump(status)
    return most.started


def test_the_example_of_a_queue_runs_two_jobs_at_once_and_one_of_each_customer(cluster, jobs, queues, record):
    run_example(cluster, jobs, "queue/queue")
    run_example(cluster, jobs, "queue/jobs")
    status = queues.wait("encode", counts(2, 1), 15)
    columns, text = shown(cluster, jobs.namespace)
    assert list(columns) == ["NAME", "RUNNING", "WAITING", "OLDEST", "HOLD", "AGE", "CONCURRENCY", "REASON", "MESSAGE"]
    assert [columns[name] for name in ("NAME", "RUNNING", "WAITING", "HOLD", "CONCURRENCY", "REASON")] == [
        "encode", "2", "1", "false", "2", "Full"], text
    assert columns["MESSAGE"] == "as many jobs run as spec.concurrency allows", text
    [waits] = status["head"]
    assert waits in ("encode-1", "encode-2"), dump(status)
    jobs.wait(waits, lambda s: (s.get("waiting") or {}).get("reason") == "Queued", 15)
    assert "Queued" in cluster.kubectl("-n", jobs.namespace, "get", "dj", waits).stdout

    check_ended(jobs, queues, record)
    columns, text = shown(cluster, jobs.namespace)
    assert (columns["RUNNING"], columns["OLDEST"], columns["REASON"]) == ("0", "", "PermitsFree"), text
    # No attempt was lost, so the containers of one customer do not overlap either.
    first, second = sorted(container_times(jobs, name) for name in ("encode-1", "encode-2"))
    assert first[1] <= second[0]


def test_a_queue_on_hold_starts_nothing_and_then_the_highest_priority_first(cluster, jobs, queues, record):
    run_example(cluster, jobs, "queue/queue")
    queues.patch("encode", hold=True)
    run_example(cluster, jobs, "queue/jobs", ["sleep", "5"])
    status = queues.wait("encode", counts(0, 3), 15)
    assert status["head"][0] == "encode-3", dump(status)
    columns, text = shown(cluster, jobs.namespace)
    assert [columns[name] for name in ("RUNNING", "WAITING", "HOLD", "REASON")] == ["0", "3", "true", "Held"], text
    jobs.patch("encode-2", queue={"priority": 20})
    queues.wait("encode", lambda s: s.get("head") == ["encode-2", "encode-3", "encode-1"], 15)
    assert [pod for name in JOBS for pod in jobs.pods(name)] == []
    queues.patch("encode", hold=False)
    started = check_ended(jobs, queues, record)
    assert set(started[:2]) == {"encode-2", "encode-3"}, started
