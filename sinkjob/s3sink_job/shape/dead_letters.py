"""Dead letters as rows: the record as Kafka has it, byte for byte, and why it was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.text import json_of
from s3sink_job.decode.bad_records import BadRecord

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RECORD = (
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("ms", "UTC")),
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("headers", HEADERS),
)
"""What identifies a record within its partition, and its content."""


@dataclass(frozen=True)
class LetterOrigin:
    sink: str
    flush: str
    topic: str
    generation: int
    partition: int


def record_columns(records: pa.RecordBatch) -> pa.RecordBatch:
    """The records that Spark read, with the types of dead letters."""
    return pa.RecordBatch.from_arrays([_cast(records.column(name), kind) for name, kind in RECORD], schema=_RECORD)


def letter_rows(records: pa.RecordBatch, why: Sequence[BadRecord], origin: LetterOrigin) -> pa.RecordBatch:
    """One row for each of the records. `why` has their faults, in the same order."""
    count, plain = records.num_rows, record_columns(records)
    columns = {
        "topic": pa.repeat(origin.topic, count),
        "partition": pa.repeat(pa.scalar(origin.partition, pa.int32()), count),
        **dict(zip(plain.schema.names, plain.columns, strict=True)),
        "stage": pa.array([bad.stage for bad in why], pa.string()),
        "reason": pa.array([bad.reason for bad in why], pa.string()),
        "message": pa.array([bad.whole for bad in why], pa.string()),
        "sink": pa.repeat(origin.sink, count),
        "flush": pa.repeat(origin.flush, count),
        "generation": pa.repeat(pa.scalar(origin.generation, pa.int32()), count),
    }
    return pa.RecordBatch.from_pydict(columns)


def letter_lines(rows: pa.RecordBatch) -> pa.RecordBatch:
    """As lines of JSON: bytes as base64, times in milliseconds; a key, value or header that is null is left out."""
    at = rows.schema.get_field_index("timestamp")
    rows = rows.set_column(at, "timestamp", rows.column("timestamp").cast(pa.int64()))
    lines = json_of(rows.to_struct_array()).cast(pa.binary())
    return pa.RecordBatch.from_arrays([lines], ["line"])


_RECORD = pa.schema(list(RECORD))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        # Kafka's times have milliseconds, Spark's microseconds.
        return column.cast(pa.timestamp("us", "UTC")).cast(kind)
    if pa.types.is_list(kind):
        return pc.coalesce(column.cast(kind), pa.scalar([], kind))
    return column.cast(kind)
