"""Objects read back, and Kafka's rows in the shape of what was read: for those who check what was written."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from pyarrow import orc

from s3sink_job.encoding import Encoding
from s3sink_job.formats.avro import AVRO_TIME, HEADER, SIMPLE, SOURCE_NAME, TIME, replaced
from s3sink_job.formats.compression import decompress
from s3sink_job.formats.orc import find_time_zones, told_times
from s3sink_job.formats.pending import common_record, exactly
from s3sink_job.schema.text import text_of
from s3sink_job.schema.types import NULL

FROM_AVRO = {name: kind for kind, name in SIMPLE.items()}


def read_back(data: bytes, encoding: Encoding) -> pa.Table:
    """The rows of an object. Lines are one column `line`; the columns of CSV are text."""
    match encoding.format:
        case "Parquet":
            return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        case "Avro":
            return _read_avro(data)
        case "Orc":
            return _read_orc(data)
        case "Csv":
            return _read_csv(decompress(data, encoding.codec), encoding)
        case _:
            content = decompress(data, encoding.codec)
            lines = content.split(b"\n")
            return pa.table({"line": pa.array(lines[:-1] if content.endswith(b"\n") else lines, pa.binary())})


def comparable(rows: pa.RecordBatch | pa.Table, encoding: Encoding, found: pa.Schema) -> pa.Table:
    """The rows as they should have been read. Where they hold more than that, they show it: one is not the other.

    Raises `Inexact` or `TypeError` for values that the columns found cannot hold.
    """
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    if encoding.format == "Csv":
        return _comparable_csv(table, encoding, found)
    if encoding.format == "Orc" and table.num_columns:
        told = [told_times(pa.concat_arrays(column.chunks)) for column in table.combine_chunks().columns]
        table = pa.Table.from_arrays(told, schema=table.schema)
    held = _holding(table)
    record = pa.struct(list(found))
    wider = common_record([record, held])
    batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    return exactly(batches, record if wider.equals(record) else wider)


def _comparable_csv(table: pa.Table, encoding: Encoding, found: pa.Schema) -> pa.Table:
    texts = {
        name: pa.chunked_array([text_of(chunk) for chunk in column.chunks], pa.string())
        for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    if not encoding.header and len(texts) == len(found):
        texts = dict(zip(found.names, texts.values(), strict=True))
    nothing = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    more = [name for name, column in texts.items() if name not in found.names and column.null_count < len(column)]
    columns = {name: texts.get(name, nothing) for name in (*found.names, *more)}
    return pa.table({name: _emptied(column, encoding, len(columns)) for name, column in columns.items()})


def _emptied(column: pa.ChunkedArray, encoding: Encoding, columns: int) -> pa.ChunkedArray:
    """As it reads where the file cannot tell null and empty text apart."""
    if encoding.quote == "None":
        return pa.chunked_array([pc.if_else(pc.equal(column, ""), None, column)], pa.string())
    return column.fill_null("") if columns == 1 else column


def _holding(table: pa.Table) -> pa.StructType:
    """The type of the rows, without the fields that none of them has a value in."""
    names, columns = table.schema.names, table.combine_chunks().columns
    return pa.struct([(name, _type_held(pa.concat_arrays(c.chunks))) for name, c in zip(names, columns, strict=True)])


def _type_held(column: pa.Array) -> pa.DataType:
    if column.null_count == len(column):
        return NULL
    if pa.types.is_struct(column.type):
        children = zip(column.type.names, column.flatten(), strict=True)
        return pa.struct([(name, _type_held(child)) for name, child in children])
    return pa.list_(_type_held(column.flatten())) if pa.types.is_list(column.type) else column.type


def _read_csv(content: bytes, encoding: Encoding) -> pa.Table:
    if not encoding.delimiter.isascii():
        return _read_odd_csv(content.decode(), encoding)
    quotes = encoding.quote != "None"
    return pv.read_csv(
        pa.BufferReader(content),
        pv.ReadOptions(
            use_threads=False, block_size=max(len(content), 1), autogenerate_column_names=not encoding.header
        ),
        pv.ParseOptions(
            delimiter=encoding.delimiter,
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


def _read_odd_csv(content: str, encoding: Encoding) -> pa.Table:
    """With a delimiter that Arrow's reader does not take: field by field."""
    mark = re.escape(encoding.delimiter)
    field = re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^{mark}\n]*))({mark}|\n)')
    rows: list[list[str | None]] = [[]]
    for quoted, plain, end in (found.groups() for found in field.finditer(content)):
        rows[-1].append((plain or None) if quoted is None else quoted.replace('""', '"'))
        if end == "\n":
            rows.append([])
    rows.pop()
    names = [name or "" for name in rows.pop(0)] if encoding.header else [f"f{n}" for n in range(len(rows[0]))]
    return pa.Table.from_arrays([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names)


def _read_orc(data: bytes) -> pa.Table:
    find_time_zones()
    table = orc.ORCFile(pa.BufferReader(data)).read()
    return table.cast(pa.schema([pa.field(f.name, _in_millis(f.type)) for f in table.schema]))


def _in_millis(kind: pa.DataType) -> pa.DataType:
    """The reader gives nanoseconds, whatever was written."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _in_millis(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_in_millis(kind.value_type))
    return TIME if pa.types.is_timestamp(kind) else kind


def _read_avro(data: bytes) -> pa.Table:
    """Times are read as the numbers that they are: Python's have no years beyond 9999."""
    file = io.BytesIO(data)
    header: Any = fastavro.schemaless_reader(file, HEADER, None)
    schema = json.loads(header["meta"]["avro.schema"])
    header["meta"]["avro.schema"] = json.dumps(replaced(schema, AVRO_TIME, "long")).encode()
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, HEADER, header)
    plain.write(file.read())
    plain.seek(0)
    rows: list[Any] = list(fastavro.reader(plain))
    columns = [
        pa.array([row[f["name"]] for row in rows], _arrow_type(f["type"], raw=True)).view(_arrow_type(f["type"]))
        for f in schema["fields"]
    ]
    return pa.Table.from_arrays(columns, [f.get(SOURCE_NAME, f["name"]) for f in schema["fields"]])


def _arrow_type(schema: Any, *, raw: bool = False) -> pa.DataType:
    """Of what was written here; `raw` is by the names in the file, and with times as numbers."""
    if isinstance(schema, list):
        return _arrow_type(schema[1], raw=raw)
    if schema == AVRO_TIME:
        return pa.int64() if raw else TIME
    if schema == "bytes":
        return pa.binary()
    if isinstance(schema, str):
        return FROM_AVRO[schema]
    if schema["type"] == "array":
        return pa.list_(_arrow_type(schema["items"], raw=raw))
    key = "name" if raw else SOURCE_NAME
    return pa.struct([(f.get(key, f["name"]), _arrow_type(f["type"], raw=raw)) for f in schema["fields"]])
