"""Starting, asking and ending the supervisor of a cluster's folder."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from .supervisor import SOCKET_NAME
from .waiting import ClusterError, wait_for

SCRIPT = Path(__file__).resolve().parent / "supervisor.py"
# In the environment of every process of a cluster, so that `down` can see that none is left.
MARK = "HOLDFAST_CLUSTER_PROCESS"
ANSWER_LIMIT_SECONDS = 60
END_LIMIT_SECONDS = 20


class SupervisorClient:
    """Talks to the supervisor of one folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self._owner_pipe = None

    def start(self, owned, remove_folder):
        """Starts the supervisor. When `owned` it and all its processes end with this process."""
        read_end, write_end = os.pipe()  # both are closed on exec: no child of ours holds it open
        command = [sys.executable, str(SCRIPT), str(self.folder)]
        if owned:
            command += ["--owner-fd", str(read_end)]
            if remove_folder:
                command.append("--remove-folder")
        with open(self.folder / "supervisor.log", "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True, env=self.environment(),
                                       pass_fds=(read_end,) if owned else ())
        os.close(read_end)
        self._owner_pipe = write_end
        wait_for("the supervisor to answer", self.alive, 20, self.folder / "supervisor.log",
                 alive=lambda: process.poll() is None)
        # It is ours to reap when owned; when not, it is init's as soon as this command ends.
        self._process = process

    def environment(self):
        """For the cluster's processes: nothing of the caller's home or proxies leaks in."""
        keep = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TZ", "GOGC", "GOMAXPROCS")}
        return dict(keep, HOME=str(self.folder), **{MARK: str(self.folder)})

    def ask(self, do, **arguments):
        """One command; raises ClusterError with the supervisor's own words."""
        try:
            with self._connect() as connection:
                connection.settimeout(ANSWER_LIMIT_SECONDS)
                connection.sendall(json.dumps(dict(arguments, do=do)).encode() + b"\n")
                line = connection.makefile("rb").readline()
        except OSError as error:
            raise ClusterError(f"the cluster in {self.folder} is not up: {error}") from error
        if not line:
            raise ClusterError(f"the supervisor of {self.folder} ended while asked to {do}")
        answer = json.loads(line)
        if "error" in answer:
            raise ClusterError(f"{do} {arguments.get('name', '')}: {answer['error']}")
        return answer

    def alive(self):
        """Whether a supervisor listens."""
        try:
            self._connect().close()
            return True
        except OSError:
            return False

    def stop(self):
        """Ends the supervisor and its processes, then proves that none is left."""
        if self.alive():
            self.ask("stop")
        process = getattr(self, "_process", None)
        if process is not None:
            try:
                process.wait(END_LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._owner_pipe is not None:
            os.close(self._owner_pipe)
            self._owner_pipe = None
        deadline = time.monotonic() + END_LIMIT_SECONDS
        while True:
            left = processes_of(self.folder)
            if not left:
                return
            if time.monotonic() > deadline:
                raise ClusterError(f"processes of {self.folder} do not end: {left}")
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        descriptor = None
        try:
            connection.settimeout(5)
            # By way of /proc, because a socket's path holds only 107 bytes.
            descriptor = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            connection.connect(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}")
            return connection
        except OSError:
            connection.close()
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)


def processes_of(folder):
    """Pids of the living processes of a cluster, by the mark in their environment."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            continue  # gone meanwhile, or somebody else's
    return found


def remove_folder(folder):
    """The folder of a cluster that was stopped."""
    shutil.rmtree(folder, ignore_errors=True)
    if Path(folder).exists():
        raise ClusterError(f"cannot remove {folder}")


class FolderLock:
    """Keeps two `up`s or `down`s of the same name apart. Nothing of it stays."""

    def __init__(self, path, limit=120):
        self._path = Path(path)
        self._limit = limit
        self._file = None

    def __enter__(self):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        wait_for(f"the lock {self._path}, held by another command", self._locked, self._limit)
        return self

    def __exit__(self, *_):
        self._path.unlink()
        self._file.close()

    def _locked(self):
        file = open(self._path, "a", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who held it before has removed it meanwhile: then this is no lock any more.
            if os.path.samestat(os.fstat(file.fileno()), os.stat(self._path)):
                self._file = file
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        file.close()
        return False
