"""Releases as they were published, frozen: the chart, and the tree that the image is built from.

    python -m e2e.released        freeze the present version, from the last commit

A file here never changes. Tests upgrade from it to the present tree.
"""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from e2e.image.build import Image, build_image

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Published:
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


def published() -> list[Published]:
    """All of them, the first one first."""
    versions = [path.name.removeprefix("s3sink-").removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")]
    return [Published(v) for v in sorted(versions, key=lambda v: tuple(map(int, v.split("."))))]
