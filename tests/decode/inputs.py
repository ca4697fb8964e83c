"""Input formats as a slice opens them, and batches of values or keys alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.decode.input_format import InputFormat, InputSettings
from s3sink_job.decode.input_formats import INPUTS


def opened_input(
    name: str, part: str = "value", known: KnownColumns | pa.StructType | None = None, **settings: Any
) -> InputFormat:
    if isinstance(known, pa.StructType):
        known = KnownColumns(known)
    return INPUTS[name](InputSettings(part, known, **settings))


def batch_of_values(*values: bytes | None) -> pa.RecordBatch:
    """The same bytes as keys and as values."""
    return batch_of_column(pa.array(values, pa.binary()))


def batch_of_column(column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column, column], ["key", "value"])


def columns_of(opened: InputFormat) -> pa.StructType:
    """The columns known so far."""
    known = opened.schema
    assert known is not None
    return known.record
