"""Avro object container files. Whole columns become datums at once; the container around them is written here."""

from __future__ import annotations

import bz2
import io
import json
import os
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyruhvro
import zstandard

from s3sink_job.encoding import Encoding
from s3sink_job.formats.avronames import avro_name
from s3sink_job.formats.compression import DEFAULTS, ByteSink, xz
from s3sink_job.formats.pending import FixedObject

ENOUGH = 16 * 2**20
BLOCK_BYTES = 256 * 2**10
"""Of datums in a block, before it is compressed; a larger datum has a block of its own."""
CODECS = {
    "None": "null",
    "Snappy": "snappy",
    "Zstd": "zstandard",
    "Bzip2": "bzip2",
    "Deflate": "deflate",
    "Xz": "xz",
}
MAGIC = b"Obj\x01"
SYNC_BYTES = 16
HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "org.apache.avro.file.Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": len(MAGIC)}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": SYNC_BYTES}},
        ],
    }
)
PANIC = "PanicException"
NAMESPACE = "s3sink"
SOURCE_NAME = "sourceName"
"""The property of a field that keeps its name where Avro does not allow it."""
SIMPLE = {pa.bool_(): "boolean", pa.int32(): "int", pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}
TIME = pa.timestamp("ms", "UTC")
AVRO_TIME = {"type": "long", "logicalType": "timestamp-millis"}


class AvroObject(FixedObject):
    def __init__(self, encoding: Encoding, sink: ByteSink) -> None:
        super().__init__(lambda record: AvroEncoder(encoding, sink, record), ENOUGH)


class AvroEncoder:
    held = 0

    def __init__(self, encoding: Encoding, sink: ByteSink, record: pa.StructType) -> None:
        self._sink = sink
        self._compress = _compressor(encoding.codec, encoding.level)
        self._sync = os.urandom(SYNC_BYTES)
        schema = avro_schema(record)
        self._serialize = Serializer(record, schema)
        self.size = 0
        self._emit(header(schema, CODECS[encoding.codec], self._sync))

    def write(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            if batch.num_rows:
                self._write(batch)

    def settle(self) -> None:
        return

    def close(self) -> None:
        return

    def _write(self, batch: pa.RecordBatch) -> None:
        # The serializer fails on a part of a column that has structs in structs.
        whole = [pa.concat_arrays([c]) if pa.types.is_nested(c.type) else c for c in batch.columns]
        for datums in self._serialize(pa.RecordBatch.from_arrays(whole, schema=batch.schema)):
            for first, last, data in _blocks(datums):
                packed = self._compress(data)
                self._emit(b"".join((long(last - first), long(len(packed)), packed, self._sync)))

    def _emit(self, data: bytes) -> None:
        self._sink.write(data)
        self.size += len(data)


class Serializer:
    """Rows as datums: all at once, or one by one where the library that does so gives up."""

    def __init__(self, record: pa.StructType, schema: dict[str, Any]) -> None:
        # It knows no bytes. Text is written just as they are, so it is told that they are text.
        self._named = encodable(record, pa.binary(), pa.string())
        self._text = json.dumps(replaced(schema, "bytes", "string"))
        self._record, self._schema = record, fastavro.parse_schema(schema)

    def __call__(self, rows: pa.RecordBatch) -> list[pa.Array]:
        try:
            found: list[pa.Array] = pyruhvro.serialize_record_batch(_viewed(rows, self._named), self._text, 1)
        except BaseException as error:
            # A panic in Rust is no `Exception`, and its class is in no module.
            if type(error).__name__ != PANIC:
                raise
            return [self._one_by_one(rows)]
        return found

    def _one_by_one(self, rows: pa.RecordBatch) -> pa.Array:
        """Times stay numbers: Python's have no years beyond 9999."""
        datums = []
        for row in _viewed(rows, encodable(self._record, TIME, pa.int64())).to_pylist():
            out = io.BytesIO()
            fastavro.schemaless_writer(out, self._schema, row)
            datums.append(out.getvalue())
        return pa.array(datums, pa.binary())


def _viewed(rows: pa.RecordBatch, record: pa.StructType) -> pa.RecordBatch:
    """The same memory under other names and types."""
    columns = [column.view(field.type) for column, field in zip(rows.columns, record, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(record)))


def avro_schema(record: pa.StructType) -> dict[str, Any]:
    return _record_schema(record, (NAMESPACE,))


def _record_schema(record: pa.StructType, path: tuple[str, ...]) -> dict[str, Any]:
    """Each nested record has the path to it as its namespace, so that no two share a name."""
    return {
        "type": "record",
        "name": "Row",
        "namespace": ".".join(path),
        "fields": [_field_schema(field, path) for field in record],
    }


def _field_schema(field: pa.Field, path: tuple[str, ...]) -> dict[str, Any]:
    name = avro_name(field.name)
    known = {} if name == field.name else {SOURCE_NAME: field.name}
    return {"name": name, "type": _nullable(field.type, (*path, name)), "default": None, **known}


def _nullable(kind: pa.DataType, path: tuple[str, ...]) -> list[Any]:
    return ["null", _schema_of(kind, path)]


def _schema_of(kind: pa.DataType, path: tuple[str, ...]) -> Any:
    if pa.types.is_struct(kind):
        return _record_schema(kind, path)
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_type, path)}
    if pa.types.is_binary(kind):
        return "bytes"
    return AVRO_TIME if kind.equals(TIME) else SIMPLE[kind]


