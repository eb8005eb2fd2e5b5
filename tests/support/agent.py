"""Real agents before a real API server: the Lease as the operator makes and grants it, a pod whose
token the agent has, and workers that write down when they lived.

    turn = Turn(cluster, "work", folder)
    with turn.agent(beats(folder / "beats")) as agent:
        turn.grant()
        agent.wait_said(...)
"""

import datetime
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import pytest

from fence import (AGE, ENDED, GRANTED, MESSAGE, PROGRESS, Pod, expect, install_fence, lease_path)
from holdfast import built, die_with_parent
from localcluster import wait_for

EXIT_FENCED = 85
# The least that the API takes; parts of it are the contract's deadlines.
DURATION = 10
# For what must happen and has no deadline of its own.
LIMIT = 60
# How much later than it means to a busy machine may let the agent, or a worker, do something.
NOISE = 1.2

# A worker that writes a line of its pid and CLOCK_BOOTTIME every 10 ms for as long as it lives.
# deaf: SIGTERM is written down and not obeyed; away: a second one leaves by setsid and a double fork.
# After four minutes it ends: one that a broken agent leaves behind must not stay for good.
_BEATS = """
import os, signal, sys, time
path, how = sys.argv[1], sys.argv[2:]
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def tell(what):
    os.write(file, b"%s %d %d\\n" % (what, os.getpid(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
if "deaf" in how:
    signal.signal(signal.SIGTERM, lambda *_: tell(b"term"))
if "away" in how and os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
end = time.monotonic() + 240
while time.monotonic() < end:
    tell(b"beat")
    time.sleep(0.01)
"""


def agent_binary():
    return built("agent/holdfast-agent", "HOLDFAST_AGENT")


def python(script, *arguments):
    """A command that runs this script, quick to start."""
    return [sys.executable, "-S", "-E", "-c", script, *map(str, arguments)]


def beats(path, *how):
    """The command of a worker that writes down when it lived; see _BEATS."""
    return python(_BEATS, path, *how)


