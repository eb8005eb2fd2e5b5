"""Workers that write down when they lived, jobs of them, and what their own timestamps show.

    lives = Lives(folder / "lives")
    jobs.apply(beating("job", lives, {"exit": 1}, {"run": 3}))      # the first attempt, all others
    lives.wait(attempt=2)
    assert lives.overlaps() == []
"""

import collections
import json
import pathlib

import pytest

from agent import DURATION, alive, python, work  # noqa: F401
from holdfast import QUICK_LEASES, Jobs, Operator, job
from host_node import HOSTED, HostNodes
from localcluster import wait_for
from losses import LOST_AFTER

LIMIT = 60
IMAGE = "holdfast/agent:test"
SOON = {"initialSeconds": 1, "factor": 1, "maxSeconds": 1, "jitterPercent": 0}
# The least that the API takes.
HEARTBEAT = {"leaseDurationSeconds": DURATION}

# A worker writes lines of what happened, its attempt, its pid and CLOCK_BOOTTIME: "beat" every 20 ms
# for as long as it lives. Its plan, by attempt, the last one stands for the rest:
#   run       how many seconds; without it, until it is ended
#   exit      its exit code
#   deaf      SIGTERM is written down and not obeyed
#   away      a second one leaves by setsid and a double fork, and works until it is killed
#   progress  it makes progress every so many seconds
#   says      its message of progress, at the start
#   until     no progress after so many seconds
_WORKER = """
import json, os, signal, sys, time
path, plans = sys.argv[1], json.loads(sys.argv[2])
attempt = int(os.environ["HOLDFAST_ATTEMPT"])
plan = plans[min(attempt, len(plans)) - 1]
lives = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
def tell(what):
    os.write(lives, b"%s %d %d %d\\n" % (what, attempt, os.getpid(), now()))
if plan.get("deaf"):
    signal.signal(signal.SIGTERM, lambda *_: tell(b"term"))
began = now()
if plan.get("away") and os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    plan = {}
def progress(message):
    name = os.environ["HOLDFAST_PROGRESS_FILE"]
    with open(name + ".new", "w") as file:
        file.write(message)
    os.rename(name + ".new", name)
    tell(b"progress")
if "says" in plan:
    progress(plan["says"])
steps = 0
while True:
    tell(b"beat")
    lived = (now() - began) / 1e9
    if lived >= plan.get("run", 1e9):
        sys.exit(plan.get("exit", 0))
    if "progress" in plan and steps * plan["progress"] <= lived <= plan.get("until", 1e9):
        steps += 1
        progress(plan.get("says", "") or "step %d" % steps)
    time.sleep(0.02)
"""

# One process of an attempt; times are CLOCK_BOOTTIME in seconds.
Life = collections.namedtuple("Life", "attempt pid first last")


class Lives:
    """What the workers of a job have written."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._read = 0     # bytes of the file that were taken in: fifty lines a second for each worker
        self._lives = {}   # (attempt, pid) -> Life
        self._others = []  # (what, attempt, pid, when): all but the beats

    def _take_in(self):
        """Reads what was added since, up to the last whole line."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        whole = added[:added.rfind(b"\n") + 1]
        self._read += len(whole)
        for words in map(str.split, whole.decode().splitlines()):
            if len(words) != 4:
                continue
            what, attempt, pid, when = words[0], int(words[1]), int(words[2]), int(words[3]) / 1e9
            if what == "beat":
                first = self._lives.get((attempt, pid), Life(attempt, pid, when, when)).first
                self._lives[attempt, pid] = Life(attempt, pid, first, when)
            else:
                self._others.append((what, attempt, pid, when))

    def times(self, what, attempt=None):
        """[(attempt, pid, when)] of "term" or "progress", oldest first."""
        self._take_in()
        return [other[1:] for other in self._others if other[0] == what and attempt in (None, other[1])]

    def all(self, attempt=None):
        """The lives of all its processes, by their beginning."""
        self._take_in()
        return sorted((life for life in self._lives.values() if attempt in (None, life.attempt)),
                      key=lambda life: life.first)

    def wait(self, attempt, count=1, limit=LIMIT):
        """Until so many processes of this attempt are at work; the first one's life."""
        wait_for(f"attempt {attempt} to work in {self.path.name}", lambda: len(self.all(attempt)) >= count, limit)
        return self.all(attempt)[0]

    def last(self, attempt):
        """When the last one of this attempt was alive."""
        return max(life.last for life in self.all(attempt))

    def living(self, attempt=None):
        return [life.pid for life in self.all(attempt) if alive(life.pid)]

    def overlaps(self):
        """Pairs of lives of different attempts that were at work at one time."""
        lives = self.all()
        return [(one, other) for index, one in enumerate(lives) for other in lives[index + 1:]
                if one.attempt != other.attempt and other.first <= one.last]


def works(lives, *plans):
    """The command of a worker; see _WORKER."""
    return python(_WORKER, lives.path, json.dumps(plans or [{}]))


def beating(name, lives, *plans, heartbeat=None, **spec):
    """A job with a heartbeat that such a worker does on the hosts."""
    spec = {"retryBackoff": SOON, "lostAfterSeconds": LOST_AFTER, "pod": HOSTED} | spec
    return job(name, command=works(lives, *plans), heartbeat=heartbeat or HEARTBEAT, **spec)


@pytest.fixture(scope="module")
def nodes(cluster, tmp_path_factory):
    """Two of them, so that a successor may run on the other."""
    with HostNodes(cluster, tmp_path_factory.mktemp("hosts"), 2) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def operator(cluster, work, nodes):  # noqa: F811
    """Told of the agent's image; in a namespace with the fence."""
    with Operator(cluster, f"--agent-image={IMAGE}", leases=QUICK_LEASES) as operator:
        yield operator


@pytest.fixture()
def jobs(cluster, work):  # noqa: F811
    return Jobs(cluster, work)


@pytest.fixture()
def lives(tmp_path):
    return Lives(tmp_path / "lives")
