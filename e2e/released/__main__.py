"""Freezes the version that pyproject.toml names, as the last commit has it."""

from __future__ import annotations

import lzma
import subprocess
import sys
import tomllib
from pathlib import Path

from e2e.image.dockerfile import steps
from e2e.parts.helm import CHART, helm
from e2e.released import HERE, Published

PROJECT = Path(__file__).parents[2]
ALWAYS = ("Dockerfile", "e2e/image/steps", "e2e/image/packages.txt")


def main() -> int:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    release = Published(version)
    if release.tree.exists() or release.chart.exists():
        print(f"released: {version} is frozen already, and a release never changes", file=sys.stderr)
        return 1
    if changed := _git("status", "--porcelain").decode():
        print(f"released: commit first, or remove:\n{changed}", file=sys.stderr)
        return 1
    seen = {source for step in steps((PROJECT / "Dockerfile").read_text()).values() for source in step.sources}
    tree = _git("archive", "HEAD", *sorted(seen | set(ALWAYS)))
    release.tree.write_bytes(lzma.compress(tree, preset=9))
    helm("package", str(CHART), "--destination", str(HERE))
    print(release.tree)
    print(release.chart)
    return 0


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=PROJECT, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
