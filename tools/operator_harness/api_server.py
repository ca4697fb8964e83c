"""Kills and restarts the API server of a control plane while clients use it."""

from __future__ import annotations

from pathlib import Path

import urllib3

from tools.cluster import Cluster
from tools.cluster.client import Client, Refused
from tools.cluster.daemons import Daemons, Identity, end
from tools.cluster.interface import ClusterFailed
from tools.parts.processes import taken_ports
from tools.polling import until

_NAME = "kube-apiserver"


class ApiServer:
    def __init__(self, cluster: Cluster) -> None:
        self._kubeconfig = cluster.kubeconfig
        self._folder = cluster.kubeconfig.parent
        self._daemons = Daemons(self._folder, tied=True)
        self._command: list[str] = []

    def kill(self) -> None:
        """Kills it, without a graceful shutdown."""
        identity = Identity.parse((self._folder / "run" / f"{_NAME}.pid").read_text())
        if identity is None or not identity.alive:
            raise ClusterFailed(f"{_NAME} is not running")
        self._command = Path(f"/proc/{identity.pid}/cmdline").read_text().split("\0")[:-1]
        end([identity], 0)
        # The process may be gone before the last of its threads has closed the listening socket.
        until("the address of the API server to be free", lambda: not taken_ports(self._ports), 30, 0.05)

    @property
    def _ports(self) -> list[int]:
        prefix = "--secure-port="
        return [int(part.removeprefix(prefix)) for part in self._command if part.startswith(prefix)]

    def start(self) -> None:
        """Starts it again on the same address; returns when it answers."""
        self._daemons.start(_NAME, self._command)
        client = Client.of(self._kubeconfig)
        self._daemons.wait_until(_NAME, lambda: _answers(client), 90)
        client.close()


def _answers(client: Client) -> bool:
    try:
        # The answer is text, not JSON, which the client accepts.
        client.get("/readyz")
    except (Refused, urllib3.exceptions.HTTPError):
        return False
    return True
