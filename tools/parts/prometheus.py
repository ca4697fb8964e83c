"""Prometheus and promtool from Debian's package, unpacked into the cache: nothing is installed.

Also the definitions of prometheus-operator's kinds, from its Go module.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import yaml

from tools.parts.cache import build_once
from tools.parts.downloads import run
from tools.parts.go import go_module
from tools.parts.processes import LOOPBACK, PartFailed, Process, free_ports
from tools.parts.versions import version

_PROGRAMS = ("prometheus", "promtool")
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_KINDS = ("servicemonitors", "podmonitors", "prometheusrules")


def prometheus_dir() -> Path:
    """The folder with `prometheus` and `promtool`: on this machine, or in the cache."""
    found = {Path(program).parent for name in _PROGRAMS if (program := shutil.which(name))}
    if len(found) == 1:
        return found.pop()
    return build_once(f"prometheus-{_candidate()}", _unpack) / "usr" / "bin"


class Prometheus:
    """A server on loopback, with its data in a temporary folder."""

    def __init__(self, config: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
        self._config = {**config, "rule_files": ["rules.yaml"]}
        self._rules = rules
        self._dir = Path(tempfile.gettempdir()) / f"s3sink-prometheus-{secrets.token_hex(6)}"
        self._port = free_ports(1)[0]
        self._process: Process | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query; a scalar is a series without labels. PartFailed with the server's message."""
        found: list[Any] = self._ask("query", query=expression)["result"]
        return found

    def series(self, selector: str) -> list[dict[str, str]]:
        """The labels of all series that it has scraped."""
        found: list[dict[str, str]] = self._ask("series", **{"match[]": selector})
        return found

    def targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("targets", state="active")["activeTargets"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that are pending or firing."""
        found: list[dict[str, Any]] = self._ask("alerts")["alerts"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ask(self, what: str, **arguments: str) -> Any:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=30)
        try:
            connection.request("GET", f"/api/v1/{what}?{urlencode(arguments)}")
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if answer["status"] != "success":
            raise PartFailed(f"Prometheus does not answer {arguments or what}: {answer['error']}")
        return answer["data"]

    def _start(self) -> None:
        self._dir.mkdir(mode=0o700)
        (self._dir / "prometheus.yaml").write_text(yaml.safe_dump(self._config))
        (self._dir / "rules.yaml").write_text(yaml.safe_dump(dict(self._rules)))
        command = [
            str(prometheus_program()),
            f"--config.file={self._dir / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self._dir / 'data'}",
            f"--web.listen-address={LOOPBACK}:{self._port}",
        ]
        self._process = Process("prometheus", command, self._dir / "server.log")
        self._process.wait_until(self._is_ready)

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=5)
        try:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == 200
        except ConnectionError:
            return False
        finally:
            connection.close()

    def _close(self) -> None:
        if self._process is not None:
            self._process.stop()
        shutil.rmtree(self._dir, ignore_errors=True)


def promtool_program() -> Path:
    return prometheus_dir() / "promtool"


def prometheus_program() -> Path:
    return prometheus_dir() / "prometheus"


def monitoring_definitions() -> Path:
    """A folder with the CustomResourceDefinitions of ServiceMonitor, PodMonitor and PrometheusRule."""
    return build_once(f"prometheus-operator-{version('prometheus', 'operator')}", _copy_definitions)


def _candidate() -> str:
    """The version that apt would fetch now."""
    if not shutil.which("apt-get"):
        wanted = version("prometheus", "minimum")
        raise PartFailed(f"`prometheus` and `promtool` are not on PATH; install {wanted} or newer")
    if found := _known():
        return found
    if os.geteuid() != 0:
        raise PartFailed("apt knows no package `prometheus`; run as root: apt-get update")
    run(["apt-get", "update", "-qq"])
    if found := _known():
        return found
    raise PartFailed("apt knows no package `prometheus`; put `prometheus` and `promtool` on PATH")


def _known() -> str:
    said = re.search(r"^  Candidate: (\S+)$", run(["apt-cache", "policy", "prometheus"], LC_ALL="C"), re.M)
    # A version may contain a colon, which a folder's name should not.
    return "" if said is None or said[1] == "(none)" else said[1].replace(":", "-")


def _unpack(folder: Path) -> None:
    print("• fetching Debian's package of Prometheus: 20 MB, once", file=sys.stderr, flush=True)
    run(["sh", "-c", 'cd "$0" && apt-get download -qq prometheus', str(folder)])
    (package,) = folder.glob("*.deb")
    run(["dpkg-deb", "-x", str(package), str(folder)])
    package.unlink()


def _copy_definitions(folder: Path) -> None:
    sources = go_module(f"{_OPERATOR}@v{version('prometheus', 'operator')}")
    for kind in _KINDS:
        name = f"monitoring.coreos.com_{kind}.yaml"
        text = (sources / "example" / "prometheus-operator-crd" / name).read_text()
        assert yaml.safe_load(text)["spec"]["names"]["plural"] == kind
        (folder / name).write_text(text)


if __name__ == "__main__":
    print(prometheus_dir())