class Beats:
    """What such workers have written."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def _times(self, what):
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        words = [line.split() for line in lines]
        return [(int(pid), int(when) / 1e9) for kind, pid, when in
                (word for word in words if len(word) == 3) if kind == what]

    def pids(self):
        return {pid for pid, _ in self._times("beat")}

    def first(self):
        return min(when for _, when in self._times("beat"))

    def last(self):
        return max(when for _, when in self._times("beat"))

    def told_to_end(self):
        """When each was first told to end, by pid."""
        times = {}
        for pid, when in self._times("term"):
            times.setdefault(pid, when)
        return times

    def wait(self, count=1):
        """Until so many workers are at work."""
        wait_for(f"{count} workers in {self.path.name}", lambda: len(self.pids()) >= count, LIMIT)

    def living(self):
        return {pid for pid in self.pids() if alive(pid)}


def alive(pid):
    """Whether it runs: a zombie does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def boot_time():
    """CLOCK_BOOTTIME, as the agent and the workers read it, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _boot_time_of(text):
    """A time of a Lease in seconds of CLOCK_BOOTTIME; None: none."""
    if text is None:
        return None
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    # On a busy machine time may pass between two readings. The smallest of a few has none of it.
    return when + min(-time.time() + boot_time() for _ in range(10))


def wait_passed(seconds):
    """So long, whatever happens meanwhile: where time itself is the trouble."""
    began = boot_time()
    wait_for(f"{seconds} s to pass", lambda: boot_time() - began >= seconds, seconds + LIMIT)


class Turn:
    """A job's Lease and the pod of one attempt, with its credentials in `folder`."""

    def __init__(self, cluster, namespace, folder, attempt=1, duration=DURATION, account="default"):
        self.cluster, self.namespace, self.folder = cluster, namespace, pathlib.Path(folder)
        self.attempt, self.duration = attempt, duration
        job = str(uuid.uuid4())
        self.name = f"holdfast-{job}"
        self.path = lease_path(namespace, self.name)
        self.pod = Pod(cluster, namespace, f"job-{attempt}-{job[:5]}", account)
        self.credentials = self.folder / "credentials"
        self.credentials.mkdir()
        (self.credentials / "ca.crt").write_bytes((cluster.folder / "pki/ca.crt").read_bytes())
        self.write_token(self.pod.token())
        self.termination_log = self.folder / "termination-log"
        self.termination_log.touch()
        self.progress_file = self.folder / "progress"
        self._last_renewal = None
        self.make()

    def write_token(self, token):
        """As the kubelet does: the old or the new one, never a part."""
        scratch = self.credentials / ".token"
        scratch.write_text(token)
        scratch.rename(self.credentials / "token")

    # -- the operator -------------------------------------------------------------------------

    def make(self, holder=None):
        """The Lease of an attempt that nobody has yet, or of this holder."""
        lease = {"metadata": {"name": self.name, "labels": {"holdfast.dev/job-uid": self.name[9:]}},
                 "spec": {"leaseDurationSeconds": self.duration, "leaseTransitions": self.attempt}}
        if holder:
            lease["spec"]["holderIdentity"] = holder
        return expect(self.cluster.api("POST", lease_path(self.namespace), lease))

    def get(self):
        return expect(self.cluster.api("GET", self.path))

    def write(self, change):
        """Reads, changes and writes it until nobody comes between."""
        while True:
            lease = self.get()
            before = lease["spec"].get("renewTime")
            lease["metadata"].setdefault("annotations", {})
            change(lease)
            status, answer = self.cluster.api("PUT", self.path, lease)
            if status != 409:
                self._last_renewal = before
                return expect((status, answer))

    def grant(self, holder=None, attempt=None):
        """Given to the pod (or to somebody else), as by the operator."""
        holder, attempt = holder or self.pod.identity, attempt or self.attempt

        def change(lease):
            lease["spec"] = {"leaseDurationSeconds": self.duration, "leaseTransitions": attempt,
                             "holderIdentity": holder, "acquireTime": "2026-01-02T03:04:05.000000Z"}
            annotations = lease["metadata"]["annotations"]
            for key in (PROGRESS, AGE, MESSAGE, ENDED):
                annotations.pop(key, None)
            annotations[GRANTED] = f"{attempt} {holder}"

        return self.write(change)

    def take(self):
        """From its attempt; nobody has it."""
        def change(lease):
            lease["spec"] = {"leaseDurationSeconds": self.duration,
                             "leaseTransitions": lease["spec"]["leaseTransitions"] + 1}

        return self.write(change)

    def delete(self):
        """Reads and deletes it until nobody comes between."""
        while True:
            lease = self.get()
            status, answer = self.cluster.api("DELETE", self.path, {
                "kind": "DeleteOptions", "apiVersion": "v1",
                "preconditions": {"resourceVersion": lease["metadata"]["resourceVersion"]}})
            if status != 409:
                self._last_renewal = lease["spec"].get("renewTime")
                return expect((status, answer))

    def annotation(self, key):
        return self.get()["metadata"].get("annotations", {}).get(key)

    def renewed(self):
        """When the Lease was last renewed, in seconds of CLOCK_BOOTTIME; None: never."""
        return _boot_time_of(self.get()["spec"].get("renewTime"))

    def renewed_before(self):
        """The same, of the Lease that was last changed or deleted here, as it was until then."""
        return _boot_time_of(self._last_renewal)

    def killed_by(self, renewed):
        """When a child is dead whose Lease was last renewed then. The agent kills it at 5/6 of the duration. Nobody
        else starts before the whole duration."""
        return min(renewed + self.duration * 5 / 6 + NOISE, renewed + self.duration)

    def wait_renewed(self, agent=None):
        """Until there is another renewal than now, or that agent ended."""
        before = self.get()["spec"].get("renewTime")
        wait_for("a renewal", lambda: self.get()["spec"].get("renewTime") not in (None, before), LIMIT,
                 alive=agent and (lambda: agent.process.poll() is None))

    # -- the pod ------------------------------------------------------------------------------

    def environment(self, **changes):
        """That of the first container."""
        return {
            "PATH": os.environ["PATH"],
            "HOLDFAST_LEASE_NAMESPACE": self.namespace,
            "HOLDFAST_LEASE_NAME": self.name,
            "HOLDFAST_LEASE_DURATION_SECONDS": str(self.duration),
            "HOLDFAST_ATTEMPT": str(self.attempt),
            "HOLDFAST_POD_NAME": self.pod.name,
            "HOLDFAST_POD_UID": self.pod.uid,
            "HOLDFAST_PROGRESS_FILE": str(self.progress_file),
            "HOLDFAST_TERMINATION_LOG": str(self.termination_log),
            "HOLDFAST_CREDENTIALS": str(self.credentials),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.cluster.ports["kube-apiserver"]),
        } | {key: str(value) for key, value in changes.items()}

    def agent(self, command, prefix=(), stdin=subprocess.DEVNULL, stderr=None, **environment):
        """An agent that is to run this command; `with` starts it and leaves nothing behind. Its stderr is
        kept, unless it goes elsewhere."""
        return Agent(self, [*prefix, agent_binary(), "run", "--", *map(str, command)], stdin, stderr,
                     self.environment(**environment))

    def call(self, *arguments, environment=None):
        """A command of the agent that ends at once: (exit code, stderr)."""
        result = subprocess.run([agent_binary(), *arguments], capture_output=True, text=True,
                                timeout=LIMIT, check=False,
                                env=self.environment() if environment is None else environment)
        assert result.stdout == ""
        return result.returncode, result.stderr


