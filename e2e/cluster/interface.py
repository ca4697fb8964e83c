"""What tests may use of any cluster, whoever provides it, and the choice of who does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, get_args

from e2e.image.host import SetupFailed

Tier = Literal["control", "all"]
"""`control`: the API server and its controllers, where pods are never scheduled. `all`: pods run, too."""
Provider = Literal["kind", "bare"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

_WANTED = "S3SINK_CLUSTER_PROVIDER"


class ClusterFailed(SetupFailed):
    """The cluster cannot be brought up, or a command against it failed; the message says what to do."""


class Cluster(Protocol):
    """`with choose() as cluster: cluster.kubectl("get", "nodes")`, or `up()` and, maybe elsewhere, `down()`."""

    @property
    def kubeconfig(self) -> Path:
        """Credentials of an administrator, in one file that may be copied."""

    @property
    def node_ip(self) -> str:
        """The address of this machine that pods can reach: servers of a test listen here."""

    @property
    def programs(self) -> Path:
        """A folder for PATH, with kubectl in it."""

    @property
    def kubectl_cache(self) -> Path:
        """Where kubectl keeps what it learnt about this cluster."""

    @property
    def is_up(self) -> bool: ...

    def up(self) -> None:
        """Does nothing when it is up already."""

    def down(self) -> None:
        """Takes the cluster away with every trace, whatever state it is in."""

    def load_image(self, archive: Path) -> str:
        """Gives an OCI archive to the node and returns the image's reference, for `imagePullPolicy: Never`."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs kubectl as administrator and returns what it printed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def choose(provider: Provider | None = None) -> Cluster:
    """A cluster that runs pods, not yet up: by the one asked for, else by the one that this machine can have."""
    # Here, because each provider imports this module.
    from e2e.cluster.bare import BareCluster
    from e2e.cluster.kind import KindCluster, docker_answers

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
            raise ClusterFailed(f"{_WANTED}={wanted}: there are {' and '.join(PROVIDERS)}")
        return wanted
    if docker:
        return "kind"
    if root:
        return "bare"
    raise ClusterFailed(
        "nothing here can run a cluster: install Docker and start its daemon (`docker info` must answer), "
        "or run as root on Linux, where no Docker is needed"
    )
