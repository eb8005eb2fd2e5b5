"""Jobs of every kind, operators that are killed at random, and the judgement over the whole run.

Randomness comes from one seed, which every run prints; CHAOS_SEED repeats it. What the machine's
scheduler does is not repeated with it.
"""

import datetime
import http.client
import os
import random
import re
import threading
import time

import pytest

from holdfast import QUICK_LEASES, RBAC_PATH, Operator, job
from invariants import lost_intents, unbalanced, violations
from localcluster import wait_for

# How long before and after an intent was seen here its writer may have died for the kill to explain
# that no pod followed. On an idle machine milliseconds lie between the two writes; on a busy one
# either process may stand still for a while. One that starts anew counts what stands there when it takes
# its shards for left behind, also what an operator that it does not know of has just recorded.
EXPLAINS_SECONDS = (-6, 12)


def seeded(test):
    """The test's random source."""
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(1_000_000)))
    print(f"{test}: CHAOS_SEED={seed}")
    return random.Random(seed)


def mixed_jobs(count, rng):
    """`count` jobs whose pods run 0 to 5 s: a third each succeeds at once, fails and then succeeds,
    and fails always. In random order."""
    made = []
    for number in range(count):
        codes = ("0", rng.choice(("1,0", "1,1,0", "7,0")), "3")[number % 3]
        annotations = {"holdfast-test/run-for": f"{rng.choice((0, 0, 1, 2, 5))}s", "holdfast-test/exit-code": codes}
        kind = ("ok", "again", "never")[number % 3]
        made.append(job(f"{kind}-{number}", annotations=annotations,
                        backoffLimit=1 if kind == "never" else 2,
                        retryBackoff={"initialSeconds": 1, "factor": 1, "maxSeconds": 1}))
    rng.shuffle(made)
    return made


def names_of(made):
    return [body["metadata"]["name"] for body in made]


class Feeder:
    """Applies jobs one by one, each as soon as fewer than `in_flight` of those before are
    unfinished, so that there is always something to disturb. None beyond the first `allowed`."""

    def __init__(self, jobs, record, made, in_flight, patient=False):
        self._jobs, self._record, self._made, self._in_flight = jobs, record, list(made), in_flight
        self.allowed = len(self._made)
        self._patient = patient  # the server may be away: asks until it knows what became of a job
        self.acknowledged = []
        self.error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._made.clear()
        self._thread.join(timeout=60)

    @property
    def done(self):
        return not self._thread.is_alive()

    def _run(self):
        try:
            while self._made:
                size = self._record.size()
                busy = len(self._record.unfinished(self.acknowledged)) >= self._in_flight
                if busy or len(self.acknowledged) >= self.allowed:
                    self._record.wait_grown(size + 1, 1)
                    continue
                body = self._made.pop(0)
                if self._patient:
                    self._insist(body)
                else:
                    self._jobs.apply(body)
                self.acknowledged.append(body["metadata"]["name"])
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


    def _insist(self, body):
        def created():
            try:
                status, answer = self._jobs.cluster.api("POST", self._jobs.path, body)
            except http.client.HTTPException:
                return False
            # 409: an earlier answer was lost. 5xx and 429: it has not come up yet.
            if status not in (201, 409, 429) and status < 500 and status != 403:
                raise AssertionError(f"create answered {status}: {answer}")
            return status in (201, 409)

        wait_for("the API server to take a job", created, 120)


def await_work(operator, limit=60):
    """Until it holds shards: before it can take its predecessor's over, it does nothing."""

    def holds():
        if operator.process.poll() is not None:
            raise AssertionError(f"{operator.name} ended with {operator.process.returncode}")
        status, text = operator.get("/metrics") if operator.find_address() else (0, "")
        return status == 200 and "\nholdfast_shards_held 0\n" not in text

    wait_for(f"{operator.name} to hold shards", holds, limit)


