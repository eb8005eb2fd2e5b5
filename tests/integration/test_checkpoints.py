"""Checkpoints: what a worker has done is kept in its run's Lease, and the next attempt goes on from there."""

import collections
import signal
import time

import pytest

from agent import LIMIT, Beats, agent_binary, beats, python, turn, work  # noqa: F401
from chaos import seeded
from holdfast import job, place
from host_node import HOSTED
from host_worker import HEARTBEAT, SOON, jobs, nodes, operator  # noqa: F401
from localcluster import wait_for
from losses import LOST_AFTER

CLUSTER = {"nodes": 0, "kwok": False}
CHECKPOINT = "holdfast.dev/checkpoint"
JOBS, KILLS = 20, 200

# A worker that counts on from its checkpoint. It writes lines: what, attempt, number, CLOCK_BOOTTIME.
_COUNTS = """
import os, subprocess, sys, time
path, agent = sys.argv[1:]
attempt = os.environ["HOLDFAST_ATTEMPT"]
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def tell(what, number):
    os.write(file, b"%s %s %d %d\\n" % (what, attempt.encode(), number, time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
number = int(os.environ.get("HOLDFAST_CHECKPOINT", "0").split(":")[0])
tell(b"began", number)
while True:
    number += 1
    tell(b"tries", number)
    done = subprocess.run([agent, "checkpoint", "--wait", f"{number}:{attempt}"], stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        tell(b"kept", number)
"""
Line = collections.namedtuple("Line", "what attempt number when")


def lines_of(path):
    words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [Line(w[0], int(w[1]), int(w[2]), int(w[3]) / 1e9) for w in words if len(w) == 4]


# -- one agent ------------------------------------------------------------------------------------


def test_a_checkpoint_that_was_waited_for_is_in_the_lease_and_the_next_attempt_has_it(turn, tmp_path):
    heart = Beats(tmp_path / "beats")
    turn.grant()
    with turn.agent(beats(heart.path)):
        heart.wait()
        assert turn.call("checkpoint", "--wait", "page 7 of \u00e4ll") == (0, "")
        assert turn.annotation(CHECKPOINT) == "page 7 of \u00e4ll"
        assert turn.call("progress", "on") == (0, "")
        turn.wait_renewed()
        assert turn.annotation(CHECKPOINT) == "page 7 of \u00e4ll"
    told = tmp_path / "told"
    with turn.agent(["sh", "-c", f'printf %s "$HOLDFAST_CHECKPOINT" >{told}']) as agent:
        assert agent.wait() == 0
    assert told.read_text() == "page 7 of \u00e4ll"


def test_without_a_checkpoint_there_is_no_variable(turn, tmp_path):
    told = tmp_path / "told"
    turn.grant()
    with turn.agent(["sh", "-c", f"env >{told}"], HOLDFAST_CHECKPOINT="the image's own") as agent:
        assert agent.wait() == 0
    assert "HOLDFAST_CHECKPOINT" not in told.read_text()


def test_the_last_checkpoint_is_told_with_the_end(turn):
    turn.grant()
    with turn.agent(["sh", "-c", f"{agent_binary()} checkpoint last; exit 3"]) as agent:
        assert agent.wait() == 3
    assert turn.annotation(CHECKPOINT) == "last"


@pytest.mark.parametrize("arguments,words", [
    (["x" * 1025], "at most 1024 bytes"), ([b"\xff"], "UTF-8"), (["@/none"], "/none is not a file"),
    ([], "one text"), (["a", "b"], "one text")], ids=["long", "bytes", "no-file", "none", "two"])
def test_a_wrong_checkpoint_is_refused_with_what_to_do(turn, arguments, words):
    code, said = turn.call("checkpoint", *arguments)
    assert code == 2 and words in said


def test_a_wait_ends_where_no_agent_is_at_work(turn):
    code, said = turn.call("checkpoint", "--wait", "a")
    assert code == 1 and "no agent has started here" in said


# -- many attempts --------------------------------------------------------------------------------


@pytest.mark.long
def test_each_attempt_goes_on_from_the_last_checkpoint_that_was_kept(operator, nodes, jobs, tmp_path):
    """Workers are killed and cut off at random places. What was acknowledged is never lost, and what an attempt tries
    after its way to the API server is cut is never seen."""
    rng = seeded("checkpoints")
    files = {f"counts-{number}": tmp_path / f"counts-{number}" for number in range(JOBS)}
    for name, path in files.items():
        jobs.apply(job(name, command=python(_COUNTS, path, agent_binary()), heartbeat=HEARTBEAT, backoffLimit=1000,
                       disruptionLimit=1000, retryBackoff=SOON, lostAfterSeconds=LOST_AFTER,
                       pod=HOSTED | {"terminationGracePeriodSeconds": 1}))
    cuts, done = collections.defaultdict(dict), collections.Counter()

    def disturb():
        name = rng.choice(list(files))
        pod = nodes.find(place(jobs.status(name)).get("podName", ""))
        if not pod or not pod.process or pod.process.poll() is not None:
            return
        lines = [line for line in lines_of(files[name]) if line.what == "began"]
        attempt = int(pod.pod_name.rsplit("-", 2)[1])
        if not lines or lines[-1].attempt != attempt or attempt in cuts[name]:
            return
        if rng.random() < 0.2:
            pod.link.cut_off()
            cuts[name][attempt] = time.clock_gettime(time.CLOCK_BOOTTIME)
            done["cut off"] += 1
        else:
            pod.signal(signal.SIGKILL)
            cuts[name][attempt] = float("inf")
            done["killed"] += 1

    def enough():
        disturb()
        return sum(done.values()) >= KILLS

    wait_for(f"{KILLS} disturbances", enough, 600, poll=0.05)
    print(dict(done))
    for name in files:
        jobs.patch(name, cancel=True)
    for name, path in files.items():
        check(name, lines_of(path), cuts[name])


def check(name, lines, cuts):
    begins = [line for line in lines if line.what == "began"]
    assert len(begins) > 3, f"{name} had {len(begins)} attempts"
    for began in begins[1:]:
        before = [line for line in lines if line.attempt < began.attempt]
        kept = max([line.number for line in before if line.what == "kept"], default=0)
        tried = {line.number for line in before if line.what == "tries"
                 and line.when <= cuts.get(line.attempt, float("inf"))} | {0}
        assert began.number >= kept, f"{name}: attempt {began.attempt} lost what was kept: {began.number} of {kept}"
        assert began.number in tried, f"{name}: attempt {began.attempt} began at {began.number}, which nobody may keep"
