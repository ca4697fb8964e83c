"""Streams of compressed bytes for formats that do not compress by themselves."""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard

GZIP = 31  # zlib's window bits for a gzip frame


class ByteSink(Protocol):
    def write(self, data: bytes | memoryview) -> int: ...


class Compressor(Protocol):
    def compress(self, data: bytes | memoryview, /) -> bytes: ...

    def flush(self, mode: int = ..., /) -> bytes: ...


class Stream:
    """A sink that compresses into another. `close` ends the frame, and leaves the other sink open."""

    def __init__(self, sink: ByteSink, compressor: Compressor | None, block: int = 0) -> None:
        self._sink = sink
        self._compressor = compressor
        self._block = block
        self.size = 0
        """Bytes that went on to the other sink."""

    def write(self, data: bytes | memoryview) -> None:
        self._emit(data if self._compressor is None else self._compressor.compress(data))

    def settle(self) -> None:
        """Sends on all that was written so far: the frame goes on, and its size is known."""
        if self._compressor is not None:
            self._emit(self._compressor.flush(self._block))

    def close(self) -> None:
        if self._compressor is not None:
            self._emit(self._compressor.flush())

    def _emit(self, data: bytes | memoryview) -> None:
        if len(data):
            self._sink.write(data)
            self.size += len(data)


def compressing(sink: ByteSink, codec: str, level: int | None) -> Stream:
    match codec:
        case "None":
            return Stream(sink, None)
        case "Gzip":
            return Stream(sink, zlib.compressobj(6 if level is None else level, zlib.DEFLATED, GZIP), zlib.Z_SYNC_FLUSH)
        case "Zstd":
            frame = zstandard.ZstdCompressor(level=3 if level is None else level).compressobj()
            return Stream(sink, frame, zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        case other:
            raise ValueError(f"no compressor for codec {other}")


def decompress(data: bytes, codec: str) -> bytes:
    """The whole content of an object, for those who check what was written."""
    match codec:
        case "None":
            return data
        case "Gzip":
            return zlib.decompress(data, GZIP)
        case "Zstd":
            frame = zstandard.ZstdDecompressor().decompressobj()
            content = frame.decompress(data)
            if not frame.eof:
                raise EOFError("the compressed data ends before the end of its frame")
            return content
        case other:
            raise ValueError(f"no decompressor for codec {other}")
