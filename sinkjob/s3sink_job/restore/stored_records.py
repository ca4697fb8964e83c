"""Rows of an object as the records that they were made of: whole columns at a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.text import json_of
from s3sink_job.columns.types import Column
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.proof.letter_contents import records_in_letters
from s3sink_job.restore.recovery import BYTES, JSON, spreads, stored_parts
from s3sink_job.restore.stored_lines import from_base64, json_values, parse_lines, parsed_lines
from s3sink_job.shape.dead_letters import HEADERS
from s3sink_job.shape.origin import KAFKA_FIELDS
from s3sink_job.shape.settings import RowKind
from s3sink_job.task.encoding import Encoding

RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("left_out", pa.bool_()),
    ]
)
"""Offset and timestamp, in milliseconds, are null where the object does not hold them. `left_out` rows are not sent."""
NAMES = {
    "Kafka": {"key": "_key", "headers": "_headers", "timestamp": "_timestamp", "offset": "_offset"},
    "Quix": {"key": "_key", "timestamp": "_timestamp"},
}


def records_of(
    rows: pa.Table,
    entry: ObjectEntry,
    encoding: Encoding,
    replayed: frozenset[int] = frozenset(),
    end: int | None = None,
) -> pa.Table:
    """`replayed`: offsets of dead letters in objects. Rows that were made of them by a replay are left out.

    So are rows from the offset `end` on.
    """
    columns = _columns(rows, entry, encoding)
    if entry.offsets:
        columns["offset"] = pa.array(entry.offsets, pa.int64())
        columns["left_out"] = pc.is_in(columns["offset"], value_set=pa.array(sorted(replayed), pa.int64()))
    if end is not None:
        columns["left_out"] = pc.greater_equal(columns["offset"], end)
    filled = {field.name: columns.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in RECORDS}
    filled["headers"] = pc.coalesce(filled["headers"], pa.scalar([], HEADERS))
    filled["left_out"] = pc.fill_null(filled["left_out"], False)
    return pa.table([filled[field.name].cast(field.type) for field in RECORDS], schema=RECORDS)


def _columns(rows: pa.Table, entry: ObjectEntry, encoding: Encoding) -> dict[str, Column]:
    if entry.letters:
        letters = records_in_letters(rows)
        return {name: _whole(letters.column(name)) for name in letters.column_names}
    match encoding.format.rows:
        case RowKind.VALUES:
            value = _whole(rows.column(0)).cast(pa.binary())
            return {"value": value, "offset": pa.repeat(entry.first, rows.num_rows)}
        case RowKind.TEXT_LINES:
            return {"value": _whole(rows.column("line")).cast(pa.binary())}
        case RowKind.JSON_LINES:
            return _from_lines(_whole(rows.column("line")).cast(pa.string()), encoding)
        case RowKind.TEXT_COLUMNS:
            return _from_text(_named(rows, encoding), encoding)
        case _:
            return _from_columns(rows, encoding)


def _from_columns(rows: pa.Table, encoding: Encoding) -> dict[str, Column]:
    """Of formats that keep types."""
    shape = encoding.shape
    found = {part: _whole(_column(rows, encoding, part)) for part in stored_parts(encoding)}
    if "timestamp" in found:
        found["timestamp"] = _millis(found["timestamp"])
    if not spreads(encoding):
        found["value"] = _whole(rows.column("_value" if shape.meta == "Quix" and not shape.envelope else "value"))
    elif shape.envelope:
        found["value"] = json_of(_whole(rows.column("value")))
    else:
        own = [name for name in rows.schema.names if shape.meta != "Kafka" or name not in KAFKA_FIELDS]
        text = json_of(rows.select(own).combine_chunks().to_struct_array().combine_chunks())
        found["value"] = pc.if_else(pc.equal(text, "{}"), pa.scalar(None, pa.string()), text)
    return found


def _column(rows: pa.Table, encoding: Encoding, part: str) -> pa.ChunkedArray:
    if not encoding.shape.envelope:
        return rows.column(NAMES[encoding.shape.meta][part])
    if part in {"key", "headers"}:
        return rows.column(part)
    return pa.chunked_array([_whole(rows.column("metadata")).field(part)])


def _from_lines(lines: Column, encoding: Encoding) -> dict[str, Column]:
    """Of lines of JSON."""
    as_json = encoding.decoding.value == JSON
    found = parsed_lines(lines, encoding)
    for part, format in (("key", encoding.decoding.key), ("value", encoding.decoding.value)):
        if part in found and format == BYTES:
            found[part] = from_base64(found[part])
    if as_json:
        found["value"] = json_values(lines, encoding)
    return found


def _named(rows: pa.Table, encoding: Encoding) -> pa.Table:
    """With names of columns. Without a header they stand in the order in which they were written."""
    if encoding.output.csv.header:
        return rows
    own = {"Kafka": (*KAFKA_FIELDS, "value"), "Quix": ("_timestamp", "_key", "_value")}
    return rows.rename_columns(list(own.get(encoding.shape.meta, ("value",))))


def _from_text(rows: pa.Table, encoding: Encoding) -> dict[str, Column]:
    """Of Csv, where all columns are text. It has no envelope."""
    meta = encoding.shape.meta
    found = {part: _whole(rows.column(NAMES[meta][part])) for part in stored_parts(encoding)}
    found["value"] = _whole(rows.column("_value" if meta == "Quix" else "value"))
    if "timestamp" in found:
        times = found["timestamp"]
        found["timestamp"] = _millis(times if meta == "Quix" else times.cast(pa.timestamp("ms", "UTC")))
    if "headers" in found:
        kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
        found["headers"] = _decoded_headers(_parsed(found["headers"], kind))
    for part, format in (("key", encoding.decoding.key), ("value", encoding.decoding.value)):
        if part in found and format == BYTES:
            found[part] = from_base64(found[part])
    return found


def _parsed(texts: Column, kind: pa.DataType) -> Column:
    """JSON texts as values of a type."""
    lines = pc.binary_join_element_wise('{"v":', texts, "}", "")
    return parse_lines(lines, pa.schema([("v", kind)])).column("v")


def _decoded_headers(lists: Column) -> Column:
    items = lists.values
    values = from_base64(items.field("value"))
    structs = pa.StructArray.from_arrays([items.field("key"), values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(lists.offsets, structs, type=HEADERS)


def _millis(times: Column) -> Column:
    if pa.types.is_timestamp(times.type):
        return times.cast(pa.timestamp("ms", times.type.tz)).cast(pa.int64())
    return times.cast(pa.int64())


def _whole(column: pa.ChunkedArray) -> Column:
    """In one piece, without an offset."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
