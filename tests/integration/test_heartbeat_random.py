"""Many attempts of many jobs with a heartbeat, disturbed at random: from what the children themselves
have written down, no two of one job were ever at work at one time. Agents are killed here, and never
stopped: what a stopped one's child does is the fence's matter."""

import collections
import contextlib
import signal
import time

import pytest

from agent import work  # noqa: F401
from chaos import seeded
from holdfast import place
from host_node import HOSTED
from host_worker import Lives, beating, jobs, nodes, operator  # noqa: F401
from localcluster import wait_for
from losses import delete_pod, pod_named

pytestmark = pytest.mark.long

CLUSTER = {"nodes": 0, "kwok": False}
JOBS = 20
ATTEMPTS = 100
# How fast attempts follow each other is no rule: they take two minutes on an idle machine.
LIMIT = 600
MOST_ATTEMPTS = 100


def plans(rng):
    """What a job's worker does in each attempt: it never succeeds, so there is always a next one. Some
    are still there long after their pod is."""
    return [{"run": round(rng.choice([rng.uniform(0.5, 5), 300]), 2), "exit": 1,
             "deaf": rng.random() < 0.7, "away": rng.random() < 0.3} for _ in range(MOST_ATTEMPTS)]


def mend(pod):
    with contextlib.suppress(OSError):  # the pod has ended, and its link with it
        pod.link.mend()


class Disturber:
    """Does one thing at a time to one job's worker, or to the operator."""

    def __init__(self, jobs, nodes, operator, rng):
        self.jobs, self.nodes, self.operator, self.rng = jobs, nodes, operator, rng
        self.done = collections.Counter()
        self._disturbed = set()
        self._later = []  # (when, what)
        self._killed = time.monotonic()

    def step(self, names):
        now = time.monotonic()
        due = [what for when, what in self._later if when <= now]
        self._later = [(when, what) for when, what in self._later if when > now]
        for what in due:
            what()
        if now - self._killed > 15 and self.rng.random() < 0.1:
            self._killed = now
            self.operator.kill()
            self.operator.spawn()
            self.done["operator killed"] += 1
            return
        status = self.jobs.status(self.rng.choice(names))
        pod = self.nodes.find(place(status).get("podName", ""))
        if not pod or not pod.process or pod.process.poll() is not None:
            return
        if pod.uid in self._disturbed or self.rng.random() < 0.3:
            return
        self._disturbed.add(pod.uid)
        ways = [self._cut_off, self._cut_off_for_long, self._cut_off_unheard, self._delete,
                self._delete_unheard, self._delete_by_force, self._kill_unheard, self._kill_agent]
        way = self.rng.choice(ways)
        self.done[way.__name__.strip("_").replace("_", " ")] += 1
        way(pod)

    def end(self):
        """What was cut or lost is there again."""
        for _, what in self._later:
            what()

    def _cut_off(self, pod):
        pod.link.cut_off()
        self._in(self.rng.uniform(1, 9), lambda: mend(pod))

    def _cut_off_for_long(self, pod):
        pod.link.cut_off()
        self._in(30, lambda: mend(pod))

    def _cut_off_unheard(self, pod):
        self._lose(pod)
        self._cut_off_for_long(pod)

    def _delete(self, pod, grace=None):
        found = pod_named(self.jobs, pod.pod_name)
        if found:
            delete_pod(self.jobs, found, grace)

    def _delete_unheard(self, pod):
        self._lose(pod)
        self._delete(pod, grace=1)

    def _delete_by_force(self, pod):
        self._lose(pod)
        if self.rng.random() < 0.5:
            pod.link.cut_off()
        self._delete(pod, grace=0)

    def _kill_unheard(self, pod):
        self._lose(pod)
        pod.signal(signal.SIGKILL)

    def _kill_agent(self, pod):
        pod.signal(signal.SIGKILL)

    def _lose(self, pod):
        pod.lose()
        self._in(self.rng.uniform(5, 60), pod.find)

    def _in(self, seconds, what):
        self._later.append((time.monotonic() + seconds, what))


def test_no_two_children_of_a_job_are_ever_at_work_at_one_time(operator, nodes, jobs, tmp_path):
    rng = seeded("random heartbeats")
    lives = {f"job-{number}": Lives(tmp_path / f"job-{number}") for number in range(JOBS)}
    for name, one in lives.items():
        policy = rng.choice(["Failed"] + 3 * ["TerminatingOrFailed"])
        jobs.apply(beating(name, one, *plans(rng), backoffLimit=1000, disruptionLimit=1000,
                           podReplacementPolicy=policy,
                           pod=HOSTED | {"terminationGracePeriodSeconds": rng.randint(1, 4)}))
    disturber = Disturber(jobs, nodes, operator, rng)

    def attempts():
        return sum(len({life.attempt for life in one.all()}) for one in lives.values())

    def enough():
        disturber.step(list(lives))
        return attempts() >= ATTEMPTS

    try:
        wait_for(f"{ATTEMPTS} attempts", enough, LIMIT, poll=0.2)
    finally:
        disturber.end()
        print(f"{attempts()} attempts, {dict(disturber.done)}")
    for name in lives:
        jobs.patch(name, cancel=True)
    for name, one in lives.items():
        jobs.wait_phase(name, "Cancelled", limit=60)
        wait_for(f"the last worker of {name} to end", lambda one=one: not one.living(), 60)
    assert {name: one.overlaps() for name, one in lives.items() if one.overlaps()} == {}