class Agent:
    """One process."""

    def __init__(self, turn, argv, stdin, stderr, environment):
        self.turn, self._argv, self._environment = turn, argv, environment
        self._stdin, self._stderr = stdin, stderr
        self._out = turn.folder / "stdout"
        self._err = turn.folder / "stderr"
        self.process = None

    def __enter__(self):
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen(
                self._argv, stdin=self._stdin, stdout=out, stderr=self._stderr or err,
                env=self._environment, cwd=self.turn.folder, preexec_fn=die_with_parent)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            for pid in descendants(self.process.pid):
                _kill(pid)
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def wait(self, limit=LIMIT):
        """Its exit code."""
        return self.process.wait(timeout=limit)

    def signal(self, number):
        self.process.send_signal(number)

    def stdout(self):
        return self._out.read_bytes()

    def stderr(self):
        return self._err.read_text()

    def wait_said(self, words):
        def said():
            assert self.process.poll() is None or words in self.stderr(), self.stderr()
            return words in self.stderr()

        wait_for(f"{words!r} on stderr", said, LIMIT)

    def check_fenced(self, words):
        """It has ended as one that is fenced, for this reason, and said so in both places."""
        assert self.wait() == EXIT_FENCED, self.stderr()
        last = self.stderr().splitlines()[-1]
        assert last.startswith("holdfast: fenced: ") and words in last, self.stderr()
        assert self.turn.termination_log.read_text() == last + "\n"


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def descendants(pid):
    """Of this process, zombies too."""
    children = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            rest = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(rest[1]), []).append(int(folder.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


@pytest.fixture(scope="module")
def work(cluster):
    """A namespace with the fence around it."""
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": "work"}})
    install_fence(cluster, ["work"])
    return "work"


@pytest.fixture()
def turn(cluster, work, tmp_path):
    """The first attempt of a job; its pod has not got the Lease yet."""
    return Turn(cluster, work, tmp_path)


# As root without CAP_KILL, whose child is another user: signals do not reach it.
NO_KILL = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
           "setpriv", "--bounding-set", "-kill", "--inh-caps", "-kill")
ANOTHER = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups")


@pytest.fixture()
def common():
    """A folder for everybody."""
    if subprocess.run([*NO_KILL, *ANOTHER, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this needs root, unshare and setpriv")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)
