"""CSV. What nests is JSON text, bytes are base64, times are ISO 8601; null is an empty field, and `""` empty text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import Encoding
from s3sink_job.formats.compression import ByteSink, compressing
from s3sink_job.formats.lines import LineWriter
from s3sink_job.formats.pending import FixedObject
from s3sink_job.schema.text import Column, text_of
from s3sink_job.schema.types import holds_something

ENOUGH = 16 * 2**20
SAMPLE = 1_000
QUOTED_EMPTY = '""'
OWN_MARKS = frozenset("+-.:/=")
"""What numbers, times and base64 are written with, beside letters and digits."""
FIRST_TIME, END_OF_TIME = -62_135_596_800_000, 253_402_300_800_000
"""Milliseconds: the years 1 to 9999, which ISO 8601 has four digits for."""


class CsvObject(FixedObject):
    def __init__(self, encoding: Encoding, sink: ByteSink) -> None:
        super().__init__(lambda record: CsvEncoder(encoding, sink, record), ENOUGH)
        self._encoding = encoding

    def takes(self, rows: pa.RecordBatch) -> bool:
        return super().takes(_nameable(rows, self._encoding))

    def write(self, rows: pa.RecordBatch) -> None:
        super().write(_nameable(rows, self._encoding))

    def expected(self, rows: pa.RecordBatch) -> float:
        """Numbers are longer as text than in memory."""
        some = rows.slice(0, SAMPLE)
        text = sum(pc.sum(pc.binary_length(text_of(column))).as_py() or 0 for column in some.columns)
        return float((text + some.num_columns * some.num_rows) / max(1, some.nbytes))


class CsvEncoder:
    def __init__(self, encoding: Encoding, sink: ByteSink, record: pa.StructType) -> None:
        self._encoding = encoding
        self._lines = LineWriter(compressing(sink, encoding.codec, encoding.level))
        if encoding.header:
            names = [_field(pa.array([field.name]), encoding, pa.string()) for field in record]
            self._write(_joined(names, encoding.delimiter))

    @property
    def size(self) -> int:
        return self._lines.size

    @property
    def held(self) -> int:
        return self._lines.held

    def write(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            fields = [_field(text_of(column), self._encoding, column.type) for column in batch.columns]
            if len(fields) == 1 and self._encoding.quote != "None":
                # Readers pass over an empty line.
                fields = [pc.if_else(pc.equal(fields[0], ""), QUOTED_EMPTY, fields[0])]
            self._write(_joined(fields, self._encoding.delimiter))

    def settle(self) -> None:
        self._lines.settle()

    def close(self) -> None:
        self._lines.close()

    def _write(self, lines: Column) -> None:
        self._lines.write(pa.RecordBatch.from_arrays([lines.cast(pa.binary())], ["line"]))


def unwritable(rows: pa.RecordBatch, encoding: Encoding) -> dict[int, str]:
    """The rows that CSV cannot hold as it was asked for, with why. A caller leaves them out."""
    found: dict[int, str] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for row in _indices(_beyond_time(column)):
            found.setdefault(row, f"column {name!r} holds a time beyond the years 1 to 9999, which CSV has no text for")
    if encoding.quote != "None":
        return found
    held = [field.name for field in rows.schema if holds_something(field.type)]
    for name in held:
        column, text = rows.column(name), text_of(rows.column(name))
        if encoding.header and _special(name, encoding.delimiter):
            why = "has a name that holds the delimiter, a quote or a line break: use csv.quote Minimal"
            found |= dict.fromkeys(_indices(column.is_valid()), f"column {name!r} {why}")
        elif _may_be_special(column.type, encoding.delimiter):
            why = "holds the delimiter, a quote or a line break: use csv.quote Minimal"
            marked = pc.fill_null(pc.match_substring_regex(text, _marks(encoding.delimiter)), False)
            found |= dict.fromkeys(_indices(marked), f"column {name!r} {why}")
    kept = [name for name in _nameable(rows, encoding).schema.names if name in held]
    return found | _passed_over(rows, kept, encoding)


def _passed_over(rows: pa.RecordBatch, kept: list[str], encoding: Encoding) -> dict[int, str]:
    """The rows of an only column that would be empty lines, or stand below one."""
    if len(kept) > 1:
        return {}
    name, why = kept[0] if kept else "", "the only one, and readers pass over empty lines: use csv.quote Minimal"
    if encoding.header and kept == [""]:
        return dict.fromkeys(range(rows.num_rows), f"column '' has no name and is {why}")
    column = text_of(rows.column(name)) if kept else pa.nulls(rows.num_rows, pa.string())
    empty = pc.equal(pc.fill_null(column, ""), "")
    return dict.fromkeys(_indices(empty), f"column {name!r} is empty and {why}")


def _nameable(rows: pa.RecordBatch, encoding: Encoding) -> pa.RecordBatch:
    """Without the columns that a header cannot name: `unwritable` told of every value in them."""
    if encoding.quote != "None" or not encoding.header:
        return rows
    kept = [name for name in rows.schema.names if not _special(name, encoding.delimiter)]
    return rows if len(kept) == rows.num_columns else rows.select(kept)


def _field(text: Column, encoding: Encoding, kind: pa.DataType) -> Column:
    match encoding.quote:
        case "All":
            text = _in_quotes(text)
        case "Minimal" if _may_be_special(kind, encoding.delimiter):
            special = pc.match_substring_regex(text, _marks(encoding.delimiter))
            if pc.any(special).as_py():
                text = pc.if_else(special, _in_quotes(text), text)
            text = pc.if_else(pc.equal(text, ""), QUOTED_EMPTY, text)
    return pc.fill_null(text, "")


def _in_quotes(text: Column) -> Column:
    return pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")


def _joined(fields: Iterable[Column], delimiter: str) -> Column:
    return pc.binary_join_element_wise(*fields, delimiter)


def _may_be_special(kind: pa.DataType, delimiter: str) -> bool:
    """Whether its text may hold what needs quotes, or be empty."""
    plain = pa.types.is_primitive(kind) or pa.types.is_null(kind)
    return not plain or delimiter.isalnum() or delimiter in OWN_MARKS


def _marks(delimiter: str) -> str:
    return f'["\\r\\n]|{re.escape(delimiter)}'


def _special(name: str, delimiter: str) -> bool:
    return bool(re.search(_marks(delimiter), name))


def _beyond_time(column: Column) -> Column:
    if not pa.types.is_timestamp(column.type):
        return pa.array([], pa.bool_())
    millis = column.cast(pa.int64())
    return pc.fill_null(pc.or_(pc.less(millis, FIRST_TIME), pc.greater_equal(millis, END_OF_TIME)), False)


def _indices(mask: Column) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found
