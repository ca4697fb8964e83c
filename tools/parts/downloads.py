"""Downloads of third-party programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.parts.processes import PartFailed

_SETUP = Path(__file__).parents[1] / "bootstrap.sh"


def run(command: Sequence[str], **env: str) -> str:
    """The command's standard output; PartFailed, with the end of its output, if it fails."""
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PartFailed(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def unpack_wheel(wanted: str, folder: Path) -> None:
    """Installs a package of PyPI, `name==version`, into `folder`, without its dependencies."""
    uv = run([str(_SETUP), "uv"]).strip()
    run([uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable, "--target", str(folder), wanted])
