"""The interface of a cluster, which tests use, and the choice of its provider."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, get_args

from tools.host import SetupFailed

Tier = Literal["control", "all"]
"""`control`: the API server and its controllers, where pods are never scheduled. `all`: pods run, too."""
Provider = Literal["kind", "bare"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

_WANTED = "S3SINK_CLUSTER_PROVIDER"


class ClusterFailed(SetupFailed):
    """The cluster cannot start, or a command on it failed; the message says what to do."""


class Cluster(Protocol):
    """`with choose() as cluster: cluster.kubectl("get", "nodes")`, or `up()` and later, anywhere, `down()`."""

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig, in one file that may be copied."""

    @property
    def node_ip(self) -> str:
        """This machine's address for pods: a test's servers listen on it."""

    @property
    def programs(self) -> Path:
        """A folder for PATH, with kubectl in it."""

    @property
    def kubectl_cache(self) -> Path:
        """kubectl's cache folder for this cluster."""

    @property
    def is_up(self) -> bool: ...

    def up(self) -> None:
        """Starts the cluster. Does nothing if it is up already."""

    def down(self) -> None:
        """Removes the cluster and every trace of it, in whatever state it is."""

    def load_image(self, archive: Path) -> str:
        """Loads an OCI archive into the node and returns the image's reference, for `imagePullPolicy: Never`."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs kubectl as administrator and returns its standard output."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def choose(provider: Provider | None = None) -> Cluster:
    """A cluster that runs pods, not started: of the wanted provider, else of the one that this machine supports."""
    # Imported here, because each provider imports this module.
    from tools.cluster.bare import BareCluster
    from tools.cluster.kind import KindCluster, docker_answers

    wanted = provider or os.environ.get(_WANTED)
    root = sys.platform == "linux" and os.geteuid() == 0
    match provider_for(wanted, docker=not wanted and docker_answers(), root=root):
        case "kind":
            return KindCluster()
        case "bare":
            return BareCluster()


def provider_for(wanted: str | None, *, docker: bool, root: bool) -> Provider:
    """`docker`: a daemon answers. `root`: this process is root on Linux."""
    if wanted:
        if wanted not in PROVIDERS:
            raise ClusterFailed(f"{_WANTED}={wanted} is unknown: the providers are {' and '.join(PROVIDERS)}")
        return wanted
    if docker:
        return "kind"
    if root:
        return "bare"
    raise ClusterFailed(
        "this machine cannot run a cluster: install Docker and start its daemon (`docker info` must answer), "
        "or run as root on Linux, where no Docker is needed"
    )
