"""Prometheus and promtool from Debian's package, unpacked into the cache: nothing is installed, no service starts.

Also the definitions of prometheus-operator's kinds, from its Go module.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import yaml

from e2e.parts.cache import build_once
from e2e.parts.fetching import go_module, run
from e2e.parts.processes import PartFailed
from e2e.parts.versions import version

_PROGRAMS = ("prometheus", "promtool")
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_KINDS = ("servicemonitors", "podmonitors", "prometheusrules")


def prometheus_dir() -> Path:
    """A folder with `prometheus` and `promtool`: that of this machine, or one in the cache."""
    found = {Path(program).parent for name in _PROGRAMS if (program := shutil.which(name))}
    if len(found) == 1:
        return found.pop()
    return build_once(f"prometheus-{_candidate()}", _unpack) / "usr" / "bin"


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
        raise PartFailed(f"there is no `prometheus` and `promtool` on PATH; install {wanted} or newer")
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
    # An epoch's colon has no place in the name of a folder.
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
