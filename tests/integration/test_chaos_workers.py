"""Warm workers are killed at random, and operators too, while each command writes to a real PostgreSQL: each job ends
once, the database has one outcome of each, and it refuses each late write.

    CHAOS_MINUTES=10 make test-long PYTEST_ARGS="-k chaos_workers"      # 5,000 jobs; default: 1.5 minutes, 750 jobs
"""

import contextlib
import os
import re
import statistics
import threading
import time

import pytest

from agent import work  # noqa: F401
from chaos import seeded
from chaos_workers import Disturber
from fake_pool import WORKER, allow_workers
from holdfast import QUICK_LEASES, Jobs, Operator
from host_worker import IMAGE, SOON, nodes  # noqa: F401
from invariants import violations
from localcluster import wait_for
from pools import pools  # noqa: F401
from postgresql import Database
from record import STORE_AS_JSON, Recorder
from worker_examples import EXAMPLES

pytestmark = pytest.mark.long

CLUSTER = {"nodes": 0, "kwok": False, "apiserver_flags": [STORE_AS_JSON]}
MINUTES = float(os.environ.get("CHAOS_MINUTES", "1.5"))
JOBS_A_MINUTE, MOST_OPEN = 500, 200
STRIKE_SECONDS = 5
STRIKES = round(MINUTES * 60 / STRIKE_SECONDS)
POOL, WORKERS, SLOTS, LEASE = "chaos", 8, 12, 10
# Seconds. A long command still runs when its frozen worker was cut off and its job has gone to another one, and the
# node of the worker leaves it for so long.
SHORT, LONG, GRACE = (0, 0.2, 0.5, 1), 35, 30

# Each attempt may begin once. The log has all that was committed, in the order in which the fence let it through.
TABLES = """
CREATE TABLE results (job uuid PRIMARY KEY, attempt bigint NOT NULL, rows bigint NOT NULL);
CREATE TABLE begun (job uuid, attempt bigint, seconds double precision NOT NULL, PRIMARY KEY (job, attempt));
CREATE TABLE log (id bigserial PRIMARY KEY, job uuid NOT NULL, attempt bigint NOT NULL, source text NOT NULL);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (job, attempt, source) VALUES (NEW.job, NEW.attempt, TG_TABLE_NAME);
    RETURN NEW;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON results FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON begun FOR EACH ROW EXECUTE FUNCTION note();
"""
BEGIN = """
BEGIN;
SELECT holdfast_fence(:'job', :attempt);
INSERT INTO begun VALUES (:'job', :attempt, :seconds);
COMMIT;
SELECT pg_sleep(:seconds);
"""
BEGUN_LAST = f"""
SELECT job, log.attempt FROM log JOIN begun USING (job, attempt) WHERE source = 'begun' AND seconds = {LONG}
ORDER BY id DESC LIMIT 1
"""
AT_WORK = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
REFUSED = re.compile(r"ERROR:  fenced: attempt (\d+) of job ([0-9a-f-]{36}) is over")


@pytest.fixture(scope="module")
def database():
    with Database(connections=4 * WORKERS * SLOTS) as database:
        code, said = database.run(EXAMPLES / "postgresql/fence.sql", TABLES)
        assert code == 0, said
        yield database


@pytest.fixture(scope="module")
def command(database, tmp_path_factory):
    """Says in the database that it has begun, works for as many seconds as the payload says, and then does what the
    worker of examples/postgresql does."""
    begin = tmp_path_factory.mktemp("sql") / "begin.sql"
    begin.write_text(BEGIN)
    script = ('read -r seconds; exec "$@" -o /dev/null -v seconds="$seconds" -v job="$HOLDFAST_JOB_UID" '
              '-v attempt="$HOLDFAST_ATTEMPT"')
    return ["sh", "-c", script, "sh", *database.psql("-f", begin, "-f", EXAMPLES / "postgresql/work.sql")]


