"""One control plane for many test files. To start and install one costs more CPU time than most files' tests."""

import sys

from holdfast import install
from localcluster import Cluster
from localcluster.initial_state import InitialState, Unlike


def cluster_options(module):
    """The options of this test file's Cluster: CLUSTER, if the file has it, overrides the defaults."""
    return {"nodes": 3, "quiet": True} | getattr(module, "CLUSTER", {})


class SharedCluster:
    """Lends one cluster to one file after the other. It resets the cluster in between to its state after install().

    It starts another cluster if a file asks for other options, or if the cluster cannot be reset: the file before has
    killed a part of it, say, or has changed a custom resource definition. At most one cluster runs.
    """

    def __init__(self):
        self._cluster = None
        self._state = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop()

    def take(self, **options):
        """A running cluster with these options of Cluster, after install(). The file that took it before must be
        done."""
        wanted = Cluster(**options)
        if not self._serves(wanted):
            self._stop()
            self._cluster = wanted
            self._cluster.start()
            install(self._cluster)
            self._state = None if wanted.options["pods_apart"] else InitialState(self._cluster)
        return self._cluster

    def _serves(self, wanted):
        """Whether the running cluster has these options and could be reset."""
        have = self._cluster
        if not self._state or (have.options, have.node_count) != (wanted.options, wanted.node_count):
            return False
        try:
            self._state.restore()
            return True
        except Unlike as reason:
            print(f"another control plane is started: {reason}", file=sys.stderr)
            return False

    def _stop(self):
        cluster, self._cluster, self._state = self._cluster, None, None
        if cluster is not None:
            cluster.stop()
