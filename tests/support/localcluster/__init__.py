"""The local control plane: see cluster.Cluster."""

from .cluster import Cluster, cluster_names, clusters_root
from .waiting import ClusterError, wait_for

__all__ = ["Cluster", "ClusterError", "cluster_names", "clusters_root", "wait_for"]
