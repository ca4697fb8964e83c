"""Checks that this machine can run a node, before anything starts; errors say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.cluster.interface import ClusterFailed
from tools.host import install, program

CNI_PLUGINS = Path("/usr/lib/cni")
"""Debian's folder for them."""

_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    str(CNI_PLUGINS / "ptp"): "containernetworking-plugins",
}
_CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}


def check_control() -> None:
    if sys.platform != "linux":
        raise ClusterFailed("the bare cluster runs Kubernetes' own programs, which need Linux")


def check_node() -> None:
    """Raises an error that lists all that is missing; installs packages if it can."""
    check_control()
    if os.geteuid() != 0:
        raise ClusterFailed(
            "a node creates network namespaces, mounts and cgroups: run as root, or use the tier `control`"
        )
    install(_PACKAGES)
    lacking = _lacking_features()
    if lacking:
        raise ClusterFailed("this kernel cannot run pods; it lacks " + "; ".join(lacking))


def _lacking_features() -> list[str]:
    lacking = []
    if "overlay" not in _file_systems():
        lacking.append("overlayfs (CONFIG_OVERLAY_FS)")
    controllers = _CONTROLLERS - _cgroup_controllers()
    if controllers:
        lacking.append(f"cgroup controllers, mounted below /sys/fs/cgroup: {', '.join(sorted(controllers))}")
    nat = "add table ip s3sink_probe; add chain ip s3sink_probe c { type nat hook prerouting priority dstnat; }"
    probe = subprocess.run(["nft", "--check", nat], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        lacking.append(f"nftables with NAT (CONFIG_NF_TABLES, CONFIG_NFT_NAT): {probe.stderr.strip()}")
    if not _can_link():
        lacking.append("pairs of virtual links (CONFIG_VETH)")
    return lacking


def _file_systems() -> set[str]:
    if program("modprobe"):
        subprocess.run(["modprobe", "--quiet", "overlay"], capture_output=True, check=False)
    return {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}


def _cgroup_controllers() -> set[str]:
    unified = Path("/sys/fs/cgroup/cgroup.controllers")
    if unified.exists():
        return set(unified.read_text().split())
    return {line.split()[0] for line in Path("/proc/cgroups").read_text().splitlines()[1:]} & {
        folder.name for folder in Path("/sys/fs/cgroup").iterdir() if folder.is_dir()
    }


def _can_link() -> bool:
    pair = ["ip", "link", "add", "s3sink-probe0", "type", "veth", "peer", "name", "s3sink-probe1"]
    if subprocess.run(pair, capture_output=True, check=False).returncode != 0:
        return False
    return subprocess.run(["ip", "link", "delete", "s3sink-probe0"], check=False).returncode == 0
