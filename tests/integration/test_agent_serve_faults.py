"""Whatever fails around a warm worker, its commands are dead when its Lease is over, and no attempt
begins that must not."""

import os
import signal

import pytest

from agent import EXIT_FENCED, LIMIT, NOISE, Beats, beats, wait_passed
from agent_ways import Link, Watches
from fake_pool import Worker, allow_workers
from hanging import HangingFolder, hanging_folders  # noqa: F401
from localcluster import wait_for

CLUSTER = {"nodes": 0, "kwok": False}


@pytest.fixture()
def worker(cluster, namespace, tmp_path):
    allow_workers(cluster, namespace)
    return Worker(cluster, namespace, tmp_path, slots=2)


@pytest.fixture()
def link(cluster):
    with Link(cluster) as link:
        yield link


@pytest.fixture()
def heart(tmp_path):
    return Beats(tmp_path / "beats")


def begin(worker, heart):
    """Two attempts, each with two deaf processes, one of which has left; right after a renewal."""
    worker.give(worker.make("one"), worker.make("two"))
    heart.wait(4)
    worker.wait_renewed()
    worker.wait_renewed()


def check_dead_in_time(worker, heart, renewed):
    assert not heart.living()
    assert heart.last() <= min(renewed + worker.duration * 5 / 6 + NOISE, renewed + worker.duration)


# -- the end of the worker ---------------------------------------------------------------------


def test_sigterm_hands_back_what_has_not_begun_and_lets_the_rest_end(worker, heart, tmp_path):
    script = (f'if [ $HOLDFAST_JOB_NAME = quick ]; then until [ -e {tmp_path}/over ]; do sleep 0.05; done; exit 6;'
              f' fi; exec "$@"')
    with worker.agent(["sh", "-c", script, "sh", *beats(heart.path, "deaf")], HOLDFAST_POD_GRACE_SECONDS=10) as agent:
        works = [worker.make(name) for name in ("quick", "slow", "third")]
        worker.give(*works)
        heart.wait()
        agent.signal(signal.SIGTERM)
        works[2].wait("returned")
        assert worker.report()["draining"]
        assert works[0].answer()["is"] == works[1].answer()["is"] == "running"
        (tmp_path / "over").touch()
        assert works[0].wait("ended")["code"] == 6
        works[1].wait("stopped")
        assert not heart.living() and len(heart.told_to_end()) == 1
        assert agent.process.poll() is None
        for work in works:
            work.take_out()
        assert agent.wait() == 0, agent.stderr()


def test_sigterm_ends_an_idle_worker_at_once(worker):
    with worker.agent(["true"], HOLDFAST_POD_GRACE_SECONDS=600) as agent:
        worker.run("one").wait("ended")
        worker.change_work(lambda work: work.update(attempts=[]))
        wait_for("the answer to be gone", lambda: not worker.report()["attempts"], LIMIT)
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 0
        assert worker.report()["draining"]


def test_an_entry_that_is_gone_takes_its_processes_with_it(worker, heart):
    with worker.agent(beats(heart.path, "deaf", "away")):
        begin(worker, heart)
        worker.change_work(lambda work: work.update(attempts=work["attempts"][1:]))
        wait_for("two to be dead", lambda: len(heart.living()) == 2, LIMIT)
        assert not heart.told_to_end()


# -- Leases that are lost ----------------------------------------------------------------------


def work_deleted(worker):
    worker.delete(worker.work_path)


def work_made_again(worker):
    worker.delete(worker.work_path)
    worker.make_work()


def worker_deleted(worker):
    worker.delete(worker.worker_path)


def cut_off(worker):
    worker.hold("")


@pytest.mark.parametrize("loss,words", [
    (work_deleted, "the work Lease was deleted"),
    (work_made_again, "the work Lease was deleted"),
    (worker_deleted, "the Lease was deleted"),
    (cut_off, "the Lease was taken from this worker"),
])  # fmt: skip
def test_a_worker_that_lost_a_lease_kills_all_its_commands(worker, heart, loss, words):
    with worker.agent(beats(heart.path, "deaf", "away")) as agent:
        begin(worker, heart)
        renewed = worker.renewed()
        loss(worker)
        agent.check_fenced(words)
        told = heart.told_to_end().values()
        assert len(told) == 2 and heart.last() <= max(told) + worker.duration / 6 + NOISE
        # It may have renewed once more before it saw the loss.
        assert not heart.living() and heart.last() <= renewed + worker.duration * (1 / 3 + 5 / 6) + NOISE


# -- no answers --------------------------------------------------------------------------------