class Killer:
    """SIGKILLs operators and starts them again, after a random number of versions of jobs and pods:
    that hits the moments at which something happens."""

    def __init__(self, record, rng, operators):
        self._record, self._rng, self.operators = record, rng, operators
        self.kills = []  # (operator's name, time.monotonic())

    def strike(self, most_versions, limit, restart=True):
        """Waits until all work, and for at most so many further versions, or `limit` seconds, then
        kills one operator and starts it again, without waiting for it to be ready."""
        for operator in self.operators:
            if operator.process.poll() is None:
                await_work(operator)
        self._record.wait_grown(self._record.size() + self._rng.randint(1, most_versions), limit)
        operator = self._rng.choice(self.operators)
        operator.kill()
        self.kills.append((operator.name, time.monotonic()))
        if restart:
            operator.spawn()


def lapses(operators):
    """When they stopped acting because their member Lease was not renewed in time, as (name,
    time.monotonic()): what they were at then is left behind as by one that was killed. On a machine
    that is too busy a process stands still for seconds."""
    offset = time.monotonic() - time.time()
    found = []
    for operator in operators:
        times = re.findall(r"^(\S+)Z WARN this replica stops acting", operator.log(), re.MULTILINE)
        found += [(operator.name, datetime.datetime.fromisoformat(f"{at}+00:00").timestamp() + offset) for at in times]
    return found


def look_again(operators):
    """Operators that know nothing look at all the finished jobs; had they anything to change, it
    would stand in the record afterwards."""
    for operator in operators:
        operator.kill()
        operator.start()
        await_work(operator)
        wait_for("all jobs to be looked at", lambda: not (
            operator.metric("workqueue_depth") or
            operator.metric("controller_runtime_active_workers")), 60)


def unexplained(record, kills):
    """The attempts that never got a pod though nobody was killed when they were recorded."""
    return [(name, attempt) for name, attempt, seen in lost_intents(record.versions("job"))
            if not any(EXPLAINS_SECONDS[0] < killed - seen < EXPLAINS_SECONDS[1]
                       for _, killed in kills)]


def check_run(record, names, kills=()):
    """The judgement: all jobs are there and have ended once, and nothing is unaccounted for."""
    jobs, pods = record.versions("job"), record.versions("pod")
    present = {versions[-1].name for versions in jobs.values()}
    missing = [f"S5 NoLoss: job {name} was acknowledged and is gone" for name in names if name not in present]
    broken = missing + violations(jobs, pods) + unbalanced(jobs, pods)
    broken += [f"S8 Budget: attempt {attempt} of {name} was lost, and no kill explains it"
               for name, attempt in unexplained(record, kills)]
    if broken:
        pytest.fail(f"{len(broken)} violations:\n" + "\n".join(broken[:40]), pytrace=False)


def summary(record, kills=()):
    """One line for the log."""
    jobs, pods = record.versions("job"), record.versions("pod")
    return (f"{len(jobs)} jobs, {len(pods)} pods, {record.size()} versions, {len(kills)} kills, "
            f"{len(lost_intents(jobs))} intents lost")


def operator_pair(cluster):
    """Two operators that do not know of each other: their Leases are in different namespaces."""
    other = "holdfast-other"
    rights = RBAC_PATH.read_text().replace("holdfast-system", other)
    cluster.kubectl("apply", "-f", "-", input=rights)
    return [Operator(cluster, name="left", leases=QUICK_LEASES),
            Operator(cluster, f"--namespace={other}", name="right", leases=QUICK_LEASES)]


def judge_undisturbed(record, names):
    """No operator, pod or node was touched, so no attempt may be lost at all."""
    print(summary(record))
    check_run(record, names)
    lost = [name for name in names if record.status(name)["disruptions"]]
    assert not lost, f"attempts were lost though no pod, node or operator was: {lost}"


def ride_out(jobs, record, rng, outage, count, outages, limit, growth=(50, 250)):
    """Applies mixed jobs and has an outage each time so many versions of them were written. Each
    outage gets its part of the jobs, so that the last one too has something to disturb."""
    made = mixed_jobs(count, rng)
    with Feeder(jobs, record, made, in_flight=40, patient=True) as feeder:
        for number in range(1, outages + 1):
            feeder.allowed = count * number // outages
            record.wait_grown(record.size() + rng.randint(*growth), 20)
            outage()
            # A kubelet would try again what the outage refused it; the simulated ones must be told.
            jobs.cluster.kill_kwok()
            jobs.cluster.start_kwok()
        record.wait_ended(names_of(made), limit)
        assert feeder.error is None, feeder.error
    judge_undisturbed(record, names_of(made))