@pytest.fixture(scope="module")
def operators(cluster, work, nodes):  # noqa: F811
    allow_workers(cluster, work)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Operator(cluster, f"--agent-image={IMAGE}", name=name, leases=QUICK_LEASES))
               for name in ("left", "right")]


def made_jobs(rng):
    """One in 50 runs long."""
    return [{"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": f"job-{number}"},
             "spec": {"workerPool": {"name": POOL}, "retryBackoff": SOON,
                      "payload": f"{LONG if number % 50 == 0 else rng.choice(SHORT)}\n"}}
            for number in range(round(JOBS_A_MINUTE * MINUTES))]


class Feeder:
    """Creates the jobs one after the other, evenly over the time, and fewer while too many are open."""

    def __init__(self, jobs, record, made):
        self._jobs, self._record, self._made = jobs, record, made
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stopped = threading.Event()
        self.names = {}  # by UID
        self.error = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    @property
    def done(self):
        return not self._thread.is_alive()

    def _run(self):
        began, open_ones = time.monotonic(), []
        try:
            for number, body in enumerate(self._made):
                due = began + 60 * number / JOBS_A_MINUTE
                while time.monotonic() < due or len(open_ones) >= MOST_OPEN:
                    if self._stopped.wait(0.02):
                        return
                    open_ones = self._record.unfinished(open_ones)
                made = self._jobs.apply(body)["metadata"]
                self.names[made["uid"]] = made["name"]
                open_ones.append(made["name"])
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


def live(pools):  # noqa: F811
    """The UIDs of the pods whose agents have written into their worker Leases."""
    return {name.removeprefix("holdfast-worker-") for name, lease in pools.leases(POOL).items()
            if WORKER in lease["metadata"].get("annotations", {})}


def begun_last(database, record, names):
    """The worker whose long command has begun last, or None."""
    _, said = database.run(BEGUN_LAST)
    uid, _, attempt = said.strip().partition("|")
    status = record.status(names.get(uid, ""))
    runs = status.get("runs") or [{}]
    return runs[0].get("workerName") if status.get("attempt") == int(attempt or 0) else None


def test_each_job_ends_once_while_workers_are_killed(
        cluster, work, nodes, operators, pools, database, command):  # noqa: F811
    rng = seeded("workers")
    with Recorder(cluster, work) as record:
        pools.apply(POOL, command=[str(word) for word in command], pod={"terminationGracePeriodSeconds": GRACE},
                    minWorkers=WORKERS, maxWorkers=WORKERS, slotsPerWorker=SLOTS, leaseDurationSeconds=LEASE)
        pools.wait_live(POOL, WORKERS)
        began = time.monotonic()
        with Feeder(Jobs(cluster, work), record, made_jobs(rng)) as feeder:
            disturber = Disturber(rng, nodes, operators, lambda: live(pools),
                                  lambda: begun_last(database, record, feeder.names))
            struck = began

            def over():
                nonlocal struck
                if time.monotonic() >= struck + STRIKE_SECONDS and disturber.strike(least=WORKERS / 2):
                    struck = time.monotonic()
                disturber.thaw()
                return feeder.done and disturber.done["killed"] >= STRIKES

            wait_for("all jobs to be made and all strikes to be done", over, 120 + 4 * 60 * MINUTES)
        assert feeder.error is None, feeder.error
        record.wait_ended(feeder.names.values(), 240)
        print(f"{time.monotonic() - began:.0f} s, {len(feeder.names)} jobs, {dict(disturber.done)}, "
              f"{summary(record, disturber.killed)}")
        disturber.thaw(all_of_them=True)
        wait_for("late commands to be gone", lambda: rows(database, AT_WORK) == [("0",)], 60)
        judge_jobs(record, feeder.names)
        judge_database(record, feeder.names, database, disturber.frozen)
    judge_pool(pools)


