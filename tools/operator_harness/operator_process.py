"""The operator as a process on this machine, with the rights of its ServiceAccount and no others."""

from __future__ import annotations

import http.client
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from tools.cluster import Cluster
from tools.parts.processes import LOOPBACK, Process, free_ports

FOLDER = Path(__file__).parents[2] / "examples" / "kubernetes"
MANIFEST = FOLDER / "operator.yaml"
SYSTEM, ACCOUNT = "s3sink-system", "s3sink-operator"
IMAGE = "localhost/s3sink:test"


def grant(cluster: Cluster, manifest: Path = MANIFEST) -> None:
    """Applies a manifest without its Deployment: no node would run it."""
    Install.read(manifest).grant(cluster)


@dataclass(frozen=True)
class Install:
    """One of the manifests in examples/kubernetes."""

    documents: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, manifest: Path, names: Mapping[str, str] | None = None) -> Self:
        """`names` replaces names in the manifest, as people put in their own."""
        text = manifest.read_text()
        for name, other in (names or {}).items():
            text = re.sub(rf"\b{re.escape(name)}\b", other, text)
        return cls(tuple(yaml.safe_load_all(text)))

    def grant(self, cluster: Cluster) -> None:
        """Applies all of it but the Deployment: no node would run it."""
        rights = [document for document in self.documents if document["kind"] != "Deployment"]
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))

    @property
    def system(self) -> str:
        """The operator's own namespace."""
        return str(next(d for d in self.documents if d["kind"] == "ServiceAccount")["metadata"]["namespace"])

    @property
    def rules(self) -> list[dict[str, Any]]:
        roles = (d for d in self.documents if d["kind"] in {"Role", "ClusterRole"})
        return [rule for role in roles for rule in role["rules"]]

    @property
    def settings(self) -> dict[str, str]:
        """The operator's environment in its Deployment."""
        deployment = next(d for d in self.documents if d["kind"] == "Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        return {e["name"]: e["value"] for e in container["env"] if e["name"].startswith("S3SINK_")}


class Operator:
    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        *flags: str,
        system: str = SYSTEM,
        server: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`server` is another address of the API server than the cluster's."""
        self._cluster, self._folder, self._flags, self._system = cluster, folder, flags, system
        self._server, self._env = server, env or {}
        (self.port,) = free_ports(1)
        self._process: Process | None = None

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self._system}:{ACCOUNT}"

    def start(self, *more: str) -> None:
        self.launch(*more)
        assert self._process is not None
        self._process.wait_until(lambda: self.get("/readyz")[0] == 200, 60)

    def launch(self, *more: str) -> None:
        """Starts it, without waiting until it is ready."""
        kubeconfig = self._folder / "operator.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(self._as_service_account()))
        command = [sys.executable, "-m", "s3sink_operator", "--listen", f"{LOOPBACK}:{self.port}", *self._flags, *more]
        env = {"S3SINK_IMAGE": IMAGE, **self._env, "KUBECONFIG": str(kubeconfig), "no_proxy": "*", "NO_PROXY": "*"}
        self._process = Process("operator", command, self._folder / "operator.log", env)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self._process is None else self._process._child.poll()

    @property
    def log(self) -> str:
        return (self._folder / "operator.log").read_text()

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=2)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples with these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        lines = [line.rpartition(" ") for line in self.get("/metrics")[1].splitlines()]
        found = [(key, value) for key, _, value in lines if key.partition("{")[0] == name]
        return sum(float(value) for key, value in found if all(label in key for label in wanted))

    def _as_service_account(self) -> dict[str, Any]:
        token = self._cluster.kubectl("--namespace", self._system, "create", "token", ACCOUNT, "--duration=2h")
        config: dict[str, Any] = yaml.safe_load(self._cluster.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": token.strip()}
        if self._server:
            config["clusters"][0]["cluster"] = {"server": self._server}
        return config
