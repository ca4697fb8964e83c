"""Which records may share an object: those of one group."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.records.tables import millis
from s3sink_job.records.text import Column


def groups_of(batch: pa.RecordBatch, window: float | None) -> Column | None:
    """The group of each record as text, None where there is but one: so far the window of record time."""
    if window is None:
        return None
    length = int(window * 1000)
    time = millis(batch.column("timestamp"))
    # Arrow divides towards zero, and a time before 1970 belongs to the window below.
    rest = pc.subtract(time, pc.multiply(pc.divide(time, length), length))
    start = pc.subtract(time, pc.if_else(pc.less(rest, 0), pc.add(rest, length), rest))
    return start.cast(pa.string())
