"""The records of one partition in the order of their offsets, from objects that may interleave.

Each object is in order by itself. Objects whose offsets overlap are a run: they are read one by one into files of the
spill folder, and merged from there, so that memory holds one object, or a batch of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.base.spill import Spill
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.restore.stored_records import RECORDS

BATCH_ROWS = 4_096

Read = Callable[[WrittenObject], pa.Table]


def runs_of(objects: Sequence[WrittenObject]) -> list[tuple[WrittenObject, ...]]:
    """Objects in order of their first offsets, with those together whose offsets overlap."""
    runs: list[list[WrittenObject]] = []
    reached = -1
    for written in sorted(objects, key=lambda o: (o.entry.first, o.entry.last)):
        if not runs or written.entry.first > reached:
            runs.append([])
        runs[-1].append(written)
        reached = max(reached, written.entry.last)
    return [tuple(run) for run in runs]


def rows_of(run: Sequence[WrittenObject]) -> int:
    return sum(written.entry.rows for written in run)


def in_order(run: Sequence[WrittenObject], read: Read, spill: Spill) -> Iterator[pa.Table]:
    """The records of a run. Without offsets in the rows, the objects follow one another."""
    if len(run) == 1:
        yield read(run[0])
        return
    files = []
    try:
        for written in run:
            records = read(written)
            if records.num_rows and records.column("offset").null_count:
                yield records
                continue
            files.append(_spilled(records, spill))
            del records
        yield from _merged([_Cursor(path) for path in files])
    finally:
        for path in files:
            spill.remove(path)


def _spilled(records: pa.Table, spill: Spill) -> Path:
    path = spill.new_file()
    with spill.writing(), pa.OSFile(str(path), "wb") as file:
        with pa.ipc.new_file(file, RECORDS) as writer:
            writer.write_table(records, max_chunksize=BATCH_ROWS)
        spill.grew(path, file.tell())
    return path


@dataclass
class _Cursor:
    """A place in a file of batches."""

    path: Path
    number: int = 0
    batch: pa.RecordBatch | None = None

    def __post_init__(self) -> None:
        self.file = pa.ipc.open_file(pa.memory_map(str(self.path)))
        self.advance()

    def advance(self) -> None:
        """To the next batch with rows; to none at the end."""
        self.batch = None
        while self.batch is None and self.number < self.file.num_record_batches:
            batch = self.file.get_batch(self.number)
            self.batch = batch if batch.num_rows else None
            self.number += 1

    @property
    def last(self) -> int:
        assert self.batch is not None
        return int(self.batch.column("offset")[-1].as_py())

    def take_through(self, offset: int) -> pa.RecordBatch:
        assert self.batch is not None
        count = int(self.batch.column("offset").to_numpy().searchsorted(offset, side="right"))
        taken = self.batch.slice(0, count)
        if count == self.batch.num_rows:
            self.advance()
        else:
            self.batch = self.batch.slice(count)
        return taken


def _merged(cursors: list[_Cursor]) -> Iterator[pa.Table]:
    while cursors := [cursor for cursor in cursors if cursor.batch is not None]:
        bound = min(cursor.last for cursor in cursors)
        rows = pa.Table.from_batches([cursor.take_through(bound) for cursor in cursors], RECORDS)
        yield rows.take(pc.sort_indices(rows, [("offset", "ascending")]))


def interleaved(run: Sequence[WrittenObject], holds_offsets: Callable[[WrittenObject], bool]) -> list[ObjectEntry]:
    """The objects of a run whose rows cannot be put in order, because they have no offsets."""
    return [o.entry for o in run if len(run) > 1 and not holds_offsets(o)]
