"""A warm worker's agent before a real API server: what its commands get, and what it answers."""

import json
import os
import signal

import pytest

from agent import LIMIT, Beats, agent_binary, beats, python
from fake_pool import Work, Worker, allow_workers
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False}


@pytest.fixture()
def space(cluster, namespace):
    allow_workers(cluster, namespace)
    return namespace


@pytest.fixture()
def worker(cluster, space, tmp_path):
    return Worker(cluster, space, tmp_path, slots=2)


# -- what a command gets -----------------------------------------------------------------------


def test_an_attempt_answers_with_its_exit_code_and_its_result(worker):
    script = 'read line; echo "got $line"; printf "%s done" "$line" > $HOLDFAST_RESULT_FILE; exit 3'
    with worker.agent(["sh", "-c", script]) as agent:
        job = worker.run("resize", payload="big.png\n")
        answer = job.wait("ended")
        assert answer["code"] == 3 and answer["result"] == "big.png done"
        wait_for("its output", lambda: b"[resize 1] got big.png\n" in agent.stdout(), LIMIT)
        job.take_out()
        wait_for("its answer to be gone", lambda: job.answer() is None, LIMIT)
        assert worker.report()["seq"] == worker.seq()


def test_a_command_that_fails_without_a_result_answers_with_its_last_lines(worker):
    script = "seq 1 1000 >&2; echo no input >&2; exit 4"
    with worker.agent(["sh", "-c", script]):
        answer = worker.run("resize").wait("ended")
    lines = answer["result"].split("\n")
    assert answer["code"] == 4 and len(answer["result"]) <= 1024
    assert lines[-1] == "no input" and lines[-2] == "1000" and len(lines) > 100


_WITNESS = """
import json, os, sys
result = {"in": sys.stdin.read(), "message": open(os.environ["HOLDFAST_MESSAGE_FILE"]).read(),
          "leads": os.getpgrp() == os.getpid(), "files": sorted(os.listdir("/proc/self/fd")),
          "env": {k: v for k, v in os.environ.items() if "HOLDFAST" in k or "INDEX" in k or k == "MINE"}}
print(json.dumps(result))
"""


def test_a_command_gets_its_job_and_nothing_of_the_agent(worker):
    with worker.agent(python(_WITNESS), MINE="kept", JOB_COMPLETION_INDEX="no") as agent:
        job = worker.run("whole", attempt=7, payload="pay\nload", message="be quick", run={"checkpoint": "half"})
        assert job.wait("ended")["code"] == 0
        wait_for("its output", lambda: b"\n" in agent.stdout(), LIMIT)
        said = agent.stdout().decode()
    assert said.startswith("[whole 7] {")
    found = json.loads(said.partition("] ")[2])
    folder = f"{worker.slots_folder}/0"
    assert found["in"] == "pay\nload" and found["message"] == "be quick" and found["leads"]
    assert found["files"][:3] == ["0", "1", "2"] and len(found["files"]) == 4  # and that of its listing
    assert found["env"] == {
        "HOLDFAST_JOB_NAME": "whole", "HOLDFAST_JOB_UID": job.uid, "HOLDFAST_ATTEMPT": "7",
        "HOLDFAST_JOB_NAMESPACE": worker.namespace, "HOLDFAST_CHECKPOINT": "half",
        "HOLDFAST_PROGRESS_FILE": f"{folder}/progress", "HOLDFAST_RESULT_FILE": f"{folder}/result",
        "HOLDFAST_MESSAGE_FILE": f"{folder}/message", "JOB_COMPLETION_INDEX": "no", "MINE": "kept"}


def test_a_payload_of_64_kib_arrives_whole_and_a_command_need_not_read_it(worker):
    payload = "x" * 65536
    with worker.agent(python("import sys, os; n = len(sys.stdin.read()) if 'all' in "
                             "os.environ['HOLDFAST_JOB_NAME'] else -1; sys.exit(n == 65536)")):
        every, none = worker.run("all", payload=payload), worker.run("none", payload=payload)
        assert every.wait("ended")["code"] == 1
        assert none.wait("ended")["code"] == 0


