"""What the tests of examples/workers share: the three programs, as commands of a worker, and their database."""

import os
import pathlib
import subprocess
import sys

import pytest

from postgresql import Database

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LANGUAGES = ("python", "java", "go")  # Go comes last: it is compiled meanwhile
PAYLOAD = {"from": 1, "to": 1000, "pageSize": 100}
PAUSE, STOP = '{"pause": true}', '{"stop": true}'
# As tests/support/localcluster/tools.py builds its tools, so Go's own packages come from the same cache.
GO_BUILD = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"]


def primes(first, last):
    return [n for n in range(max(first, 2), last + 1) if all(n % factor for factor in range(2, n))]


@pytest.fixture(scope="module", autouse=True)
def go_build(tmp_path_factory):
    """The Go program's compiler; it works while the cluster starts."""
    program = tmp_path_factory.mktemp("go") / "primes"
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
    with subprocess.Popen([*GO_BUILD, "-o", program, "."], cwd=EXAMPLES / "workers/go", env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as build:
        yield build, program
        build.kill()


@pytest.fixture(scope="module")
def database(go_build):
    with Database(tcp=True) as database:
        for sql in (EXAMPLES / "postgresql/fence.sql", EXAMPLES / "workers/table.sql"):
            assert database.run(sql)[0] == 0
        yield database


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request):
    return request.param


@pytest.fixture(scope="module")
def command(language, go_build):
    if language == "python":
        return [sys.executable, EXAMPLES / "workers/python/primes.py"]
    if language == "java":
        jars = "/usr/share/java/postgresql.jar:/usr/share/java/gson.jar"
        return ["java", "-cp", jars, EXAMPLES / "workers/java/Primes.java"]
    build, program = go_build
    printed, _ = build.communicate(timeout=600)
    assert build.returncode == 0, printed
    return [program]


def rows(database, job_uid):
    """Its numbers by the attempt that wrote them."""
    code, printed = database.run(f"SELECT attempt, number FROM primes WHERE job = '{job_uid}' ORDER BY 2")
    assert code == 0, printed
    found = {}
    for line in printed.split():
        attempt, number = line.split("|")
        found.setdefault(int(attempt), []).append(int(number))
    return found
