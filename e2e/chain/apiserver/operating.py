"""The operator as a process of this machine, with the rights of its ServiceAccount and no other."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from typing import Any

import yaml

from e2e.chain.sinks import SYSTEM
from e2e.cluster import Cluster
from e2e.parts.processes import LOOPBACK, Process, free_ports


class Operator:
    def __init__(self, cluster: Cluster, folder: Path, *flags: str) -> None:
        self._cluster, self._folder, self._flags = cluster, folder, flags
        (self.port,) = free_ports(1)
        self._process: Process | None = None

    def start(self) -> None:
        kubeconfig = self._folder / "operator.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(self._as_service_account()))
        command = [sys.executable, "-m", "s3sink_operator", "--image", "localhost/s3sink:test"]
        command += ["--listen", f"{LOOPBACK}:{self.port}", "--poll-interval", "1", "--stale-after", "4", *self._flags]
        env = {"KUBECONFIG": str(kubeconfig), "no_proxy": "*", "NO_PROXY": "*"}
        self._process = Process("operator", command, self._folder / "operator.log", env)
        self._process.wait_until(lambda: self.get("/readyz")[0] == 200, 60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

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

    def metric(self, name: str) -> float:
        lines = [line.rpartition(" ") for line in self.get("/metrics")[1].splitlines()]
        return sum(float(value) for key, _, value in lines if key.partition("{")[0] == name)

    def _as_service_account(self) -> dict[str, Any]:
        token = self._cluster.kubectl("--namespace", SYSTEM, "create", "token", "s3sink-operator", "--duration=2h")
        config: dict[str, Any] = yaml.safe_load(self._cluster.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": token.strip()}
        return config
