"""Freezes the present version (pyproject.toml) as of the last commit."""

from __future__ import annotations

import lzma
import subprocess
import sys

from tools.image.dockerfile import steps
from tools.parts.helm import CHART, helm
from tools.product_version import ROOT, product_version
from tools.releases import HERE, FrozenRelease


def main() -> int:
    version = product_version()
    release = FrozenRelease(version)
    if release.tree.exists() or release.chart.exists():
        print(f"releases: {version} is already frozen, and a release never changes", file=sys.stderr)
        return 1
    if changed := _git("status", "--porcelain").decode():
        print(f"releases: commit these changes first, or remove them:\n{changed}", file=sys.stderr)
        return 1
    copied = {source for step in steps((ROOT / "Dockerfile").read_text()).values() for source in step.sources}
    tree = _git("archive", "HEAD", "Dockerfile", *sorted(copied))
    release.tree.write_bytes(lzma.compress(tree, preset=9))
    helm("package", str(CHART), "--destination", str(HERE))
    print(release.tree)
    print(release.chart)
    return 0


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
