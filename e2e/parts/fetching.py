"""Programs that others made, into a folder of the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.parts.processes import PartFailed

_SETUP = Path(__file__).parents[1] / "bootstrap.sh"


def run(command: Sequence[str], **env: str) -> str:
    """What it printed; PartFailed with its last words if it fails."""
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PartFailed(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def unpack_wheel(wanted: str, folder: Path) -> None:
    """A package of PyPI, `name==version`, without what it depends on."""
    uv = run([str(_SETUP), "uv"]).strip()
    run([uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable, "--target", str(folder), wanted])
