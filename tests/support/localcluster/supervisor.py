#!/usr/bin/python3
"""Owns the processes of one cluster, so that none of them outlives it.

Every child gets PR_SET_PDEATHSIG SIGKILL and a session of its own: it ends with the supervisor,
whatever ends that. The supervisor in turn ends with its owner when it has one: the owner holds the
write end of a pipe, and end-of-file on the read end means that the owner is gone, by SIGKILL too.

It is one thread around one selector (PDEATHSIG follows the thread that forked, so there must be no
second one). Commands come as one JSON line per connection on a Unix socket in the cluster's folder:

    {"do": "start", "name": ..., "argv": [...], "env": {...}, "log": PATH}  -> {"pid": N}
    {"do": "signal", "name": ..., "signal": N}    answers when a killed process is reaped
    {"do": "status"}                              -> {"processes": {name: {...}}}
    {"do": "ports", "count": N}                   -> {"ports": [...]} reserved while it lives
    {"do": "stop"}                                kills all children, answers, ends
"""

import argparse
import ctypes
import json
import os
import random
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
SOCKET_NAME = "supervisor.sock"
# SIGKILL ends a process in milliseconds; one that hangs in the kernel must not hang us.
REAP_LIMIT_SECONDS = 20
MAX_COMMAND_BYTES = 1 << 20
# Below Linux' default range for outgoing connections (32768-60999): a server that is restarted on
# its port must not find it taken by the local end of somebody's connection.
PORT_RANGE = (20000, 32000)

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent):
    """For the child between fork and exec."""
    if _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        os._exit(127)
    if os.getppid() != parent:  # it died before prctl took effect
        os._exit(127)


class Child:
    """One process and how it ended."""

    def __init__(self, popen):
        self.popen = popen
        self.pidfd = os.pidfd_open(popen.pid)
        self.started = time.time()
        self.stopped = False  # by SIGSTOP

    def describe(self):
        """What `status` says of it."""
        return {"pid": self.popen.pid, "running": self.popen.returncode is None,
                "returncode": self.popen.returncode, "paused": self.stopped,
                "started": self.started}


class Supervisor:
    """See the module's comment."""

    def __init__(self, folder, owner_fd, remove_folder):
        self._folder = folder
        self._remove_folder = remove_folder
        self._children = {}
        self._port_locks = []
        self._ending = False
        self._selector = selectors.DefaultSelector()
        self._listener = self._listen()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._owner_fd = owner_fd
        if owner_fd is not None:
            self._selector.register(owner_fd, selectors.EVENT_READ, self._owner_gone)
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write)
        self._selector.register(wake_read, selectors.EVENT_READ, self._signalled)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def _listen(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.chdir(self._folder)  # a relative name: sun_path holds 107 bytes, folders may be deeper
        Path(SOCKET_NAME).unlink(missing_ok=True)
        listener.bind(SOCKET_NAME)
        os.chmod(SOCKET_NAME, 0o600)
        listener.listen(16)
        return listener

    def run(self):
        """Until told to stop, signalled, or left by the owner."""
        while not self._ending:
            for key, _ in self._selector.select():
                key.data(key.fileobj)
        self._kill_all()
        if self._remove_folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _owner_gone(self, fd):
        if os.read(fd, 4096) == b"":
            self._ending = True

    def _signalled(self, fd):
        os.read(fd, 4096)
        self._ending = True

    def _child_ended(self, pidfd):
        for child in self._children.values():
            if child.pidfd == pidfd:
                child.popen.wait()
        self._selector.unregister(pidfd)
        os.close(pidfd)

    def _accept(self, listener):
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                line = connection.makefile("rb").readline(MAX_COMMAND_BYTES)
                if not line:
                    return  # somebody asks only whether we live
                answer = self._perform(json.loads(line))
            except Exception as error:  # any bad command is an answer; the children live on
                answer = {"error": f"{type(error).__name__}: {error}"}
            try:
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                pass  # the asker is gone

    def _perform(self, command):
        do = command["do"]
        if do == "start":
            return self._start(command["name"], command["argv"], command["env"], command["log"])
        if do == "signal":
            return self._signal(command["name"], command["signal"])
        if do == "status":
            return {"pid": os.getpid(),
                    "processes": {n: c.describe() for n, c in self._children.items()}}
        if do == "ports":
            return {"ports": [self._reserve_port() for _ in range(command["count"])]}
        if do == "stop":
            self._kill_all()
            self._ending = True
            return {}
        raise ValueError(f"unknown command {do!r}")

    def _start(self, name, argv, env, log):
        old = self._children.get(name)
        if old is not None and old.popen.returncode is None:
            raise ValueError(f"{name} is running already, pid {old.popen.pid}")
        parent = os.getpid()
        with open(log, "ab") as output:
            popen = subprocess.Popen(argv, env=env, cwd=self._folder, stdin=subprocess.DEVNULL,
                                     stdout=output, stderr=output, start_new_session=True,
                                     preexec_fn=lambda: die_with_parent(parent))
        child = Child(popen)
        self._children[name] = child
        self._selector.register(child.pidfd, selectors.EVENT_READ, self._child_ended)
        return {"pid": popen.pid}

    def _signal(self, name, number):
        child = self._children[name]
        if child.popen.returncode is not None:
            raise ValueError(f"{name} is not running")
        child.popen.send_signal(number)
        if number == signal.SIGSTOP:
            # The signal is only sent by now: wait until every thread has stopped, so that nothing is
            # answered any more once the caller goes on.
            os.waitid(os.P_PID, child.popen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            child.stopped = True
        elif number == signal.SIGCONT:
            child.stopped = False
        elif number == signal.SIGKILL:
            child.popen.wait(REAP_LIMIT_SECONDS)
        return {}

    def _kill_all(self):
        running = [c for c in self._children.values() if c.popen.returncode is None]
        for child in running:
            child.popen.kill()
        for child in running:
            child.popen.wait(REAP_LIMIT_SECONDS)

    def _reserve_port(self):
        """A free loopback port that no other supervisor on this machine hands out.

        The lock is an abstract Unix socket: it has the same scope as ports (the network
        namespace) and goes away with this process.
        """
        for port in random.sample(range(*PORT_RANGE), 1000):
            lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                lock.bind(f"\0holdfast-port-{port}")
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                lock.close()
                continue
            self._port_locks.append(lock)
            return port
        raise OSError("no free loopback port between %d and %d" % PORT_RANGE)


def main():
    parser = argparse.ArgumentParser(description="internal to tests/support/localcluster")
    parser.add_argument("folder")
    parser.add_argument("--owner-fd", type=int)
    parser.add_argument("--remove-folder", action="store_true")
    options = parser.parse_args()
    try:
        Supervisor(options.folder, options.owner_fd, options.remove_folder).run()
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
