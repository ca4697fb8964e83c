"""The size of the image, on a node and compressed in a registry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.image.archive import Layer
from tools.image.build import Image
from tools.parts.cache import build_once


@dataclass(frozen=True)
class Size:
    unpacked: int
    packed: int


def sizes(image: Image) -> dict[str, Size]:
    """By layer. Compressing a large layer takes half a minute, so the cache keeps the result."""
    return {name: Size(layer.size, _packed(layer)) for name, layer in image.layers.items()}


def table(found: dict[str, Size]) -> str:
    total = Size(sum(size.unpacked for size in found.values()), sum(size.packed for size in found.values()))
    lines = [f"{'layer':10}{'unpacked':>12}{'compressed':>12}"]
    for name, size in {**found, "image": total}.items():
        lines.append(f"{name:10}{_megabytes(size.unpacked):>12}{_megabytes(size.packed):>12}")
    return "\n".join(lines)


def _packed(layer: Layer) -> int:
    def pack(folder: Path) -> None:
        (folder / "size").write_text(str(layer.packed_size()))

    return int((build_once(f"packed-{layer.digest[:16]}", pack) / "size").read_text())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