def history(record):
    """{job's UID: {attempt: its entry in history}}, of all attempts that ended."""
    return {uid: {entry["attempt"]: entry for version in versions
                  for entry in version.object.get("status", {}).get("history", [])}
            for uid, versions in record.versions("job").items()}


def judge_jobs(record, names):
    broken = violations(record.versions("job"), record.versions("pod"))
    ended = history(record)
    broken += [f"S5 NoLoss: job {name} is gone" for uid, name in names.items() if uid not in ended]
    for uid, name in names.items():
        status, attempts = record.status(name), ended[uid]
        outcomes = [attempts[number]["outcome"] for number in sorted(attempts)]
        if status.get("phase") != "Succeeded" or outcomes[-1:] != ["Succeeded"]:
            broken.append(f"{name} ended as {status.get('phase')}: {outcomes}")
        # Nothing but a worker was lost: no command of a current attempt failed, and none began twice.
        if set(outcomes[:-1]) - {"Lost", "HandedBack"} or status.get("failures", 0):
            broken.append(f"{name} has failures: {list(attempts.values())}")
        if sorted(attempts) != list(range(1, status["attempt"] + 1)):
            broken.append(f"{name} has an attempt without an end: {sorted(attempts)} of {status['attempt']}")
    assert not broken, f"{len(broken)} violations:\n" + "\n".join(broken[:40])


def judge_database(record, names, database, frozen):
    attempts = {uid: record.status(name)["attempt"] for uid, name in names.items()}
    assert dict(rows(database, "SELECT job, attempt FROM results")) == {
        uid: str(attempt) for uid, attempt in attempts.items()}, "a result is missing, or not of the last attempt"
    fell = ("SELECT job, attempt FROM (SELECT job, attempt, attempt < lag(attempt) OVER (PARTITION BY job ORDER BY id) "
            "AS fell FROM log) AS steps WHERE fell")
    assert rows(database, fell) == [], "writes of an old attempt after those of its successor"
    assert rows(database, "SELECT job, attempt FROM log GROUP BY job, attempt, source HAVING count(*) > 1") == []

    refused = {(uid, int(attempt)) for attempt, uid in REFUSED.findall(database.log())}
    ended = history(record)
    workers = {one: ended[one[0]][one[1]].get("workerName") for one in refused}
    print(f"{len(refused)} late writes were refused")
    # An agent that gets to run ends its commands before their successors begin (S22).
    assert {name for name in workers.values() if name not in frozen} == set(), workers
    assert refused, "no write came late, so the fence was not tested"


def judge_pool(pools):  # noqa: F811
    """No slot, worker or Lease was forgotten."""
    pools.wait(POOL, "all slots to be free", lambda s: not s.get("busy") and not s.get("waiting") and (
        s.get("idle") == WORKERS), 120)
    wait_for("the Leases of the live workers alone", lambda: len(pools.leases(POOL)) == 2 * len(pools.pods(POOL)), 60)


def rows(database, statement):
    code, said = database.run(statement)
    assert code == 0, said
    return [tuple(line.split("|")) for line in said.split()]


def summary(record, killed):
    """How many attempts were lost with killed workers, and how soon the next ones were on record."""
    gaps = []
    for versions in record.versions("job").values():
        seen = {}
        for version in versions:
            status = version.object.get("status", {})
            for run in status.get("runs", []):
                seen.setdefault(status["attempt"], (run.get("workerName"), version.seen))
        # Another worker of the name may have been killed before the attempt had its place there.
        gaps += [seen[attempt + 1][1] - kill for attempt, (worker, placed) in seen.items() if attempt + 1 in seen
                 for kill in killed.get(worker, []) if placed <= kill < seen[attempt + 1][1]]
    if not gaps:
        return "no attempt lost by a kill"
    gaps.sort()
    return (f"{len(gaps)} attempts lost by kills, next one after {statistics.median(gaps):.2f} s (median), "
            f"{gaps[-1]:.2f} s (most)")
