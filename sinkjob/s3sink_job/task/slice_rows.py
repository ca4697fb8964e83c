"""Checks of what Spark hands to a task: the rows of one slice, in offset order, none of them too large."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import LARGE


def split_large(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, int | None]:
    """The batch without its column `large`, and the offset of the first large record in it."""
    if LARGE not in batch.schema.names:
        return batch, None
    row = pc.index(batch.column(LARGE), True).as_py()
    offset = None if row < 0 else batch.column("offset")[row].as_py()
    return batch.drop_columns([LARGE]), offset


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
