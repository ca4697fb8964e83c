"""The frozen releases: of each the chart, and the source tree that its image is built from.

    python -m tools.releases        freezes the present version, from the last commit

A file here never changes. Tests upgrade from it to the present tree.
"""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.image.build import Image, build_image

HERE = Path(__file__).parent


@dataclass(frozen=True)
class FrozenRelease:
    version: str

    @property
    def chart(self) -> Path:
        return HERE / f"s3sink-operator-{self.version}.tgz"

    @property
    def tree(self) -> Path:
        return HERE / f"s3sink-{self.version}.tar.xz"

    def image(self) -> Image:
        with tempfile.TemporaryDirectory(prefix="s3sink-release-") as folder:
            with tarfile.open(self.tree) as archive:
                archive.extractall(folder, filter="data")
            return build_image(Path(folder))


def frozen_releases() -> list[FrozenRelease]:
    """All frozen releases, the oldest first."""
    versions = [path.name.removeprefix("s3sink-").removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")]
    return [FrozenRelease(v) for v in sorted(versions, key=lambda v: tuple(map(int, v.split("."))))]
