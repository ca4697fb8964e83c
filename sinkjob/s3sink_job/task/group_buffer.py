"""Buffers rows of many groups and returns them group by group.

A thousand open objects would mean a thousand half-filled row groups and compressors. So the rows are kept here as they
are, in memory and then in spill files sorted by group. In the end they are returned group by group: one writer is open
at a time, and gets all of its rows at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from s3sink_job.base.spill import Spill
from s3sink_job.task.task_settings import Group

OFFSET = "s3sink.offset"
"""Name of the last column of buffered rows. It is found by position: a record may have a column of that name."""
MOST_BUFFERED = 48 * 2**20
"""Bytes of rows in memory. Sorting needs as much again for a moment."""
PLAIN, PACKED = pa.ipc.IpcWriteOptions(), pa.ipc.IpcWriteOptions(compression="lz4")
"""Compressing takes three times as long as writing: only once the spill folder fills up."""


@dataclass(frozen=True)
class Piece:
    """Rows of one group, in order, with the offsets of their records."""

    rows: pa.RecordBatch
    offsets: pa.Array


@dataclass
class SpilledRows:
    """A file with rows of one schema, sorted by group. `batches`: the number of each group's batch."""

    path: Path
    batches: dict[int, int]


@dataclass
class GroupBuffer:
    spill: Spill
    most: int
    held: int = 0
    _codes: dict[Group, int] = field(default_factory=dict)
    _rows: list[pa.RecordBatch] = field(default_factory=list)
    _row_codes: list[np.ndarray] = field(default_factory=list)
    _runs: list[SpilledRows] = field(default_factory=list)

    @property
    def groups(self) -> Collection[Group]:
        """That have rows here."""
        return self._codes.keys()

    def add(self, rows: pa.RecordBatch, offsets: pa.Array, keys: list[Group], codes: pa.Array) -> None:
        """`codes`: for each row the index of its group in `keys`."""
        rows = rows.append_column(OFFSET, offsets)
        if self._rows and not self._rows[0].schema.equals(rows.schema):
            self._spill()
        known = [self._codes.setdefault(key, len(self._codes)) for key in keys]
        self._rows.append(rows)
        self._row_codes.append(np.array(known, np.int64)[codes.to_numpy()])
        self.held += rows.nbytes
        if self.held > self.most:
            self._spill()

    def drain(self) -> Iterator[tuple[Group, Iterator[Piece]]]:
        """Returns everything, group by group, in the order in which the groups came first.

        Pieces are read lazily: one group may be nearly all there is.
        """
        last, bounds = self._sorted()
        # Not memory-mapped: mapped pages count as memory of the process.
        readers = [(pa.ipc.open_file(pa.OSFile(str(run.path))), run.batches) for run in self._runs]
        try:
            for group, code in self._codes.items():
                start, count = bounds.get(code, (0, 0))
                rest = [last.slice(start, count)] if last is not None and count else []
                yield group, map(_piece, chain(_read(readers, code), rest))
        finally:
            del readers
            for run in self._runs:
                self.spill.remove(run.path)
        self._codes, self._runs = {}, []

    def _sorted(self) -> tuple[pa.RecordBatch | None, dict[int, tuple[int, int]]]:
        """The rows in memory, sorted by group, and the start and length of each group."""
        if not self._rows:
            return None, {}
        codes = np.concatenate(self._row_codes)
        rows = pa.concat_batches(self._rows)
        # Groups by time are mostly in order already.
        if (codes[1:] < codes[:-1]).any():
            rows = rows.take(pa.array(_order(codes)))
        self._rows, self._row_codes, self.held = [], [], 0
        found, counts = np.unique(codes, return_counts=True)
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        return rows, {int(c): (int(s), int(n)) for c, s, n in zip(found, starts, counts, strict=True)}

    def _spill(self) -> None:
        rows, bounds = self._sorted()
        if rows is None:
            return
        options = PACKED if self.spill.filling else PLAIN
        run = SpilledRows(self.spill.new_file(), {code: number for number, code in enumerate(bounds)})
        # Listed first, so that the file is removed whatever fails.
        self._runs.append(run)
        with self.spill.writing(), pa.OSFile(str(run.path), "wb") as file:
            with pa.ipc.new_file(file, rows.schema, options=options) as writer:
                for start, count in bounds.values():
                    writer.write_batch(rows.slice(start, count))
            size = file.tell()
        self.spill.grew(run.path, size)
        del rows
        pa.default_memory_pool().release_unused()


def _order(codes: np.ndarray) -> np.ndarray:
    # 16 bit numbers are sorted by counting, which takes a tenth of the time.
    return np.argsort(codes.astype(np.uint16) if codes.max() < 2**16 else codes, kind="stable")


def _read(readers: Sequence[tuple[Any, dict[int, int]]], code: int) -> Iterator[pa.RecordBatch]:
    for reader, batches in readers:
        if code in batches:
            yield reader.get_batch(batches[code])


def _piece(rows: pa.RecordBatch) -> Piece:
    place = rows.num_columns - 1
    return Piece(rows.remove_column(place), rows.column(place))
