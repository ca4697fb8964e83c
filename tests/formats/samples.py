"""Rows of every type, under a schema that widens, and functions that write and read objects of them."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.output_format import ObjectWriter
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.formats.settings import Output

NO_DISK = Spill(SpillPlace("/nowhere", 0))
TIME = pa.timestamp("ms", "UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LARGE = 'ä,"\n' * 1_250_000
AT = datetime(2026, 2, 28, 23, 59, 59, 7_000, tzinfo=UTC)


def open_object(wanted: Output, sink: ByteSink, spill: Spill) -> ObjectWriter:
    return OUTPUT_FORMATS[wanted.format].open(wanted, sink, spill)


def read_back(data: bytes, wanted: Output) -> pa.Table:
    return OUTPUT_FORMATS[wanted.format].read(data, wanted)


def comparable(rows: pa.RecordBatch | pa.Table, wanted: Output, found: pa.Schema) -> pa.Table:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    return OUTPUT_FORMATS[wanted.format].comparable(table, wanted, found)


def extension_of(wanted: Output) -> str:
    return OUTPUT_FORMATS[wanted.format].object_extension(wanted.codec)


def unwritable(rows: pa.RecordBatch, wanted: Output) -> dict[int, str]:
    found = OUTPUT_FORMATS[wanted.format].unwritable(rows, wanted)
    return {row: fault.message for row, fault in found.items()}


def batch(columns: dict[str, Any], **kinds: pa.DataType) -> pa.RecordBatch:
    arrays = [pa.array(values, kinds.get(name)) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


FIRST = batch(
    {
        "n": [1, -(2**63), None, 2**63 - 1],
        "t": ["plain", "", None, 'a,b "c"\r\nd; \t€ 日本 𝄞'],
        "flag": [True, False, None, True],
        "_partition": [0, 1, 2, 2**31 - 1],
        "_timestamp": [AT, None, datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), AT],
        "raw": [b"\x00\xff\xfe", b"", None, b"abc"],
        "_headers": [[{"key": "k", "value": b"\xff"}, {"key": "", "value": None}], [], None, []],
        "deep": [{"a": 1, "l": [1.5, None]}, None, {"a": None, "l": []}, {"a": 2, "l": None}],
        "later": [None] * 4,
    },
    _partition=pa.int32(),
    _timestamp=TIME,
    raw=pa.binary(),
    _headers=HEADERS,
)
SECOND = batch(
    {
        "n": [7],
        "later": [0.1],
        "deep": [{"a": 3, "l": [2.5], "more": [[{"x": "é"}], [], None]}],
        "t": ["x"],
        "new column": ["n"],
    }
)
THIRD = batch({"later": [1, 2**53], "deep": [{"a": 4}, None]})
BATCHES = (FIRST, FIRST.slice(1, 2), SECOND, THIRD)
"""Whole numbers after doubles, fields that come later at the top and within, a part of a batch."""


def rows_of(*batches: pa.RecordBatch) -> list[dict[str, Any]]:
    """What a reader should see, with every field of the widest schema."""
    named = [row for rows in batches for row in rows.to_pylist()]
    return [_filled(row, _shape(named)) for row in named]


def _shape(values: list[Any]) -> Any:
    held = [value for value in values if value is not None]
    if held and isinstance(held[0], dict):
        names = list(dict.fromkeys(name for value in held for name in value))
        return {name: _shape([value.get(name) for value in held]) for name in names}
    if held and isinstance(held[0], list):
        return [_shape([item for value in held for item in value])]
    return None


def _filled(value: Any, shape: Any) -> Any:
    if value is None or shape is None:
        return value
    if isinstance(shape, dict):
        return {name: _filled(value.get(name), inner) for name, inner in shape.items()}
    return [_filled(item, shape[0]) for item in value]


def written(wanted: Output, *batches: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    writer = open_object(wanted, sink, NO_DISK)
    for rows in batches:
        assert writer.takes(rows)
        writer.write(rows)
    writer.close()
    return sink.getvalue()
