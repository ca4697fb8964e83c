"""The node: containerd, the kubelet, kube-proxy and CoreDNS, on this machine's own network and kernel."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.cluster import binaries, network, node_config
from tools.cluster.cleanup import cgroups
from tools.cluster.control_plane import ControlPlane, http_answers
from tools.cluster.interface import ClusterFailed
from tools.cluster.network import NODE_IP
from tools.cluster.node_config import NODE_NAME
from tools.cluster.preflight import CNI_PLUGINS
from tools.image.archive import Layer, copy_without, read_reference, write_archive

_NAMESPACE = "k8s.io"
"""A namespace of containerd: the kubelet looks for images only in this one."""


@dataclass(frozen=True)
class Node:
    control: ControlPlane
    kubectl: Callable[..., str]

    @property
    def _folder(self) -> Path:
        return self.control.folder

    def start(self) -> None:
        self._start_containerd()
        self._load_pause()
        self._start_kubelet()
        self._start_proxy()
        self._start_dns()
        self.control.daemons.wait_until("kubelet", self._ready, 120)
        self.control.daemons.wait_until("coredns", lambda: http_answers(f"http://{node_config.DNS_READY}/ready"), 60)

    def _load_pause(self) -> None:
        layer = Layer.of_files(self._folder / "pause.layer.tar", {"pause": binaries.pause()})
        archive = self._folder / "pause.tar"
        write_archive(archive, node_config.PAUSE_IMAGE, [layer], {"Entrypoint": ["/pause"], "User": "65535:65535"})
        load_image(self._folder, archive)

    def _start_containerd(self) -> None:
        cni = self._folder / "cni"
        cni.mkdir()
        (cni / "10-s3sink.conflist").write_text(network.cni_config(self._folder / "addresses"))
        config = self._folder / "containerd.toml"
        config.write_text(node_config.containerd_toml(self._folder, socket_of(self._folder), cni, CNI_PLUGINS))
        self.control.daemons.start("containerd", ["containerd", "--config", str(config)])
        self.control.daemons.wait_until("containerd", lambda: ctr(self._folder, "version").returncode == 0, 30)

    def _start_kubelet(self) -> None:
        for group in cgroups():
            _hand_down_controllers(group.parent)
            group.mkdir(exist_ok=True)
        (self._folder / "resolv.conf").touch()
        certificate, key = self.control.authority.issue("kubelet", names=[NODE_NAME, NODE_IP])
        config = node_config.kubelet(self._folder, socket_of(self._folder), self.control.authority.ca, certificate, key)
        options = {
            "config": self._write("kubelet.yaml", config),
            "kubeconfig": self._kubeconfig(f"system:node:{NODE_NAME}", group="system:nodes"),
            "hostname-override": NODE_NAME,
            "node-ip": NODE_IP,
            "root-dir": self._folder / "kubelet",
            "cert-dir": self._folder / "kubelet-pki",
        }
        self._start("kubelet", options)

    def _start_proxy(self) -> None:
        config = node_config.kube_proxy(self._kubeconfig("system:kube-proxy"))
        self._start("kube-proxy", {"config": self._write("kube-proxy.yaml", config)})

    def _start_dns(self) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps(node_config.coredns_rights()))
        corefile = self._folder / "Corefile"
        corefile.write_text(node_config.corefile(self._kubeconfig("system:coredns")))
        self.control.daemons.start("coredns", [str(binaries.coredns()), "-conf", str(corefile)])

    def _ready(self) -> bool:
        node = self.control.read(f"/api/v1/nodes/{NODE_NAME}")
        conditions = node["status"].get("conditions", []) if node else []
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _kubeconfig(self, user: str, group: str = "") -> Path:
        file = self._folder / f"{user.replace(':', '-')}.kubeconfig"
        return self.control.authority.kubeconfig(file, self.control.server, user, group=group)

    def _write(self, name: str, document: Mapping[str, Any]) -> Path:
        file = self._folder / name
        file.write_text(yaml.safe_dump(dict(document), sort_keys=False))
        return file

    def _start(self, name: str, options: Mapping[str, object]) -> None:
        command = [str(self.control.programs / name), *(f"--{key}={value}" for key, value in options.items())]
        self.control.daemons.start(name, command)


def load_image(folder: Path, archive: Path) -> str:
    """Loads an image into containerd, without the layers that it already has: it would write them again."""
    reference = read_reference(archive)
    known = ctr(folder, "content", "ls", "--quiet").stdout.split()
    command = _ctr_command(folder, "images", "import", "--snapshotter", "overlayfs", "-")
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output) as importing:
            assert importing.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                copy_without(archive, known, importing.stdin)
        output.seek(0)
        if importing.returncode != 0:
            raise ClusterFailed(f"containerd refused {archive}: {output.read().strip()}")
    return reference


def ctr(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_ctr_command(folder, *arguments), capture_output=True, text=True, check=False)


def _ctr_command(folder: Path, *arguments: str) -> list[str]:
    return ["ctr", "--address", str(socket_of(folder)), "--namespace", _NAMESPACE, *arguments]


def _hand_down_controllers(group: Path) -> None:
    """On cgroup v2 a group has only the controllers that its parent enables, and the kubelet needs all of them."""
    available = group / "cgroup.controllers"
    controllers = available.read_text().split() if available.exists() else []
    if controllers:
        (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def socket_of(folder: Path) -> Path:
    return folder / "containerd.sock"
