"""Fixtures that the integration tests share."""

import collections
import itertools
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests/support")]

from holdfast import CRDS, GUARD_PATH, Jobs, Operator, wait_for_guard  # noqa: E402
from kueue import Kueue  # noqa: E402
from lane import BatchJobs  # noqa: E402
from localcluster import Cluster, wait_for  # noqa: E402
from localcluster.tools import DEFAULT_K8S_VERSION, PINNED_K8S_VERSION  # noqa: E402
from resource_api import Api  # noqa: E402
from rights import granted  # noqa: E402
from shared_cluster import SharedCluster, cluster_options  # noqa: E402

_numbers = itertools.count(1)

# Files are shared out among processes in this order: one that takes minutes must not come last.
LONGEST_FIRST = ["test_replicas.py", "test_outage_five_minutes.py", "test_crash_points.py",
                 "test_chaos_etcd_often.py", "test_chaos_workers.py", "test_chaos_crash.py", "test_chaos_thousand.py"]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes of real waiting; `make test-long` runs it")


def pytest_collection_modifyitems(items):
    """The longest files first. The others are sorted by their control plane's options, the rarest ones first, so that
    a worker process gets files in a row that can share a control plane."""
    wanted = {item.path: cluster_options(item.module) for item in items}
    kinds = collections.Counter(map(str, wanted.values()))

    def rank(item):
        name, kind = item.path.name, str(wanted[item.path])
        return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST), kinds[kind], kind

    items.sort(key=rank)


@pytest.fixture(scope="session")
def pinned_kubernetes():
    """For what is compared with one Kubernetes, or has it pretend to be an older one."""
    if DEFAULT_K8S_VERSION != PINNED_K8S_VERSION:
        pytest.skip(f"made for Kubernetes {PINNED_K8S_VERSION}; this is {DEFAULT_K8S_VERSION}")


@pytest.fixture(scope="session")
def bare_cluster():
    """etcd and kube-apiserver with the CRDs and the guard, and nothing that acts on what the tests write there."""
    with Cluster(nodes=0, kwok=False, controller_manager=False, scheduler=False, audit=False) as cluster:
        cluster.kubectl("apply", "-f", str(CRDS))

        # Not `kubectl wait`: it gives up on a definition that has no conditions yet.
        def served():
            return cluster.kubectl("get", "dj,jq,wp", check=False).returncode == 0

        wait_for("the API server to serve DurableJobs", served, 60)
        cluster.kubectl("apply", "-f", str(GUARD_PATH))
        wait_for_guard(cluster)
        yield cluster


@pytest.fixture(scope="session")
def api(bare_cluster):
    """The resource tests' view of the bare cluster."""
    return Api(bare_cluster)


@pytest.fixture(scope="session")
def shared_cluster():
    """The control plane that this process lends to its test files, one after the other."""
    with SharedCluster() as shared:
        yield shared


@pytest.fixture(scope="module")
def cluster(shared_cluster, request):
    """A whole control plane with three simulated nodes, the CRDs and the operator's rights. Each test file finds it as
    it is after installation; cluster_options says what a file can have different."""
    cluster = shared_cluster.take(**cluster_options(request.module))
    yield cluster
    check_denied(cluster)


def check_denied(cluster):
    """The operator asks for nothing that it has no right to. What is granted is not meant: an API server that
    has just been started denies it for a moment. Nor what was allowed at another time: some tests give a
    right late."""
    allowed, denied = cluster.audit_rights("holdfast-operator")
    rights = granted()
    missing = sorted(which for which in denied - allowed if not rights & {which, (*which[:3], "")})
    assert not missing, f"the operator was denied (group, resource, verb, namespace): {missing}"


@pytest.fixture(scope="module")
def operator(cluster, request):
    """One operator for the file's tests. A file that kills it says OPERATOR_LEASES = QUICK_LEASES. OPERATOR_FLAGS are
    further flags."""
    flags, leases = (getattr(request.module, name, ()) for name in ("OPERATOR_FLAGS", "OPERATOR_LEASES"))
    with Operator(cluster, *flags, leases=leases) as operator:
        yield operator


@pytest.fixture()
def namespace(cluster, request):
    """A namespace of the test's own."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-") + f"-{next(_numbers)}"
    cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    wait_for(f"the default service account of {name}", lambda: cluster.api(
        "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, 60)
    return name


@pytest.fixture()
def jobs(cluster, namespace):
    """The jobs of the test's own namespace."""
    return Jobs(cluster, namespace)


@pytest.fixture()
def batch(cluster, namespace, operator):
    """The batch/v1 Jobs of the test's own namespace. The file says OPERATOR_FLAGS = LANE."""
    return BatchJobs(cluster, namespace)


@pytest.fixture(scope="module")
def kueue(cluster, operator, request):
    """The real Kueue, with a flavor `batch`: two of the three nodes. A file's KUEUE says how it is configured."""
    for node in ("node-0", "node-1"):
        cluster.kubectl("label", "node", node, "pool=batch")
    with Kueue(cluster, **getattr(request.module, "KUEUE", {})) as kueue:
        kueue.flavor("batch", {"pool": "batch"})
        kueue.priority_class("urgent", 1000)
        kueue.priority_class("low", 1)
        yield kueue


@pytest.fixture()
def queue(kueue, namespace):
    """Makes a LocalQueue `q` of the test's own namespace with so many CPUs of its own."""
    def make(cpu, name="q", **spec):
        kueue.cluster_queue(namespace, {"batch": {"cpu": str(cpu)}}, **spec)
        kueue.local_queue(namespace, name, namespace)

    return make
