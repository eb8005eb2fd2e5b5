"""A real PostgreSQL for a test.

    with Database() as database:
        code, printed = database.run("SELECT 1")
"""

import glob
import os
import pathlib
import pwd
import socket
import subprocess
import tempfile

from localcluster import wait_for

OWNER = "postgres"  # the server does not run as root


class Database:
    """A server of the test's own. It listens on a Unix socket in its folder, and with `tcp` on a port of
    127.0.0.1 too, because JDBC knows no Unix sockets. `connections`: how many at once.

    The folder is none of pytest's: each new pytest process closes those to other users again."""

    def __init__(self, tcp=False, connections=100):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        assert found, "PostgreSQL's server is not there: run `make setup`"
        self._bin = pathlib.Path(found[-1]).parent
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-pg-")
        self.folder = pathlib.Path(self._folder.name)
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self._server = None
        self.port = free_port() if tcp else 5432
        self._address = "127.0.0.1" if tcp else ""
        self._connections = connections

    def _as_owner(self, argv):
        return [*(["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []), *map(str, argv)]

    def __enter__(self):
        if os.geteuid() == 0:
            owner = pwd.getpwnam(OWNER)
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        subprocess.run(self._as_owner([self._bin / "initdb", "-D", self._data, "-U", OWNER,
                                       "--auth=trust", "--no-sync"]),
                       check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
        with open(self._log, "wb") as log:
            self._server = subprocess.Popen(
                self._as_owner([self._bin / "postgres", "-D", self._data, "-k", self.folder,
                                "-h", self._address, "-p", self.port, "-c", "fsync=off",
                                "-c", f"max_connections={self._connections}"]),
                stdout=log, stderr=log, cwd=self.folder)
        wait_for("PostgreSQL to answer", lambda: self.run("SELECT 1")[0] == 0, 60, log=self._log,
                 alive=lambda: self._server.poll() is None)
        return self

    def __exit__(self, *_):
        subprocess.run(self._as_owner([self._bin / "pg_ctl", "-D", self._data, "-m", "immediate", "stop"]),
                       check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
        self._server.wait()
        self._folder.cleanup()

    def psql(self, *arguments):
        return [str(self._bin / "psql"), "-X", "-q", "-t", "-A", "-h", str(self.folder),
                "-p", str(self.port), "-U", OWNER, "-v", "ON_ERROR_STOP=1", *map(str, arguments)]

    def run(self, *statements, **variables):
        """(exit code, what was printed)"""
        arguments = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
        for statement in statements:
            is_file = isinstance(statement, pathlib.Path)
            arguments += ["-f" if is_file else "-c", str(statement)]
        done = subprocess.run(self.psql(*arguments), capture_output=True, text=True, timeout=60,
                              check=False, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def log(self):
        """What the server has written, errors of statements among it."""
        return self._log.read_text()

    def environment(self):
        """The variables of libpq by which a client finds it over TCP."""
        return {"PGHOST": self._address, "PGPORT": str(self.port), "PGUSER": OWNER, "PGDATABASE": "postgres"}


def free_port():
    """A port that nobody listens on now. If another process is quicker, the server ends and says so."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
