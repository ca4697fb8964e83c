"""The records in objects of dead letters, and those of Kafka, in the same form."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from s3sink_job.columns.duckdb_functions import sha256
from s3sink_job.columns.text import json_of
from s3sink_job.shape.dead_letters import RECORD, record_columns

SCHEMA = pa.schema([(name, pa.int64() if name == "timestamp" else kind) for name, kind in RECORD])
"""Times as milliseconds."""


def letter_records(batches: list[pa.RecordBatch]) -> pa.Table:
    """Of records from Kafka."""
    return _comparable(pa.Table.from_batches([record_columns(batch) for batch in batches], pa.schema(list(RECORD))))


def records_in_letters(rows: pa.Table) -> pa.Table:
    """Of the rows of an object of dead letters, without the context."""
    if rows.schema.names == ["line"]:
        lines = [record_of_line(json.loads(line)) for line in rows.column("line").to_pylist()]
        return pa.Table.from_pylist(lines, SCHEMA)
    return _comparable(rows.select([name for name, _ in RECORD]))


def digests(records: pa.RecordBatch) -> pa.Array:
    """Of key, value and headers, of each of the records from Kafka."""
    plain = record_columns(records)
    columns = {name: plain.column(name) for name in ("key", "value", "headers")}
    return sha256(json_of(pa.StructArray.from_arrays(list(columns.values()), list(columns))))


def millis(records: pa.RecordBatch) -> pa.Array:
    """The timestamps of records from Kafka."""
    return record_columns(records).column("timestamp").cast(pa.int64())


def _comparable(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema(list(RECORD))).cast(SCHEMA)


def record_of_line(doc: dict[str, Any]) -> dict[str, Any]:
    """The record in a line of JSON, without the context."""
    return {
        "offset": doc["offset"],
        "timestamp": doc["timestamp"],
        "key": _bytes(doc.get("key")),
        "value": _bytes(doc.get("value")),
        "headers": [{"key": h["key"], "value": _bytes(h.get("value"))} for h in doc.get("headers", ())],
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
