"""Compression of whole objects, for formats that do not compress within.

Most codecs write one frame to the end of the object. Bzip2 and Xz frames cannot be flushed, and high levels of Zstd
need a large table for each open object. These codecs collect a piece and compress it as a frame by itself; readers
take several frames in a row for one file.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import brotli
import lz4.frame
import zstandard

GZIP = 31  # zlib's window bits for a gzip frame
PIECE = 8 * 2**20
"""Bytes in one frame of codecs that cannot flush a frame."""
MOST_ZSTD = 6
"""The highest level of Zstd that needs only a few MiB for each open object."""
SMALLEST_DICTIONARY = 4096  # the least that Xz allows
BROTLI_WINDOW = 18
"""256 KiB, much less than Brotli's default: each open object needs four times as much."""
DEFAULT_LEVELS = {"Gzip": 6, "Lz4": 1, "Zstd": 3, "Brotli": 5, "Bzip2": 9, "Xz": 6, "Deflate": 6}
CODEC_EXTENSIONS = {
    "None": "",
    "Gzip": ".gz",
    "Lz4": ".lz4",
    "Zstd": ".zst",
    "Brotli": ".br",
    "Bzip2": ".bz2",
    "Xz": ".xz",
}
CONTENT_ENCODINGS = {"Gzip": "gzip", "Zstd": "zstd", "Brotli": "br"}
"""The names of codecs in the header Content-Encoding; the others have none."""


class ByteSink(Protocol):
    def write(self, data: bytes | memoryview) -> int: ...


class Frame(Protocol):
    @property
    def held(self) -> int:
        """Bytes that are not compressed yet."""
        ...

    def add(self, data: bytes | memoryview) -> bytes: ...

    def flush(self) -> bytes:
        """The compressed rest of what was added so far; more may follow."""
        ...

    def end(self) -> bytes: ...


class Stream:
    """Compresses into a sink. `close` ends the frame and leaves the sink open."""

    def __init__(self, sink: ByteSink, frame: Frame | None) -> None:
        self._sink = sink
        self._frame = frame
        self.size = 0
        """Bytes that were written to the sink."""

    @property
    def held(self) -> int:
        return 0 if self._frame is None else self._frame.held

    def write(self, data: bytes | memoryview) -> None:
        self._emit(data if self._frame is None else self._frame.add(data))

    def settle(self) -> None:
        """Compresses all that was written so far, so that its size is known."""
        if self._frame is not None:
            self._emit(self._frame.flush())

    def close(self) -> None:
        if self._frame is not None:
            self._emit(self._frame.end())

    def _emit(self, data: bytes | memoryview) -> None:
        if len(data):
            self._sink.write(data)
            self.size += len(data)


class _Gzip:
    held = 0

    def __init__(self, level: int) -> None:
        self._frame = zlib.compressobj(level, zlib.DEFLATED, GZIP)

    def add(self, data: bytes | memoryview) -> bytes:
        return self._frame.compress(data)

    def flush(self) -> bytes:
        return self._frame.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._frame.flush()


class _Zstd:
    held = 0

    def __init__(self, level: int) -> None:
        self._frame = zstandard.ZstdCompressor(level=level).compressobj()

    def add(self, data: bytes | memoryview) -> bytes:
        return self._frame.compress(data)

    def flush(self) -> bytes:
        return self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._frame.flush()


class _Brotli:
    held = 0

    def __init__(self, level: int) -> None:
        self._frame = brotli.Compressor(quality=level, lgwin=BROTLI_WINDOW)

    def add(self, data: bytes | memoryview) -> bytes:
        return bytes(self._frame.process(data))

    def flush(self) -> bytes:
        return bytes(self._frame.flush())

    def end(self) -> bytes:
        return bytes(self._frame.finish())


class _Lz4:
    """By the library's low-level functions: its class cannot flush without ending the frame."""

    held = 0

    def __init__(self, level: int) -> None:
        self._context: Any = lz4.frame.create_compression_context()
        self._start: bytes = lz4.frame.compress_begin(self._context, compression_level=level, content_checksum=True)

    def add(self, data: bytes | memoryview) -> bytes:
        return self._with_start(lz4.frame.compress_chunk(self._context, data))

    def flush(self) -> bytes:
        return self._with_start(lz4.frame.compress_flush(self._context, end_frame=False))

    def end(self) -> bytes:
        return self._with_start(lz4.frame.compress_flush(self._context))

    def _with_start(self, data: bytes) -> bytes:
        start, self._start = self._start, b""
        return start + data


class _Pieces:
    """Each piece is a frame by itself, so that no compressor stays in memory."""

    def __init__(self, compress: Callable[[bytes], bytes]) -> None:
        self._compress = compress
        self._piece = bytearray()
        self._empty = True

    @property
    def held(self) -> int:
        return len(self._piece)

    def add(self, data: bytes | memoryview) -> bytes:
        self._piece += data
        return self.flush() if len(self._piece) >= PIECE else b""

    def flush(self) -> bytes:
        return self._frame() if self._piece else b""

    def end(self) -> bytes:
        return self._frame() if self._piece or self._empty else b""

    def _frame(self) -> bytes:
        piece, self._piece, self._empty = bytes(self._piece), bytearray(), False
        return self._compress(piece)


def compressing(sink: ByteSink, codec: str, level: int | None) -> Stream:
    return Stream(sink, None if codec == "None" else _frame(codec, DEFAULT_LEVELS[codec] if level is None else level))


def _frame(codec: str, level: int) -> Frame:
    match codec:
        case "Gzip":
            return _Gzip(level)
        case "Lz4":
            return _Lz4(level)
        case "Zstd" if level <= MOST_ZSTD:
            return _Zstd(level)
        case "Zstd":
            return _Pieces(lambda piece: zstandard.ZstdCompressor(level=level).compress(piece))
        case "Brotli":
            return _Brotli(level)
        case "Bzip2":
            return _Pieces(lambda piece: bz2.compress(piece, level))
        case "Xz":
            return _Pieces(lambda piece: xz(piece, level))
        case other:
            raise ValueError(f"no compressor for codec {other}")


def xz(piece: bytes, level: int) -> bytes:
    """With a dictionary no larger than the piece: a larger one only costs memory."""
    size = min(max(len(piece), SMALLEST_DICTIONARY), PIECE)
    return lzma.compress(piece, filters=[{"id": lzma.FILTER_LZMA2, "preset": level, "dict_size": size}])


def decompress(data: bytes, codec: str) -> bytes:
    """The whole content of an object, to check what was written."""
    match codec:
        case "None":
            return data
        case "Gzip":
            return gzip.decompress(data)
        case "Zstd":
            return _all_frames(data, lambda: zstandard.ZstdDecompressor().decompressobj())
        case "Lz4":
            return _all_frames(data, lz4.frame.LZ4FrameDecompressor)
        case "Brotli":
            return bytes(brotli.decompress(data))
        case "Bzip2":
            return _all_frames(data, bz2.BZ2Decompressor)
        case "Xz":
            return _all_frames(data, lzma.LZMADecompressor)
        case other:
            raise ValueError(f"no decompressor for codec {other}")


def _all_frames(data: bytes, begin: Callable[[], Any]) -> bytes:
    content = []
    while True:
        frame = begin()
        content.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError("the compressed data ends before the end of its frame")
        data = frame.unused_data
        if not data:
            return b"".join(content)