def replaced(schema: Any, kind: Any, other: Any) -> Any:
    """The schema with another type in place of one."""
    if schema == kind:
        return other
    if isinstance(schema, dict):
        inner = {key: replaced(schema[key], kind, other) for key in ("type", "items", "fields") if key in schema}
        return {**schema, **inner}
    return [replaced(part, kind, other) for part in schema] if isinstance(schema, list) else schema


def encodable(kind: pa.DataType, instead_of: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The same columns by their Avro names, and with another type in place of one."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(avro_name(f.name), encodable(f.type, instead_of, other)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(encodable(kind.value_type, instead_of, other))
    return other if kind.equals(instead_of) else kind


def header(schema: dict[str, Any], codec: str, sync: bytes) -> bytes:
    meta = {"avro.schema": json.dumps(schema, ensure_ascii=False).encode(), "avro.codec": codec.encode()}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, HEADER, {"magic": MAGIC, "meta": meta, "sync": sync})
    return out.getvalue()


def long(number: int) -> bytes:
    """A length or a count, as Avro writes whole numbers."""
    left, out = number << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _blocks(datums: pa.Array) -> list[tuple[int, int, memoryview]]:
    """First and last row of each block, and its bytes: datums lie in memory one behind the other."""
    ends = np.frombuffer(datums.buffers()[1], np.int32)[datums.offset : datums.offset + len(datums) + 1]
    data = memoryview(datums.buffers()[2])
    marks = np.arange(int(ends[0]) + BLOCK_BYTES, int(ends[-1]), BLOCK_BYTES)
    cuts = sorted({0, *np.searchsorted(ends, marks).tolist(), len(datums)})
    return [(first, last, data[ends[first] : ends[last]]) for first, last in pairwise(cuts)]


def _compressor(codec: str, level: int | None) -> Callable[[memoryview], bytes]:
    level = DEFAULTS.get(codec, 0) if level is None else level
    match codec:
        case "None":
            return bytes
        case "Snappy":
            snappy = pa.Codec("snappy")
            return lambda data: snappy.compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")
        case "Zstd":
            return zstandard.ZstdCompressor(level=level).compress
        case "Bzip2":
            return lambda data: bz2.compress(data, level)
        case "Deflate":
            return lambda data: zlib.compress(data, level, wbits=-zlib.MAX_WBITS)
        case "Xz":
            return lambda data: xz(bytes(data), level)
        case other:
            raise ValueError(f"no compressor for codec {other}")
