"""Codecs of whole files, by libraries that the product does not write with where there is another."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any

import cramjam

UNPACK: dict[str, Callable[[bytes], Any]] = {
    "None": bytes,
    "Gzip": gzip.decompress,
    "Bzip2": bz2.decompress,
    "Xz": lzma.decompress,
    "Lz4": cramjam.lz4.decompress,
    "Zstd": cramjam.zstd.decompress,
    "Brotli": cramjam.brotli.decompress,
}