def test_runs_of_one_job_that_begin_together_share_a_look_at_it(cluster, space, tmp_path):
    worker, began = Worker(cluster, space, tmp_path, slots=8), "2026-01-02T03:04:05Z"
    runs = [{"index": index, "attempt": index + 1, "workerName": worker.pod.name, "workerUID": worker.uid,
             "startTime": began} for index in range(8)]
    with worker.agent(python("import os, sys; sys.exit(int(os.environ['JOB_COMPLETION_INDEX']))")):
        worker.wait_renewed()
        offset = cluster.audit_offset()
        job = worker.make("many", completions=8, parallelism=8, completionMode="Indexed",
                          status={"attempt": 8, "active": 8, "runs": runs})
        works = worker.give(*(Work(worker, "many", job.uid, run["attempt"], run["index"]) for run in runs))
        assert [work.wait("ended")["code"] for work in works] == list(range(8))
    looks = [event for event in cluster.audit_events(offset)[0] if event["verb"] == "get"
             and event["objectRef"].get("name") == "many"
             and event["user"]["username"].startswith("system:serviceaccount:")]
    assert len(looks) == 1


def test_a_command_of_a_later_stage_gets_its_payload_and_earlier_results(worker):
    stages = [{"name": "post-work", "workerPool": {"name": "pool"}, "payload": "second"}]
    script = 'printf "%s %s %s" "$HOLDFAST_STAGE" "$HOLDFAST_RESULT_MAIN" "$(cat)" > $HOLDFAST_RESULT_FILE'
    with worker.agent(["sh", "-c", script]):
        job = worker.run("staged", payload="first", stages=stages, stage="post-work", results={"main": "42"})
        assert job.wait("ended")["result"] == "post-work 42 second"


def test_progress_checkpoints_and_messages_pass(worker, tmp_path):
    script = (f'"{agent_binary()}" progress half && "{agent_binary()}" checkpoint --wait here && '
              'until grep -q stop "$HOLDFAST_MESSAGE_FILE"; do sleep 0.05; done; exit 9')
    with worker.agent(["sh", "-c", script]):
        job = worker.run("talk", message="go on")
        job.wait("running", lambda answer: answer.get("message") == "half" and
                 answer.get("checkpoint") == "here" and answer.get("mark") == 1)
        job.tell("now stop")
        assert job.wait("ended")["code"] == 9


def test_the_next_attempt_of_a_slot_finds_nothing_of_the_last(worker, cluster):
    script = 'cd $(dirname $HOLDFAST_RESULT_FILE); ls -A | tr "\\n" " " > ../seen; echo x > result; touch left'
    with worker.agent(["sh", "-c", script], HOLDFAST_SLOTS=1):
        for name in ("one", "two"):
            worker.run(name).wait("ended")
            seen = (worker.slots_folder / "seen").read_text().split()
            assert set(seen) - {"progress.agent"} == {"message"}


# -- what does not begin -----------------------------------------------------------------------


@pytest.mark.parametrize("job", [{"worker_uid": "another"}, {"run": {"nextAttemptTime": "2026-01-02T03:04:05Z"}}])
def test_an_attempt_that_is_not_current_is_handed_back(worker, tmp_path, job):
    with worker.agent(["touch", tmp_path / "begun"]):
        worker.run("other", **job).wait("returned")
    assert not (tmp_path / "begun").exists()


def test_an_attempt_whose_job_is_gone_or_another_is_handed_back(worker, tmp_path):
    job = worker.make("gone")
    worker.cluster.api("DELETE", job.path)
    wait_for("the job to be gone", lambda: worker.cluster.api("GET", job.path)[0] == 404, LIMIT)
    later = worker.make("later", attempt=2)
    later.attempt = 1
    with worker.agent(["touch", tmp_path / "begun"]):
        worker.give(job, later)
        job.wait("returned")
        later.wait("returned")
    assert not (tmp_path / "begun").exists()


