"""Output format Csv. All columns are text: structs, lists and maps as JSON, bytes as base64, times by ISO 8601.

Null is an empty field, and `""` is empty text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from s3sink_job.base.spill import Spill
from s3sink_job.columns.nested import rows_where
from s3sink_job.columns.text import text_of
from s3sink_job.columns.time_text import beyond_years
from s3sink_job.columns.types import Column, holds_something
from s3sink_job.decode.bad_records import Fault, faults_at
from s3sink_job.formats.compression import ByteSink, compressing, decompress
from s3sink_job.formats.line_writer import LineWriter
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.row_buffer import FixedSchemaObject
from s3sink_job.formats.settings import CsvOptions, Output
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes
from s3sink_job.shape.settings import RowKind

ENOUGH = 16 * 2**20
SAMPLE = 1_000
QUOTED_EMPTY = '""'
OWN_MARKS = frozenset("+-.:/=")
"""Characters of numbers, times and base64, beside letters and digits."""
BEYOND_TIME = "holds a time beyond the years 1 to 9999, which CSV has no text for"
SPECIAL_NAME = "has a name that holds the delimiter, a quote or a line break: use csv.quote Minimal"
SPECIAL_VALUE = "holds the delimiter, a quote or a line break: use csv.quote Minimal"
ONLY_ONE = "the only one, and readers skip empty lines: use csv.quote Minimal"


class CsvFormat(OutputFormat):
    name = "Csv"
    extension = ".csv"
    content_type = "text/csv; charset=utf-8"
    rows = RowKind.TEXT_COLUMNS

    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        return CsvObject(output, sink)

    def read(self, data: bytes, output: Output) -> pa.Table:
        return read_csv(decompress(data, output.codec), output.csv)

    def unwritable(self, rows: pa.RecordBatch, output: Output) -> dict[int, Fault]:
        return unwritable(rows, output.csv)

    def comparable(self, rows: pa.Table, output: Output, found: pa.Schema) -> pa.Table:
        return comparable(rows, output.csv, found)


class CsvObject(FixedSchemaObject):
    def __init__(self, output: Output, sink: ByteSink) -> None:
        super().__init__(lambda record: CsvEncoder(output, sink, record), ENOUGH)
        self._options = output.csv

    def takes(self, rows: pa.RecordBatch) -> bool:
        return super().takes(_nameable(rows, self._options))

    def write(self, rows: pa.RecordBatch) -> None:
        super().write(_nameable(rows, self._options))

    def expected(self, rows: pa.RecordBatch) -> float:
        """Numbers are longer as text than in memory."""
        some = rows.slice(0, SAMPLE)
        text = sum(pc.sum(pc.binary_length(text_of(column))).as_py() or 0 for column in some.columns)
        return float((text + some.num_columns * some.num_rows) / max(1, some.nbytes))


class CsvEncoder:
    def __init__(self, output: Output, sink: ByteSink, record: pa.StructType) -> None:
        self._options = output.csv
        self._lines = LineWriter(compressing(sink, output.codec, output.level))
        if self._options.header:
            names = [_field(pa.array([field.name]), self._options, pa.string()) for field in record]
            self._write(_joined(names, self._options.delimiter))

    @property
    def size(self) -> int:
        return self._lines.size

    @property
    def held(self) -> int:
        return self._lines.held

    def write(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            fields = [_field(text_of(column), self._options, column.type) for column in batch.columns]
            if len(fields) == 1 and self._options.quote != "None":
                # Readers skip an empty line.
                fields = [pc.if_else(pc.equal(fields[0], ""), QUOTED_EMPTY, fields[0])]
            self._write(_joined(fields, self._options.delimiter))

    def settle(self) -> None:
        self._lines.settle()

    def close(self) -> None:
        self._lines.close()

    def _write(self, lines: Column) -> None:
        self._lines.write(pa.RecordBatch.from_arrays([lines.cast(pa.binary())], ["line"]))


def unwritable(rows: pa.RecordBatch, options: CsvOptions) -> dict[int, Fault]:
    found: dict[int, Fault] = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for row in rows_where(column, _has_year, beyond_years):
            found.setdefault(row, Fault("TimeOutOfRange", f"column {name!r} {BEYOND_TIME}"))
    if options.quote != "None":
        return found
    held = [field.name for field in rows.schema if holds_something(field.type)]
    for name in held:
        column, text = rows.column(name), text_of(rows.column(name))
        if options.header and _special(name, options.delimiter):
            found |= faults_at(_indices(column.is_valid()), "NeedsQuotes", f"column {name!r} {SPECIAL_NAME}")
        elif _may_be_special(column.type, options.delimiter):
            marked = pc.fill_null(pc.match_substring_regex(text, _marks(options.delimiter)), False)
            found |= faults_at(_indices(marked), "NeedsQuotes", f"column {name!r} {SPECIAL_VALUE}")
    kept = [name for name in _nameable(rows, options).schema.names if name in held]
    return found | _empty_lines(rows, kept, options)


def _empty_lines(rows: pa.RecordBatch, kept: list[str], options: CsvOptions) -> dict[int, Fault]:
    """The rows of an only column that would be empty lines, or have an empty line as header."""
    if len(kept) > 1:
        return {}
    name = kept[0] if kept else ""
    if options.header and kept == [""]:
        return faults_at(range(rows.num_rows), "EmptyLine", f"column '' has no name and is {ONLY_ONE}")
    column = text_of(rows.column(name)) if kept else pa.nulls(rows.num_rows, pa.string())
    empty = pc.equal(pc.fill_null(column, ""), "")
    return faults_at(_indices(empty), "EmptyLine", f"column {name!r} is empty and {ONLY_ONE}")


def _nameable(rows: pa.RecordBatch, options: CsvOptions) -> pa.RecordBatch:
    """Without the columns that a header cannot name: `unwritable` has refused every row with a value in them."""
    if options.quote != "None" or not options.header:
        return rows
    kept = [name for name in rows.schema.names if not _special(name, options.delimiter)]
    return rows if len(kept) == rows.num_columns else rows.select(kept)


def _field(text: Column, options: CsvOptions, kind: pa.DataType) -> Column:
    match options.quote:
        case "All":
            text = _in_quotes(text)
        case "Minimal" if _may_be_special(kind, options.delimiter):
            special = pc.match_substring_regex(text, _marks(options.delimiter))
            if pc.any(special).as_py():
                text = pc.if_else(special, _in_quotes(text), text)
            text = pc.if_else(pc.equal(text, ""), QUOTED_EMPTY, text)
    return pc.fill_null(text, "")


def _in_quotes(text: Column) -> Column:
    return pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")


def _joined(fields: Iterable[Column], delimiter: str) -> Column:
    return pc.binary_join_element_wise(*fields, delimiter)


def _may_be_special(kind: pa.DataType, delimiter: str) -> bool:
    """Whether its text may need quotes, or be empty."""
    plain = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    return not plain or delimiter.isalnum() or delimiter in OWN_MARKS


def _marks(delimiter: str) -> str:
    return f'["\\r\\n]|{re.escape(delimiter)}'


def _special(name: str, delimiter: str) -> bool:
    return bool(re.search(_marks(delimiter), name))


def _has_year(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _indices(mask: Column) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found


def comparable(table: pa.Table, options: CsvOptions, found: pa.Schema) -> pa.Table:
    texts = {
        name: pa.chunked_array([text_of(chunk) for chunk in column.chunks], pa.string())
        for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    if not options.header and len(texts) == len(found):
        texts = dict(zip(found.names, texts.values(), strict=True))
    nothing = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    more = [name for name, column in texts.items() if name not in found.names and column.null_count < len(column)]
    columns = {name: texts.get(name, nothing) for name in (*found.names, *more)}
    return pa.table({name: _emptied(column, options, len(columns)) for name, column in columns.items()})


def _emptied(column: pa.ChunkedArray, options: CsvOptions, columns: int) -> pa.ChunkedArray:
    """The column as it is read where null and empty text are the same in the file."""
    if options.quote == "None":
        return pa.chunked_array([pc.if_else(pc.equal(column, ""), None, column)], pa.string())
    return column.fill_null("") if columns == 1 else column


def read_csv(content: bytes, options: CsvOptions) -> pa.Table:
    if not options.delimiter.isascii():
        return _read_field_by_field(content.decode(), options)
    quotes = options.quote != "None"
    return pv.read_csv(
        pa.BufferReader(content),
        pv.ReadOptions(
            use_threads=False, block_size=max(len(content), 1), autogenerate_column_names=not options.header
        ),
        pv.ParseOptions(
            delimiter=options.delimiter,
            quote_char='"' if quotes else False,
            newlines_in_values=quotes,
            ignore_empty_lines=False,
        ),
        pv.ConvertOptions(
            default_column_type=pa.string(),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _read_field_by_field(content: str, options: CsvOptions) -> pa.Table:
    """For delimiters that Arrow's reader does not accept."""
    mark = re.escape(options.delimiter)
    field = re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^{mark}\n]*))({mark}|\n)')
    rows: list[list[str | None]] = [[]]
    for quoted, plain, end in (found.groups() for found in field.finditer(content)):
        rows[-1].append((plain or None) if quoted is None else quoted.replace('""', '"'))
        if end == "\n":
            rows.append([])
    rows.pop()
    names = [name or "" for name in rows.pop(0)] if options.header else [f"f{n}" for n in range(len(rows[0]))]
    return pa.Table.from_arrays([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names)
