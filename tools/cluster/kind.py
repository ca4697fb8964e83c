"""The provider `kind`: a node in a container of this machine's Docker.

kind's only state is its labelled containers. A folder below the project's cache holds the kubeconfig, so that the one
in the home folder stays unchanged, and a note whether kind's network existed before.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.cluster import binaries
from tools.cluster.interface import ClusterFailed
from tools.host import say
from tools.image.archive import read_reference
from tools.parts.cache import build_once, cache_root, locked
from tools.parts.go import build_with_go
from tools.parts.processes import PartFailed
from tools.parts.versions import version

RELEASE = version("kind", "version")
CONFIG = Path(__file__).with_suffix(".yaml")
NAME = "s3sink"
NETWORK = "kind"
"""kind's own network, which all of its clusters on a machine share."""

_SETTINGS = {"KIND_EXPERIMENTAL_PROVIDER": "docker"}
"""Without it kind would use Podman if it finds it."""
_NO_DAEMON = "no Docker daemon answers `docker info`: start it, or use the provider `bare` (root on Linux, no Docker)"


class KindCluster:
    """One per machine: its name is fixed."""

    def __init__(self) -> None:
        self._folder = cache_root() / "clusters" / "kind"

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    @property
    def node_ip(self) -> str:
        return gateway(json.loads(_run(["docker", "network", "inspect", NETWORK])))

    @property
    def programs(self) -> Path:
        found = shutil.which("kubectl")
        return Path(found).parent if found else binaries.kubernetes_dir()

    @property
    def kubectl_cache(self) -> Path:
        return self._folder / "kubectl"

    @property
    def is_up(self) -> bool:
        if not self.kubeconfig.exists() or not docker_answers():
            return False
        return bool(_run(["docker", "ps", *_ours(), "--format", "{{.Names}}"]).strip())

    def __enter__(self) -> Self:
        if self.is_up:
            raise ClusterFailed("a cluster is up: run `python -m tools.cluster --provider kind down` first")
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def up(self) -> None:
        """Starts the cluster, and replaces a broken one. Does nothing if it is up already."""
        _check_docker()
        with locked(self._lock):
            if self.is_up:
                return
            program = kind_program()
            self._remove()
            self._folder.mkdir(mode=0o700, parents=True)
            started = time.monotonic()
            try:
                if not _network_exists():
                    self._made_network.touch()
                say("starting kind; the first time it pulls the node's image")
                _run(create_command(program, self.kubeconfig))
                check_listening(self.node_ip)
            except BaseException:
                self._remove()
                raise
        say(f"Kubernetes (kind) up in {time.monotonic() - started:.0f} s")

    def down(self) -> None:
        if not self._folder.exists() and not docker_answers():
            return
        _check_docker()
        with locked(self._lock):
            self._remove()

    def load_image(self, archive: Path) -> str:
        if not self.is_up:
            raise ClusterFailed("there is no node to load an image into: start the cluster")
        reference = read_reference(archive)
        started = time.monotonic()
        _run(load_command(kind_program(), archive))
        say(f"loaded {reference} in {time.monotonic() - started:.0f} s")
        return reference

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        return _run(command, stdin=stdin, KUBECACHEDIR=str(self.kubectl_cache))

    @property
    def _lock(self) -> Path:
        return self._folder.with_name(".kind.lock")

    @property
    def _made_network(self) -> Path:
        return self._folder / "made-network"

    def _remove(self) -> None:
        if _run(["docker", "ps", "--all", *_ours(), "--format", "{{.Names}}"]).strip():
            _run(delete_command(kind_program(), self.kubeconfig))
        if self._made_network.exists() and _network_exists():
            (network,) = json.loads(_run(["docker", "network", "inspect", NETWORK]))
            if not network["Containers"]:
                _run(["docker", "network", "rm", NETWORK])
        shutil.rmtree(self._folder, ignore_errors=True)


def create_command(program: Path, kubeconfig: Path) -> list[str]:
    options = ["--name", NAME, "--config", str(CONFIG), "--kubeconfig", str(kubeconfig), "--wait", "180s"]
    return [str(program), "create", "cluster", *options]


def delete_command(program: Path, kubeconfig: Path) -> list[str]:
    return [str(program), "delete", "cluster", "--name", NAME, "--kubeconfig", str(kubeconfig)]


def load_command(program: Path, archive: Path) -> list[str]:
    return [str(program), "load", "image-archive", "--name", NAME, str(archive)]


def gateway(inspected: Sequence[dict[str, Any]]) -> str:
    """This machine's IPv4 address in a network, from the output of `docker network inspect`."""
    for range_ in inspected[0]["IPAM"]["Config"] or []:
        address = range_.get("Gateway")
        if address and ipaddress.ip_address(address).version == 4:
            return str(address)
    raise ClusterFailed(f"Docker's network {NETWORK} has no IPv4 gateway: remove it, and kind creates a new one")


def check_listening(address: str) -> None:
    """The gateway is an address of this machine only if Docker runs on this machine itself."""
    try:
        with socket.create_server((address, 0)):
            pass
    except OSError as error:
        raise ClusterFailed(
            f"a test's servers cannot listen on {address}, the address for pods ({error}): Docker must run on "
            "this Linux machine itself, not in a virtual machine (Docker Desktop) and not rootless"
        ) from error


def docker_answers() -> bool:
    if not shutil.which("docker"):
        return False
    command = ["docker", "info", "--format", "{{.ServerVersion}}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def kind_program() -> Path:
    """The kind on PATH, if its release matches the node's image; else one built with Go."""
    found = shutil.which("kind")
    if found and _run([found, "--version"]).split()[-1] == RELEASE:
        return Path(found)
    try:
        return build_once(f"kind-{RELEASE}", _build) / "kind"
    except PartFailed as failure:
        raise ClusterFailed(str(failure)) from failure


def _build(folder: Path) -> None:
    say(f"building kind {RELEASE} with Go: less than a minute, once")
    build_with_go(f"sigs.k8s.io/kind@v{RELEASE}", folder)


def _check_docker() -> None:
    if not docker_answers():
        raise ClusterFailed(_NO_DAEMON)


def _network_exists() -> bool:
    listed = _run(["docker", "network", "ls", "--filter", f"name=^{NETWORK}$", "--quiet"])
    return bool(listed.strip())


def _ours() -> list[str]:
    return ["--filter", f"label=io.x-k8s.kind.cluster={NAME}"]


def _run(command: Sequence[str], *, stdin: str | None = None, **env: str) -> str:
    full = {**os.environ, **_SETTINGS, **env}
    done = subprocess.run(command, env=full, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise ClusterFailed(f"{Path(command[0]).name} {' '.join(command[1:])} failed: {said[-3000:]}")
    return done.stdout
