"""What tests may use of any cluster, whoever provides it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from e2e.image.host import SetupFailed

Tier = Literal["control", "all"]
"""`control`: the API server and its controllers, where pods are never scheduled. `all`: pods run, too."""


class ClusterFailed(SetupFailed):
    """The cluster cannot be brought up, or a command against it failed; the message says what to do."""


class Cluster(Protocol):
    @property
    def kubeconfig(self) -> Path:
        """Credentials of an administrator, in one file that may be copied."""

    @property
    def node_ip(self) -> str:
        """The address of this machine that pods can reach: servers of a test listen here."""

    def load_image(self, archive: Path) -> str:
        """Gives an OCI archive to the node and returns the image's reference, for `imagePullPolicy: Never`."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Runs kubectl as administrator and returns what it printed."""