def test_an_api_server_that_stands_still_ends_all_commands_in_time(worker, heart, cluster):
    with worker.agent(beats(heart.path, "deaf", "away")) as agent:
        begin(worker, heart)
        renewed = worker.renewed()
        cluster.pause("kube-apiserver")
        try:
            agent.check_fenced("no renewal was acknowledged for")
        finally:
            cluster.resume("kube-apiserver")
        check_dead_in_time(worker, heart, renewed)
        assert len(heart.told_to_end()) == 2


def test_an_agent_that_was_stopped_for_longer_than_its_lease_kills_before_anything_else(worker, heart):
    with worker.agent(beats(heart.path, "deaf", "away")) as agent:
        begin(worker, heart)
        agent.signal(signal.SIGSTOP)
        before = worker.lease()
        wait_passed(worker.duration + 1)
        assert len(heart.living()) == 4
        agent.signal(signal.SIGCONT)
        agent.check_fenced("no renewal was acknowledged for")
        assert not heart.living() and not heart.told_to_end()
        assert worker.lease() == before


def test_an_idle_worker_outlives_an_outage(worker, link, tmp_path):
    with worker.agent(["touch", tmp_path / "begun"], KUBERNETES_SERVICE_PORT=link.port) as agent:
        worker.wait_renewed()
        link.cut_off()
        job = worker.run("later")
        wait_passed(worker.duration + 1)
        assert agent.process.poll() is None and not (tmp_path / "begun").exists()
        link.mend()
        job.wait("ended")


def test_a_watch_that_is_stuck_is_noticed_by_the_read_before_a_renewal(worker, cluster):
    with Watches(cluster) as way:
        way.stuck = True
        with worker.agent(["true"], KUBERNETES_SERVICE_PORT=way.port):
            wait_for("a watch", lambda: way.opened == 1, LIMIT)
            worker.run("one").wait("ended")
            # The read showed what the watch has not. So there is another one, which works.
            way.stuck = False
            worker.run("two").wait("ended")
            wait_for("another watch", lambda: way.opened >= 2, LIMIT)
            assert worker.report()["seq"] == worker.seq()


def test_a_watch_that_is_cut_is_opened_again(worker, cluster):
    with Watches(cluster) as way:
        with worker.agent(["true"], KUBERNETES_SERVICE_PORT=way.port) as agent:
            for number in range(3):
                wait_for("a watch", lambda number=number: way.opened > number, LIMIT)
                worker.run(f"job-{number}").wait("ended")
                wait_for("a watch to cut", way.cut_watches, LIMIT)
            assert agent.process.poll() is None and agent.stderr() == ""


@pytest.mark.parametrize("line", [
    b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}\n',
    b'{"type": "ERROR", "object": {"kind": "Status", "code": 500}}\n',
    b"x" * 300_000 + b"\n",
])
def test_a_watch_that_is_of_no_use_is_replaced(worker, cluster, line):
    with Watches(cluster) as way:
        way.lines = [line, line]
        with worker.agent(["true"], KUBERNETES_SERVICE_PORT=way.port) as agent:
            wait_for("a third watch", lambda: way.opened >= 3, LIMIT)
            worker.run("one").wait("ended")
            assert agent.process.poll() is None and agent.stderr() == ""


# -- what hangs --------------------------------------------------------------------------------


def test_folders_that_hang_keep_no_command_alive(hanging_folders, worker, heart, link):
    worker.slots_folder.mkdir()
    with worker.agent(beats(heart.path, "deaf", "away"), KUBERNETES_SERVICE_PORT=link.port) as agent:
        begin(worker, heart)
        with HangingFolder(worker.slots_folder) as folder:
            worker.wait_renewed()
            link.cut_off()
            renewed = worker.renewed()
            wait_for("the commands to be dead", lambda: not heart.living(), LIMIT)
            check_dead_in_time(worker, heart, renewed)
            folder.end()
        agent.check_fenced("no renewal was acknowledged for")


def test_a_log_that_nobody_reads_holds_up_nothing_but_output(worker, heart, link):
    script = 'if [ $HOLDFAST_JOB_NAME = loud ]; then exec yes; fi; [ $HOLDFAST_JOB_NAME = calm ] && exit 4; exec "$@"'
    reader, writer = os.pipe()
    try:
        with worker.agent(["sh", "-c", f"exec >&2; {script}", "sh", *beats(heart.path, "deaf")],
                          stderr=writer, KUBERNETES_SERVICE_PORT=link.port) as agent:
            loud = worker.run("loud")
            loud.wait("running")
            assert worker.run("calm").wait("ended")["code"] == 4
            worker.run("beating")
            heart.wait()
            worker.wait_renewed()
            worker.wait_renewed()
            link.cut_off()
            renewed = worker.renewed()
            assert agent.wait() == EXIT_FENCED
            check_dead_in_time(worker, heart, renewed)
    finally:
        os.close(reader)
        os.close(writer)
    assert "no renewal was acknowledged for" in worker.termination_log.read_text()
