"""Tombstones: records without a value. A value that is JSON's `null` is none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault, faults_at
from s3sink_job.shape.settings import Shape

NULL_VALUE = "its value is null, and spec.nullValues is Fail"


def tombstones(batch: pa.RecordBatch) -> Column:
    """A mask of the tombstones."""
    return pc.is_null(batch.column("value"))


def without_skipped(batch: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
    """The batch without tombstones, where they are skipped."""
    return batch.filter(pc.invert(tombstones(batch))) if shape.nulls == "Skip" else batch


def refused_tombstones(batch: pa.RecordBatch, shape: Shape) -> dict[int, Fault]:
    """The tombstones, where they are bad records."""
    if shape.nulls != "Fail":
        return {}
    return faults_at(pc.indices_nonzero(tombstones(batch)).to_pylist(), "NullValue", NULL_VALUE)
