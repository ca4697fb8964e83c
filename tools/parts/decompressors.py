"""Decompressors for whole files; where possible from another library than the product compresses with."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any

import cramjam

DECOMPRESS: dict[str, Callable[[bytes], Any]] = {
    "None": bytes,
    "Gzip": gzip.decompress,
    "Bzip2": bz2.decompress,
    "Xz": lzma.decompress,
    "Lz4": cramjam.lz4.decompress,
    "Zstd": cramjam.zstd.decompress,
    "Brotli": cramjam.brotli.decompress,
}
