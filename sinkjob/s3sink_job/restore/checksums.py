"""Checksums of records: of their bytes, headers, times and number, and of their order.

A record has a digest of 64 bits. A checksum adds them, once as they are, and once multiplied by the number of the
record, so that it changes with the order. All numbers wrap around at 64 bits, as Java's do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.duckdb_functions import sha256
from s3sink_job.columns.text import json_of
from s3sink_job.shape.dead_letters import HEADERS

Digests = npt.NDArray[np.uint64]
DIGITS = 16
_TIME_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_VALUES = np.zeros(256, np.uint64)
_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16, dtype=np.uint64)
_POWERS = np.uint64(16) ** np.arange(DIGITS - 1, -1, -1, dtype=np.uint64)
_LENGTH = 64
"""Hexadecimal digits of SHA-256."""


def record_digests(records: pa.RecordBatch | pa.Table) -> Digests:
    """Of key, value, headers and timestamp, which is a number of milliseconds."""
    count = records.num_rows
    if not count:
        return np.zeros(0, np.uint64)
    columns = {name: _whole(records.column(name)) for name in ("key", "value", "headers")}
    columns["headers"] = pc.coalesce(columns["headers"], pa.scalar([], HEADERS))
    hashes = pa.concat_arrays([sha256(json_of(pa.StructArray.from_arrays(list(columns.values()), list(columns))))])
    digits = np.frombuffer(hashes.buffers()[2], np.uint8, _LENGTH * count).reshape(count, _LENGTH)[:, :DIGITS]
    times = _whole(records.column("timestamp")).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    found: Digests = (_VALUES[digits] * _POWERS).sum(axis=1, dtype=np.uint64) + times * _TIME_FACTOR
    return found


@dataclass(frozen=True)
class Checksum:
    records: int = 0
    sum: int = 0
    weighted: int = 0
    """Both from -2^63 on, as Java has them."""

    def plus(self, digests: Digests) -> Checksum:
        numbers = np.arange(self.records + 1, self.records + 1 + len(digests), dtype=np.uint64)
        return Checksum(
            self.records + len(digests),
            _wrapped(self.sum + int(digests.sum(dtype=np.uint64))),
            _wrapped(self.weighted + int((digests * numbers).sum(dtype=np.uint64))),
        )

    def to_text(self) -> str:
        return f"{self.records} {self.sum} {self.weighted}"

    @property
    def without_order(self) -> tuple[int, int]:
        return self.records, self.sum


def checksum_from_text(text: str) -> Checksum:
    return Checksum(*map(int, text.split(" ")))


def total(checksums: Iterable[Checksum]) -> tuple[int, int]:
    """Records and sum of all of them, whatever their order."""
    records, whole = 0, 0
    for one in checksums:
        records, whole = records + one.records, whole + one.sum
    return records, _wrapped(whole)


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _whole(column: Any) -> pa.Array:
    return pa.concat_arrays(column.chunks if isinstance(column, pa.ChunkedArray) else [column])
