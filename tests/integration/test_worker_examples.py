"""examples/workers, each program on a real PostgreSQL, as the command of a real agent that serves a pool."""

import contextlib
import json
import pathlib
import signal

import pytest

from agent import LIMIT, agent_binary, descendants
from fake_pool import Work, Worker, allow_workers
from fence import expect
from localcluster import wait_for
from worker_examples import (  # noqa: F401
    PAUSE, PAYLOAD, STOP, command, database, go_build, language, primes, rows,
)

CLUSTER = {"nodes": 0, "kwok": False}
BAD_PAYLOAD = 65


@pytest.fixture(scope="module")
def space(cluster):
    name = "worker-examples"
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    wait_for("the default service account", lambda: cluster.api(
        "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, LIMIT)
    allow_workers(cluster, name)
    return name


@pytest.fixture(scope="module")
def serve(cluster, space, database, command, language, tmp_path_factory):  # noqa: F811
    """Makes a worker, and its agent that runs the program."""
    with contextlib.ExitStack() as agents:
        def make(name):
            folder = tmp_path_factory.mktemp(name)
            worker = Worker(cluster, space, folder, slots=4, name=f"{language}-{name}")
            agent = worker.agent(command, AGENT_PROGRAM=agent_binary(), **database.environment())
            return worker, agents.enter_context(agent)

        yield make


@pytest.fixture(scope="module")
def served(serve):
    """The worker of most tests."""
    return serve("first")


def wait_paused(job, at):
    """Until the worker Lease has the checkpoint of the page after which it waits."""
    job.wait("running", lambda answer: answer.get("checkpoint") == str(at) and
             answer.get("message") == f"paused at {at}")


def test_a_job_runs_to_its_end_with_its_rows_and_its_result(served, database, language):  # noqa: F811
    worker, _ = served
    job = worker.run(f"{language}-whole", payload=json.dumps(PAYLOAD | {"pageSize": 300}))
    answer = job.wait("ended")
    assert answer["code"] == 0
    assert json.loads(answer["result"]) == {"primes": 168, "upTo": 1000}
    assert rows(database, job.uid) == {1: primes(1, 1000)}


def test_a_bad_payload_ends_with_its_own_code_and_says_why(served, database, language):  # noqa: F811
    worker, agent = served
    texts = ["", '{"from": 1, "to": "many", "pageSize": 1}', '{"from": 5, "to": 4, "pageSize": 1}']
    jobs = worker.give(*(worker.make(f"{language}-bad-{i}", payload=text) for i, text in enumerate(texts)))
    for job in jobs:
        assert job.wait("ended")["code"] == BAD_PAYLOAD
        wait_for("the reason", lambda name=job.name: f"[{name} 1] bad payload: " in agent.stderr(), LIMIT)
        assert rows(database, job.uid) == {}


def test_a_message_pauses_a_running_command_and_stops_it_after_a_page(served, database, language):  # noqa: F811
    worker, _ = served
    job = worker.run(f"{language}-message", payload=json.dumps(PAYLOAD), message=PAUSE)
    wait_paused(job, 100)
    job.tell(STOP)
    answer = job.wait("ended")
    assert answer["code"] == 0 and json.loads(answer["result"]) == {"primes": 25, "upTo": 100}
    assert rows(database, job.uid) == {1: primes(1, 100)}


def replace(job, worker, checkpoint, message):
    """The operator's record of the next attempt, on this worker; the worker has no entry yet."""
    found = expect(job.worker.cluster.api("GET", job.path))
    found["spec"]["message"] = message
    found = expect(job.worker.cluster.api("PUT", job.path, found))
    attempt = job.attempt + 1
    found["status"]["attempt"] = attempt
    found["status"]["runs"][0].update(attempt=attempt, workerName=worker.pod.name, workerUID=worker.uid,
                                      checkpoint=checkpoint)
    expect(job.worker.cluster.api("PUT", f"{job.path}/status", found))
    return Work(worker, job.name, job.uid, attempt)


def command_runs(agent, job):
    """Whether a process of this attempt is there. A zombie has no environment."""
    wanted = {f"HOLDFAST_JOB_UID={job.uid}".encode(), f"HOLDFAST_ATTEMPT={job.attempt}".encode()}

    def environment(pid):
        try:
            return set(pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
        except OSError:
            return set()

    return any(wanted <= environment(pid) for pid in descendants(agent.pid))


def test_the_next_attempt_goes_on_from_the_checkpoint_and_the_database_refuses_the_last_one(
        served, serve, database, language):  # noqa: F811
    worker, _ = served
    other, other_agent = serve("other")
    first = worker.run(f"{language}-replaced", payload=json.dumps(PAYLOAD), message=PAUSE)
    wait_paused(first, 100)
    first.stop()
    first.wait("stopped")

    second = replace(first, other, "100", PAUSE)
    other.give(second)
    wait_paused(second, 200)
    first.take_out()
    wait_for("the first answer to be gone", lambda: first.answer() is None, LIMIT)
    # A frozen agent cannot stop its command, which waits for another message.
    other_agent.signal(signal.SIGSTOP)

    third = replace(second, worker, "200", STOP)  # so pages are left that the second one would write
    worker.give(third)
    answer = third.wait("ended")
    assert answer["code"] == 0 and json.loads(answer["result"]) == {"primes": 62, "upTo": 300}
    expected = {1: primes(1, 100), 2: primes(101, 200), 3: primes(201, 300)}
    assert rows(database, third.uid) == expected

    # The second attempt's command goes on, and comes too late.
    assert command_runs(other_agent, second)
    news = other.folder / "news"
    news.write_text("{}")
    [message] = other.slots_folder.glob("*/message")
    news.rename(message)
    wait_for("the old command to end", lambda: not command_runs(other_agent, second), LIMIT)
    assert f"fenced: attempt 2 of job {second.uid} is over, attempt 3 has begun" in database.log()
    assert rows(database, third.uid) == expected
