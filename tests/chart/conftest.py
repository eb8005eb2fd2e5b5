"""Fixtures for the tests of the chart: the pinned helm, and a control plane whose nodes take any pod for
running, so that a release gets ready there."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests/support")]

from chart import NAMESPACE, Helm  # noqa: E402
from localcluster import Cluster  # noqa: E402
from localcluster.tools import ensure_helm  # noqa: E402

# Of the Prometheus operator: any spec is taken.
MONITORING = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %(plural)s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: %(kind)s, plural: %(plural)s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture(scope="session")
def helm(tmp_path_factory):
    """Without a cluster, and without what the user has set up for helm."""
    return Helm(ensure_helm(), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def cluster():
    """Two nodes; the operator's namespace takes restricted pods only; ServiceMonitors are known."""
    with Cluster(nodes=2, quiet=True) as cluster:
        for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule"):
            names = {"kind": kind, "plural": kind.lower() + "s"}
            cluster.kubectl("apply", "-f", "-", input=MONITORING % names)
        for name in (NAMESPACE, "media", "proofs"):
            cluster.kubectl("create", "namespace", name)
        cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        yield cluster


@pytest.fixture(scope="module")
def admin(helm, cluster):
    """helm, on the cluster, as its admin."""
    return helm.on(cluster)


@pytest.fixture(scope="session")
def package(helm, tmp_path_factory):
    """What `helm package` makes."""
    folder = tmp_path_factory.mktemp("package")
    done = helm("package", ROOT / "charts/holdfast", "-d", folder)
    assert isinstance(done, subprocess.CompletedProcess)
    [archive] = folder.iterdir()
    return archive
