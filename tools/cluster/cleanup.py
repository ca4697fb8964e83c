"""Removes a cluster: first its processes, then mounts, control groups and network, then files.

It relies on the kernel's view and on the notes in the cluster's folder, never on the cluster's own programs: the same
steps work for a cluster that is up, half up, or whose programs were killed hours ago. Each step may be repeated. The
folder goes last, so that an interrupted clean-up is done again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.cluster import network
from tools.cluster.daemons import Daemons, Identity, end
from tools.cluster.interface import ClusterFailed
from tools.cluster.node_config import CGROUP

_OUTSIDE = [
    Path(name)
    for name in (
        "/opt/cni",
        "/opt/containerd",
        "/run/containerd",
        "/run/mount",
        "/run/netns",
        "/run/xtables.lock",
        "/usr/libexec/kubernetes",
        "/var/lib/cni",
        "/var/lib/kubelet",
        "/var/log/containers",
        "/var/log/pods",
    )
]
"""Where containerd, the kubelet and the programs they call write, whatever their settings say."""
_KERNEL = ("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom")
"""Settings that the kubelet changes for the whole machine, below /proc/sys."""
_HANDED_DOWN = "cgroup.subtree_control"


@dataclass(frozen=True)
class Before:
    """The machine's state before the cluster, to be restored."""

    forwarding: str
    outside: list[str]
    kernel: dict[str, str] = field(default_factory=dict)
    controllers: dict[str, list[str]] = field(default_factory=dict)
    """For each hierarchy of cgroup v2: the controllers that its root group enables for others."""

    @classmethod
    def now(cls) -> Before:
        outside = [str(path) for path in _OUTSIDE if path.exists()]
        kernel = {name: _setting(name).read_text().strip() for name in _KERNEL if _setting(name).exists()}
        files = [file for group in cgroups() if (file := group.parent / _HANDED_DOWN).exists()]
        return cls(network.forwarding(), outside, kernel, {str(file): file.read_text().split() for file in files})


def cgroups() -> list[Path]:
    """The folder of our control group in each hierarchy: one on cgroup v2, one per controller on v1."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return [Path(fields[1]) / CGROUP for fields in mounts if fields[2] in ("cgroup", "cgroup2")]


def remove_control(folder: Path, daemons: Daemons) -> None:
    names = daemons.names()
    # The API server's clients first, since it ends quickly without them; etcd last.
    daemons.stop([name for name in names if name != "etcd"])
    daemons.stop(names)
    shutil.rmtree(folder)


def remove_node(folder: Path, daemons: Daemons, before: Before) -> None:
    """The tier `all`, including its control plane."""
    daemons.stop(["kubelet", "kube-proxy"])
    _end_pods(folder)
    daemons.stop([name for name in daemons.names() if name != "etcd"])
    daemons.stop(["etcd"])
    _unmount(folder)
    _remove_cgroups()
    _take_back(before.controllers)
    network.remove()
    network.set_forwarding(before.forwarding)
    for name, value in before.kernel.items():
        _setting(name).write_text(value)
    for path in _OUTSIDE:
        if str(path) not in before.outside:
            _delete(path)
    _delete_log_links(folder)
    shutil.rmtree(folder)


def _setting(name: str) -> Path:
    return Path("/proc/sys", name)


def _end_pods(folder: Path) -> None:
    """Ends all processes of containers, then containerd's shims."""
    deadline = time.monotonic() + 20
    while found := _in_pods():
        if time.monotonic() > deadline:
            raise ClusterFailed(f"processes of pods did not end: {', '.join(str(one.pid) for one in found)}")
        end(found, timeout=0)
    end(_helpers(folder), timeout=3)


def _in_pods() -> list[Identity]:
    pids: set[int] = set()
    for group in cgroups():
        # Groups disappear meanwhile: containerd's shims are still cleaning up.
        for path, _, _ in os.walk(group):
            with contextlib.suppress(OSError):
                pids |= {int(pid) for pid in (Path(path) / "cgroup.procs").read_text().split()}
    return [identity for pid in pids if (identity := Identity.of(pid))]


def _helpers(folder: Path) -> list[Identity]:
    """containerd's shims, one per pod, which outlive it. Each names the socket of its containerd."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if b"containerd-shim" in arguments[0] and any(a.startswith(os.fsencode(folder) + b"/") for a in arguments):
                identity = Identity.of(int(entry.name))
                found += [identity] if identity else []
    return found


def _unmount(folder: Path) -> None:
    # The kernel writes blanks in paths as \040, and our folder's name may contain some.
    mounts = [line.split()[1].replace("\\040", " ") for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [mount for mount in mounts if mount.startswith(f"{folder}/")]
    for mount in sorted(inside, reverse=True):
        network.run("umount", "--lazy", mount)


def _remove_cgroups() -> None:
    for group in cgroups():
        for path, _, _ in os.walk(group, topdown=False):
            _remove_cgroup(Path(path))


def _take_back(controllers: Mapping[str, list[str]]) -> None:
    for file, before in controllers.items():
        more = [f"-{name}" for name in Path(file).read_text().split() if name not in before]
        # Another program's group may use one by now.
        with contextlib.suppress(OSError):
            Path(file).write_text(" ".join(more))


def _remove_cgroup(path: Path) -> None:
    """Removes a group, which stays busy for a moment after its last process."""
    deadline = time.monotonic() + 5
    while path.exists():
        try:
            path.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _delete_log_links(folder: Path) -> None:
    """The kubelet makes links to its log files in a folder that other programs may use, too."""
    links = Path("/var/log/containers")
    for link in links.iterdir() if links.is_dir() else ():
        if link.is_symlink() and str(link.readlink()).startswith(f"{folder}/"):
            link.unlink()


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
