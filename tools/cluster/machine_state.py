"""A snapshot of all that a node changes on this machine, to compare before `up` with after `down`.

It uses the kernel's view only, and none of the cluster's own code or notes: what they miss must not be missed here.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools.host import program

_SYSTEM = tuple(map(Path, ("/etc", "/opt", "/run", "/usr/libexec", "/usr/local", "/var/cache", "/var/lib", "/var/log")))
_FILTERS = (("nft", "--stateless", "list", "ruleset"), ("iptables-save",), ("ip6tables-save",))
_SETTINGS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv4/ip_forward",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_tcp_be_liberal",
    "net/netfilter/nf_conntrack_tcp_timeout_close_wait",
    "net/netfilter/nf_conntrack_tcp_timeout_established",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
"""Kernel settings that the kubelet and kube-proxy write."""


def snapshot(mark: str, *folders: Path) -> dict[str, set[str]]:
    """By kind. `mark` is in the environment of the cluster's programs; entries of `folders` are included."""
    below_system = [path for root in _SYSTEM for path in _entries(root) if path.is_dir()]
    return {
        "mounts": {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()},
        "links": {link["ifname"] for link in _ip("link", "show")},
        "addresses": {f"{link['ifname']} {at['local']}" for link in _ip("address", "show") for at in link["addr_info"]},
        "routes": {f"{r.get('table')} {r['dst']} {r.get('dev')}" for r in _ip("route", "show", "table", "all")},
        "network namespaces": _of_processes(lambda process: str((process / "ns/net").readlink())),
        "packet filter": {line for command in _FILTERS for line in _said(*command).splitlines()},
        "processes": _of_processes(lambda process: _marked(process, mark)),
        "control groups": _control_groups(),
        "kernel settings": {f"{name} {_read(Path('/proc/sys', name))}" for name in _SETTINGS},
        "folders": {str(path) for root in (*_SYSTEM, *below_system, Path.home(), *folders) for path in _entries(root)},
    }


def _of_processes(look: Callable[[Path], str]) -> set[str]:
    """The results of `look` for every process but this one. Processes may end meanwhile."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                found.add(look(process))
    return found - {""}


def _marked(process: Path, mark: str) -> str:
    there = mark.encode() in (process / "environ").read_bytes()
    return f"{process.name} {_read(process / 'comm')}" if there else ""


def _control_groups() -> set[str]:
    """The top groups of each hierarchy, and the controllers enabled for them; deeper groups of others change."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    roots = [Path(fields[1]) for fields in mounts if fields[2] in ("cgroup", "cgroup2")]
    groups = {str(path) for root in roots for path in _entries(root) if path.is_dir()}
    return groups | {f"{root} {_read(root / 'cgroup.subtree_control')}" for root in roots}


def _entries(folder: Path) -> Iterable[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []


def _ip(*question: str) -> list[dict[str, Any]]:
    # For an empty list `ip` prints empty objects.
    return [found for found in json.loads(_said("ip", "-json", *question) or "[]") if found]


def _said(*command: str) -> str:
    """The command's output; empty if the program does not exist, because then nothing has used it."""
    if not program(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
