"""The rows in an object, the rows that Kafka's records should give, and the difference."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from s3sink_job.base.errors import S3SinkError
from s3sink_job.columns.cast import Inexact
from s3sink_job.columns.known_columns import known_from_text
from s3sink_job.columns.nested import any_leaf, with_leaves
from s3sink_job.columns.text import number_text
from s3sink_job.decode.batch_parts import in_parts
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.row_buffer import RowBuffer
from s3sink_job.shape.settings import RowKind
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.encoding import Encoding


class UnreadableObject(S3SinkError):
    """The bytes of an object are not of its format or codec."""


class UnreadableRecords(S3SinkError):
    """The schemas of Kafka's records are not there any more."""


SCHEMA_FAULTS = frozenset({"UnknownSchemaId", "WrongSchemaType", "InvalidSchema"})


def read_rows(bucket: Bucket, entry: ObjectEntry, encoding: Encoding) -> pa.Table | None:
    """The rows of an object, None if it is not there. Lines are rows of one column."""
    found = bucket.get(entry.key)
    if found is None:
        return None
    try:
        return encoding.format.read(found[0], encoding.output)
    except Exception as error:
        output = encoding.output
        raise UnreadableObject(
            f"{entry.key}: cannot be read as {output.format} with codec {output.codec}: {error}"
        ) from error


def expected_rows(
    found: pa.Table,
    batches: list[pa.RecordBatch],
    encoding: Encoding,
    entry: ObjectEntry,
    schema: str = "",
    access: SchemaAccess = NO_ACCESS,
) -> pa.Table:
    """Kafka's records as rows of the object's schema. Records that do not fit it stay as they are."""
    encoding = encoding.taking_any_change.without_filter
    builder = encoding.row_builder(entry.topic, entry.generation, access=access)
    known = known_from_text(schema) if schema else builder.known_from(found.schema)
    builder = encoding.row_builder(entry.topic, entry.generation, known, access)
    buffer = RowBuffer()
    for built in (built for batch in batches for built in in_parts(batch, builder.build)):
        if missing := next((bad for bad in built.bad if bad.reason in SCHEMA_FAULTS), None):
            raise UnreadableRecords(f"{entry.key}: not compared, because its records cannot be read: {missing.message}")
        buffer.add(built.rows)
    rows = buffer.take()
    if _rewritten(encoding):
        return comparable_lines(rows, encoding)
    try:
        return encoding.format.comparable(rows, encoding.output, found.schema)
    except (Inexact, TypeError):
        return rows


def comparable_lines(rows: pa.Table, encoding: Encoding) -> pa.Table:
    """Lines that a transform made in one form: their order of fields depends on the records before."""
    if not _rewritten(encoding):
        return rows
    lines = [json.dumps(json.loads(line), sort_keys=True) for line in rows.column("line").to_pylist()]
    return pa.table({"line": pa.array(lines, pa.string())})


def _rewritten(encoding: Encoding) -> bool:
    """Whether lines of JSON are not those of the records, but made by the transform."""
    changes = encoding.transform is not None and encoding.transform.transform.changes_values
    return changes and encoding.format.rows is RowKind.JSON_LINES


@dataclass(frozen=True)
class Difference:
    missing: int
    unexpected: int
    in_order: bool

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or not self.in_order)


def difference(wanted: pa.Table, found: pa.Table) -> Difference:
    want, have = ([repr(_canonical(row)) for row in _as_numbers(table).to_pylist()] for table in (wanted, found))
    missing, unexpected = Counter(want) - Counter(have), Counter(have) - Counter(want)
    return Difference(missing.total(), unexpected.total(), want == have)


def _as_numbers(table: pa.Table) -> pa.Table:
    """Dates and times as numbers: Python has no years beyond 9999, and no nanoseconds."""
    columns = [
        pa.chunked_array([with_leaves(chunk, pa.types.is_temporal, _as_number) for chunk in column.chunks])
        if column.num_chunks and any_leaf(column.type, pa.types.is_temporal)
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, table.schema.names)


def _as_number(column: pa.Array) -> pa.Array:
    small = pa.types.is_date32(column.type) or pa.types.is_time32(column.type)
    return column.cast(pa.int32() if small else pa.int64())


def _canonical(value: Any) -> Any:
    """Nested values that became text compare without the order of their fields and without null fields.

    A number that was a double before it became text has lost the digits that no double holds.
    """
    match value:
        case dict():
            return {name: _canonical(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_canonical(item) for item in value]
        case str() if value[:1] and value[:1] in "{[-0123456789":
            try:
                return json.dumps(
                    _without_nulls(json.loads(value, parse_float=_as_double_text, parse_int=str)), sort_keys=True
                )
            except (ValueError, ArithmeticError, RecursionError):
                return value
        case _:
            return value


def _as_double_text(text: str) -> str:
    """The number as it is, or the text of the nearest double if no double holds it."""
    number = float(text)
    short = number_text(number) if math.isfinite(number) else text
    return text if Decimal(short) == Decimal(text) else short


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
