"""The provider `bare`: Kubernetes' own programs on this machine, in one folder below the project's cache.

A cluster is a folder. Its notes are enough for any later process to remove the cluster, so that a killed run costs the
next one only a few seconds. Clusters of the tier `control` are independent of each other: many can run at once. There
is one node per machine, because there is one network.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.cluster import binaries, cleanup, network, preflight
from tools.cluster.certificates import Authority
from tools.cluster.cleanup import Before
from tools.cluster.control_plane import ControlPlane
from tools.cluster.daemons import Daemons, Identity
from tools.cluster.interface import ClusterFailed, Tier
from tools.cluster.node import Node, load_image
from tools.host import say
from tools.parts.cache import cache_root, locked
from tools.parts.processes import LOOPBACK, free_ports

_API_PORT = 6443


@dataclass(frozen=True)
class Note:
    """The notes in a cluster's folder, written before anything starts."""

    tier: Tier
    owner: str | None
    """The process that owns the cluster; None for a cluster that stays up until `down`."""
    before: Before | None

    @classmethod
    def read(cls, folder: Path) -> Note | None:
        try:
            fields = json.loads((folder / "note.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        before = fields.pop("before")
        return cls(**fields, before=Before(**before) if before else None)

    def write(self, folder: Path) -> None:
        (folder / "note.json").write_text(json.dumps(asdict(self)))

    @property
    def orphaned(self) -> bool:
        owner = Identity.parse(self.owner) if self.owner else None
        return self.owner is not None and (owner is None or not owner.alive)


class BareCluster:
    """`with BareCluster() as cluster: cluster.kubectl("get", "nodes")`, or `up()` and later, anywhere, `down()`."""

    def __init__(self, tier: Tier = "all", *, name: str | None = None) -> None:
        """`name` is for clusters of the tier `control`; the default is the cluster of `python -m tools.cluster`."""
        if tier == "all" and name is not None:
            raise ValueError("a machine has one node: only clusters of the tier `control` have names")
        self.tier: Tier = tier
        self._folder = _clusters() / (name or tier)
        self._owned = False
        self._daemons = Daemons(self._folder, tied=False)

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    @property
    def node_ip(self) -> str:
        return network.NODE_IP if self.tier == "all" else LOOPBACK

    @property
    def programs(self) -> Path:
        """A folder for PATH, with kubectl in it."""
        return binaries.kubernetes_dir()

    @property
    def kubectl_cache(self) -> Path:
        """kubectl's cache of known kinds. Its default is in the home folder, where the next cluster would find it."""
        return self._folder / "kubectl"

    @property
    def logs(self) -> Path:
        return self._folder / "log"

    @property
    def is_up(self) -> bool:
        """Whether all of its programs run."""
        names = self._daemons.names()
        return (self._folder / "up").exists() and all(self._daemons.alive(name) for name in names)

    def __enter__(self) -> Self:
        """Starts the cluster and ties it to this process. A control plane gets a folder of its own."""
        if self.tier == "control":
            self._folder = _clusters() / f"control-{os.getpid()}-{secrets.token_hex(3)}"
        self._owned = True
        self._daemons = Daemons(self._folder, tied=True)
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def up(self) -> None:
        """Starts the cluster, after removing what dead runs left. Does nothing if it is up already."""
        if self.tier == "all":
            preflight.check_node()
            binaries.build_all()
        else:
            preflight.check_control()
        programs = self.programs
        with locked(_clusters() / ".lock"):
            _sweep()
            if self._folder.exists() and self._already():
                return
            # While it starts, the cluster belongs to the starting process: if that dies, the next run removes it.
            note = self._claim()
        started = time.monotonic()
        try:
            self._start(programs)
        except BaseException:
            self.down()
            raise
        if not self._owned:
            replace(note, owner=None).write(self._folder)
        say(f"Kubernetes ({self.tier}) up in {time.monotonic() - started:.0f} s")

    def down(self) -> None:
        """Removes the cluster and every trace of it, in whatever state it is."""
        with locked(_clusters() / ".lock"):
            _remove(self._folder, self._daemons)

    def load_image(self, archive: Path) -> str:
        if self.tier != "all" or not self.is_up:
            raise ClusterFailed("there is no node to load an image into: start the tier `all`")
        started = time.monotonic()
        reference = load_image(self._folder, archive)
        say(f"loaded {reference} in {time.monotonic() - started:.0f} s")
        return reference

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        env = {**os.environ, "KUBECACHEDIR": str(self.kubectl_cache)}
        done = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterFailed(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def _already(self) -> bool:
        """Whether the existing cluster can be used. Removes a broken one; raises if another process owns it."""
        note = Note.read(self._folder)
        if note is not None and note.owner is not None:
            raise ClusterFailed(f"process {note.owner.split()[0]} uses this machine's cluster: wait until it ends")
        if note is not None and self.is_up:
            if self._owned:
                raise ClusterFailed("a cluster is up: run `python -m tools.cluster down` first")
            return True
        say("removing a broken cluster")
        _remove(self._folder, self._daemons)
        return False

    def _claim(self) -> Note:
        self._folder.mkdir(mode=0o711, parents=True)
        before = Before.now() if self.tier == "all" else None
        note = Note(self.tier, str(Identity.of(os.getpid())), before)
        note.write(self._folder)
        return note

    def _start(self, programs: Path) -> None:
        port = free_ports(1)[0]
        if self.tier == "all":
            network.lay()
            port = _API_PORT
        authority = Authority(self._folder / "pki")
        control = ControlPlane(programs, self._folder, self._daemons, authority, self.node_ip, port)
        control.start(scheduler=self.tier == "all")
        if self.tier == "all":
            Node(control, self.kubectl).start()
        (self._folder / "up").touch()


def _clusters() -> Path:
    return cache_root() / "clusters"


def _sweep() -> None:
    """Removes clusters whose owners are dead."""
    for folder in sorted(_clusters().iterdir()):
        note = Note.read(folder) if folder.is_dir() else None
        if note is not None and note.orphaned:
            say(f"removing what a dead run left in {folder}")
            _remove(folder, Daemons(folder, tied=False))


def _remove(folder: Path, daemons: Daemons) -> None:
    note = Note.read(folder)
    if note is not None and note.before is not None:
        cleanup.remove_node(folder, daemons, note.before)
    elif folder.exists():
        cleanup.remove_control(folder, daemons)