def test_a_second_process_in_the_container_never_serves(worker, tmp_path):
    with worker.agent(["true"]) as first:
        worker.run("first").wait("ended")
        first.signal(signal.SIGKILL)
        first.wait()
    with worker.agent(["touch", tmp_path / "begun"]) as second:
        worker.run("second")
        second.check_fenced("the container was restarted")
    assert not (tmp_path / "begun").exists()


def test_a_command_that_cannot_be_run_has_the_codes_of_a_shell(worker):
    with worker.agent(["no-such-command"]) as agent:
        assert worker.run("lost").wait("ended")["code"] == 127
        wait_for("it to be said", lambda: '[lost 1] holdfast: cannot run "no-such-command"' in agent.stderr(), LIMIT)


# -- slots side by side ------------------------------------------------------------------------


def test_a_command_that_crashes_leaves_the_other_slot_alone(worker, tmp_path):
    heart = Beats(tmp_path / "beats")
    script = '[ $HOLDFAST_JOB_NAME = bad ] && kill -SEGV $$; exec "$@"'
    with worker.agent(["sh", "-c", script, "sh", *beats(heart.path)]) as agent:
        good = worker.run("good")
        heart.wait()
        assert worker.run("bad").wait("ended")["code"] == 139
        assert good.answer()["is"] == "running" and heart.living()
        assert agent.process.poll() is None


def test_a_stop_kills_deaf_and_daemonized_processes_of_its_slot_alone(worker, tmp_path):
    hearts = {name: Beats(tmp_path / name) for name in ("one", "two")}
    command = ["sh", "-c", f'cd {tmp_path}; exec "$0" -S -E -c "$1" $HOLDFAST_JOB_NAME deaf away',
               *(word for i, word in enumerate(beats("x")) if i in (0, 4))]
    with worker.agent(command):
        works = worker.give(worker.make("one"), worker.make("two"))
        for heart in hearts.values():
            heart.wait(2)
        works[0].stop()
        works[0].wait("stopped")
        assert not hearts["one"].living() and len(hearts["one"].told_to_end()) == 1
        assert len(hearts["two"].living()) == 2 and not hearts["two"].told_to_end()
        assert works[1].answer()["is"] == "running"


def test_an_attempt_has_ended_when_its_daemon_is_dead(worker, tmp_path):
    heart = Beats(tmp_path / "beats")
    script = f'"$@" & until [ -s {heart.path} ]; do sleep 0.05; done; exit 5'
    with worker.agent(["sh", "-c", script, "sh", *beats(heart.path, "deaf", "away")]):
        assert worker.run("left").wait("ended")["code"] == 5
        assert not heart.living()


_REGICIDE = """
import os, signal, subprocess, sys, time
daemon = subprocess.Popen(sys.argv[1:], start_new_session=True)
while not os.path.exists(sys.argv[-1]):
    time.sleep(0.05)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(1000)
"""


def test_a_command_that_kills_its_shepherd_takes_all_its_processes_with_it(worker, tmp_path):
    heart = Beats(tmp_path / "beats")
    with worker.agent(python(_REGICIDE, *beats(heart.path), "deaf", heart.path)) as agent:
        assert worker.run("rude").wait("ended")["code"] == 137
        assert not heart.living()
        assert worker.run("next").wait("ended")["code"] == 137
        assert agent.process.poll() is None


def test_many_jobs_pass_through_few_slots_without_a_process(worker):
    with worker.agent([], options=["--no-op"]) as agent:
        works = worker.give(*(worker.make(f"job-{number}") for number in range(12)))
        for work in works:
            assert work.wait("ended")["code"] == 0
        assert not os.path.exists(worker.slots_folder)
        assert agent.stderr() == ""
