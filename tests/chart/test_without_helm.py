"""install.yaml: Holdfast by kubectl alone."""

import pytest
from chart import NAMESPACE, ROOT
from localcluster import Cluster

# `cluster` has the namespace already; this one has nothing.


@pytest.fixture(scope="module")
def empty():
    with Cluster(nodes=2, quiet=True) as cluster:
        yield cluster


def test_one_file_installs_everything(empty):
    empty.kubectl("apply", "--server-side", "-f", str(ROOT / "charts/install.yaml"))
    empty.kubectl("rollout", "status", "-n", NAMESPACE, "deployment/holdfast", "--timeout=60s")
    empty.kubectl("apply", "-f", str(ROOT / "examples/one-shot.yaml"))
    assert "Helm" not in empty.kubectl("get", "all", "-n", NAMESPACE, "-o", "yaml").stdout


def test_it_is_applied_again_without_a_conflict(empty):
    empty.kubectl("apply", "--server-side", "-f", str(ROOT / "charts/install.yaml"))
