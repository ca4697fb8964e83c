"""A real Kubernetes for tests, behind one interface.

    python -m tools.cluster build|up|load-image FILE|kubeconfig|down [--tier control|all]

The provider `bare` runs Kubernetes' own programs on this Linux machine, with no Docker and no virtual machine;
`kind` is for people with Docker. Tests see only `Cluster`.
"""

from tools.cluster.bare import BareCluster
from tools.cluster.interface import Cluster, ClusterFailed, Tier

__all__ = ["BareCluster", "Cluster", "ClusterFailed", "Tier"]
