"""examples/postgresql on a real PostgreSQL: what an attempt writes after its successor has begun is
refused by the database."""

import pathlib
import subprocess
import uuid

import pytest

from localcluster import wait_for
from postgresql import Database

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/postgresql"


def work(database, job, attempt):
    """What the example's worker does."""
    return database.run(EXAMPLE / "work.sql", job=job, attempt=attempt)


def result(database, job):
    return database.run(f"SELECT attempt FROM results WHERE job = '{job}'")[1].strip()


class Session:
    """A psql that is told line by line, with what it printed."""

    def __init__(self, database):
        self._out = database.folder / f"session-{uuid.uuid4()}"
        with open(self._out, "wb") as out:
            self.process = subprocess.Popen(database.psql(), stdin=subprocess.PIPE, stdout=out, stderr=out,
                                            text=True, cwd=database.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def said(self):
        return self._out.read_text()

    def wait_said(self, words):
        wait_for(f"{words!r} from psql", lambda: words in self.said(), 60)

    def end(self):
        """Its exit code, when it has read all."""
        self.process.stdin.close()
        return self.process.wait(timeout=60)


@pytest.fixture(scope="module")
def database():
    with Database() as database:
        for sql in (EXAMPLE / "fence.sql", EXAMPLE / "fence.sql"):  # twice: it may be run again
            assert database.run(sql)[0] == 0
        assert database.run("CREATE TABLE results (job uuid PRIMARY KEY, attempt bigint NOT NULL, "
                            "rows bigint NOT NULL)")[0] == 0
        yield database


def fence(job, attempt, patience="30 s"):
    return f"SELECT holdfast_fence('{job}', {attempt}, '{patience}');"


def write(job, attempt):
    return (f"INSERT INTO results VALUES ('{job}', {attempt}, 1) ON CONFLICT (job) DO UPDATE "
            f"SET attempt = excluded.attempt;")


def test_each_attempt_writes_in_its_turn_and_again(database):
    job = uuid.uuid4()
    for attempt in (1, 1, 2, 5, 5):
        assert work(database, job, attempt) == (0, "\n")
        assert result(database, job) == str(attempt)


def test_a_zombie_that_comes_after_its_successor_is_refused_and_changes_nothing(database):
    job, other = uuid.uuid4(), uuid.uuid4()
    work(database, job, 2)
    code, said = work(database, job, 1)
    assert code != 0 and f"fenced: attempt 1 of job {job} is over, attempt 2 has begun" in said
    assert result(database, job) == "2"
    assert work(database, other, 1)[0] == 0, "other jobs' attempts do not matter"


def test_a_zombie_that_is_caught_in_its_transaction_cannot_commit_after_its_successor_has_begun(database):
    job = uuid.uuid4()
    with Session(database) as zombie:
        zombie.tell(f"BEGIN; {fence(job, 1, '1 s')} {write(job, 1)}\n\\echo stands still")
        zombie.wait_said("stands still")
        # It holds the successor up for a second; then the server has ended its session.
        assert work(database, job, 2)[0] == 0
        zombie.tell("COMMIT;")
        assert zombie.end() != 0
        assert "terminating connection due to idle-in-transaction timeout" in zombie.said()
    assert result(database, job) == "2"


def test_what_an_attempt_commits_before_its_successor_begins_counts(database):
    job = uuid.uuid4()
    with Session(database) as first, Session(database) as second:
        first.tell(f"BEGIN; {fence(job, 1)} {write(job, 1)}\n\\echo written")
        first.wait_said("written")
        second.tell(f"BEGIN; {fence(job, 2)}\n\\echo my turn\nSELECT 'found ' || attempt FROM results "
                    f"WHERE job = '{job}'; COMMIT;")
        wait_for("the successor to wait for it", lambda: "Lock" in database.run(
            "SELECT wait_event_type FROM pg_stat_activity WHERE query LIKE '%holdfast_fence%' AND "
            "wait_event_type = 'Lock'")[1], 60)
        first.tell("COMMIT;")
        assert first.end() == 0
        assert second.end() == 0
        assert "found 1" in second.said()


def test_transactions_of_one_attempt_run_side_by_side(database):
    job = uuid.uuid4()
    assert database.run(fence(job, 1))[0] == 0
    with Session(database) as one, Session(database) as two:
        for session in (one, two):
            session.tell(f"BEGIN; {fence(job, 1)}\n\\echo in")
            session.wait_said("in")


def test_the_fence_cannot_be_turned_back(database):
    job = uuid.uuid4()
    work(database, job, 3)
    for attempt in (2, 1):
        assert work(database, job, attempt)[0] != 0
    assert database.run(fence(job, 0))[0] != 0
    assert work(database, job, 3)[0] == 0
