"""Fixtures of the tests on real nodes; hack/e2e sets up what they name."""

import datetime
import itertools
import json
import os
import pathlib
import secrets
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests/support")]

from holdfast import Jobs  # noqa: E402
from invariants import violations  # noqa: E402
from localcluster import wait_for  # noqa: E402
from real_cluster import RealCluster  # noqa: E402
from real_record import WatchRecorder  # noqa: E402

_numbers = itertools.count(1)
_RUN = secrets.token_hex(2)
# Namespaces that the chart is told of: their jobs may have a heartbeat. One for each test that was collected.
TENANTS = []
VALUES = []
# What a busy machine, and looking from outside ten times a second, may add to a bound.
NOISE = 4
RESULTS = ROOT / "build/e2e/recoveries.ndjson"  # of all runs of this tree: hack/recoveries keeps them
_rows = []


def pytest_sessionstart():
    missing = [name for name in ("E2E_KUBECONFIG", "E2E_IMAGE", "E2E_WORKLOAD_IMAGE") if not os.environ.get(name)]
    if missing:
        pytest.exit(f"{', '.join(missing)} not set: run hack/e2e (make e2e), which says more", 2)


def pytest_collection_finish(session):
    TENANTS[:] = [f"e2e-{_RUN}-{number}" for number in range(1, len(session.items) + 1)]
    VALUES[:] = ["--set", "workerNamespaces={" + ",".join(TENANTS) + "}"]


@pytest.fixture(scope="session")
def cluster():
    """The cluster, with Holdfast installed by its chart."""
    with RealCluster(os.environ["E2E_KUBECONFIG"], os.environ["E2E_IMAGE"],
                     os.environ["E2E_WORKLOAD_IMAGE"], os.environ.get("E2E_KIND")) as cluster:
        if not cluster.kind and cluster.is_installed():
            pytest.exit("Holdfast is installed in that cluster, and these tests would take it over and "
                        "uninstall it: name another cluster", 2)
        for name in TENANTS:
            cluster.api("POST", "/api/v1/namespaces", {"metadata": {
                "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        cluster.install(*VALUES)
        yield cluster
        if not cluster.kind:
            cluster.uninstall()
        cluster.kubectl("delete", "namespace", *TENANTS, "--wait=false")


@pytest.fixture(scope="session")
def nodes(cluster):
    """The two workers, which may be taken away."""
    if not cluster.kind:
        pytest.skip("takes a node away: on a kind cluster only")
    return cluster.workers()


@pytest.fixture()
def namespace(cluster):
    """A namespace of the test's own, that enforces Pod Security `restricted`."""
    name = TENANTS[next(_numbers) - 1]
    wait_for(f"the default service account of {name}", lambda: cluster.api(
        "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, 120)
    yield name
    # The workers of its pools, too: when most of all workers fall silent with a node, a verdict takes twice as long.
    cluster.kubectl("-n", name, "delete", "dj,wp", "--all", "--wait=false")


@pytest.fixture()
def record(cluster, namespace):
    """Every version of the test's jobs and pods; what they broke fails the test."""
    with WatchRecorder(cluster, namespace) as record:
        yield record
        wait_for("the record to be complete", record._is_complete, 60, poll=0.5)
        broken = violations(record.versions("job"), record.versions("pod"))
        assert not broken, "\n".join(broken[:40])


@pytest.fixture()
def jobs(cluster, namespace, record):
    """The jobs of the test's own namespace, all of whose versions are judged at the end."""
    return Jobs(cluster, namespace)


@pytest.fixture()
def measured(cluster):
    """measured(what, bound, seconds): a line of the table of recoveries; over the bound it fails, with what the
    operators have logged."""
    def note(what, bound, seconds):
        _rows.append({"class": what, "bound": bound, "measured": round(seconds, 1)})
        in_time = seconds <= bound + NOISE
        assert in_time, f"{what}: {seconds:.1f} s, bound {bound} s\n{cluster.operators_said(seconds + 30)}"

    return note


def pytest_terminal_summary(terminalreporter):
    if not _rows:
        return
    width = max(len(row["class"]) for row in _rows)
    terminalreporter.section("recovery on real nodes, seconds")
    terminalreporter.write_line(f"{'what was lost':<{width}}  bound  measured")
    for row in _rows:
        terminalreporter.write_line(f"{row['class']:<{width}}  {row['bound']:>5}  {row['measured']:>8}")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, text=True, capture_output=True,
                            check=False).stdout.strip()
    with open(RESULTS, "a", encoding="utf-8") as results:
        for row in _rows:
            results.write(json.dumps({"run": _RUN, "date": datetime.date.today().isoformat(), "commit": commit} | row)
                          + "\n")
