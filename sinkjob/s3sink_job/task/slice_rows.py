"""Checks of what Spark hands to a task: the rows of one slice, in offset order, none of them too large.

And the count of what it does not hand over.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import LARGE
from s3sink_job.kafka.left_out import COUNTED_END, NUMBER

FRAME = b"\x00"
"""What a frame begins with."""


def split_large(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, int | None]:
    """The batch without its column `large`, and the offset of the first large record in it."""
    if LARGE not in batch.schema.names:
        return batch, None
    row = pc.index(batch.column(LARGE), True).as_py()
    offset = None if row < 0 else batch.column("offset")[row].as_py()
    return batch.drop_columns([LARGE]), offset


def without_frame(batch: pa.RecordBatch, parts: Mapping[str, str]) -> int | None:
    """The offset of the first record whose schema may be named in a header that was not read.

    Such a record is a bad record, so batches without any need no look. `parts`: see `Encoding.framed_parts`.
    """
    for ids, part in parts.items():
        if ids in batch.schema.names or part not in batch.schema.names:
            continue
        framed = pc.starts_with(batch.column(part), FRAME)
        row = pc.index(framed, False).as_py()
        if row >= 0:
            found: int = batch.column("offset")[row].as_py()
            return found
    return None


class RowCheck:
    """Spark's tasks and the planned slices are the same by construction. This verifies it."""

    def __init__(self, slice: Slice) -> None:
        self._slice = slice
        self._last = slice.start - 1

    def check(self, batch: pa.RecordBatch) -> None:
        offsets, partitions = batch.column("offset").to_numpy(), batch.column("partition").to_numpy()
        rising = (offsets[1:] > offsets[:-1]).all()
        mine = (partitions == self._slice.partition).all()
        first, last = int(offsets[0]), int(offsets[-1])
        if not (rising and mine and self._last < first and last < self._slice.end):
            raise ProtocolError(
                f"Spark gave the task of {self._slice} offsets {first} to {last} after {self._last}. Expected are the "
                "offsets of this slice in rising order"
            )
        self._last = last


class LeftOutCount:
    """How many records Spark left out, by the numbers of those that it handed over. See `left_out.py`."""

    def __init__(self, slice: Slice) -> None:
        self._slice = slice
        self._offsets, self._numbers = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """Of the last batch."""
        self._before = 0
        """Rows before the last batch."""

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without the column of numbers."""
        if NUMBER not in batch.schema.names:
            return batch
        numbers, batch = batch.column(NUMBER), batch.drop_columns([NUMBER])
        if not numbers.null_count:
            self._before += len(self._offsets)
            self._offsets, self._numbers = batch.column("offset").to_numpy(), numbers.to_numpy()
        return batch

    @property
    def is_complete(self) -> bool:
        """Whether none was left out behind the last row."""
        return not len(self._offsets) or int(self._offsets[-1]) >= self._slice.end - COUNTED_END

    def before(self, end: int) -> int:
        """How many before this offset, which is in the last batch or behind it."""
        rows = int(np.searchsorted(self._offsets, end))
        if not rows:
            return int(self._numbers[0]) - self._before if len(self._numbers) else 0
        last = int(self._numbers[rows - 1]) + 1 if rows == len(self._numbers) else int(self._numbers[rows])
        return last - self._before - rows

    def of_all(self, size: int) -> int:
        """The size of all records, if those that were handed over have this size, and the others are alike."""
        rows = self._before + len(self._offsets)
        return size * (rows + self.before(self._slice.end)) // rows if rows else size
