"""Output format Avro: object container files.

A library turns whole columns into datums; the container around them is written here.
"""

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

from s3sink_job.base.spill import Spill
from s3sink_job.columns.sources import NO_SOURCES, Sources
from s3sink_job.formats.avro_columns import decoded, encodable
from s3sink_job.formats.avro_schema import SOURCE_NAME, arrow_type, avro_schema, encodable_schema, plain_schema
from s3sink_job.formats.compression import DEFAULT_LEVELS, ByteSink, xz
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.row_buffer import FixedSchemaObject
from s3sink_job.formats.settings import Output
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes
from s3sink_job.shape.settings import RowKind

ENOUGH = 16 * 2**20
BLOCK_BYTES = 256 * 2**10
"""Datums in a block, before compression; a larger datum is a block by itself."""
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


class AvroFormat(OutputFormat):
    name = "Avro"
    extension = ".avro"
    content_type = "application/avro"
    rows = RowKind.COLUMNS
    compresses_within = True

    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        return FixedSchemaObject(lambda record: AvroEncoder(output, sink, record, notes.sources()), ENOUGH)

    def read(self, data: bytes, output: Output) -> pa.Table:
        return read_avro(data)


class AvroEncoder:
    held = 0

    def __init__(self, output: Output, sink: ByteSink, record: pa.StructType, sources: Sources = NO_SOURCES) -> None:
        self._sink = sink
        self._compress = _compressor(output.codec, output.level)
        self._sync = os.urandom(SYNC_BYTES)
        schema = avro_schema(record, sources)
        self._serialize = Serializer(schema)
        self.size = 0
        self._emit(header(schema, CODECS[output.codec], self._sync))

    def write(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            if batch.num_rows:
                self._write(batch)

    def settle(self) -> None:
        return

    def close(self) -> None:
        return

    def _write(self, batch: pa.RecordBatch) -> None:
        # A copy: the serializer fails on slices of columns with structs in structs.
        whole = [pa.concat_arrays([c]) if pa.types.is_nested(c.type) else c for c in batch.columns]
        for datums in self._serialize(pa.RecordBatch.from_arrays(whole, schema=batch.schema)):
            for first, last, data in _blocks(datums):
                packed = self._compress(data)
                self._emit(b"".join((long(last - first), long(len(packed)), packed, self._sync)))

    def _emit(self, data: bytes) -> None:
        self._sink.write(data)
        self.size += len(data)


class Serializer:
    """Rows as datums: all at once, or one by one where the library fails."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._text = json.dumps(encodable_schema(schema))
        self._plain = fastavro.parse_schema(plain_schema(schema))

    def __call__(self, rows: pa.RecordBatch) -> list[pa.Array]:
        taken = encodable(rows, bytes_as=pa.string(), split_fixed=True)
        try:
            found: list[pa.Array] = pyruhvro.serialize_record_batch(taken, self._text, 1)
        except BaseException as error:
            if not _is_panic(error):
                raise
            return [self._one_by_one(rows)]
        return found

    def _one_by_one(self, rows: pa.RecordBatch) -> pa.Array:
        """Times stay numbers: Python has no years beyond 9999."""
        datums = []
        taken = encodable(rows, bytes_as=pa.binary(), split_fixed=False)
        for row in taken.to_pylist(maps_as_pydicts="lossy"):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, self._plain, row)
            datums.append(out.getvalue())
        return pa.array(datums, pa.binary())


def _is_panic(error: BaseException) -> bool:
    """A panic in Rust is no `Exception`, and its class cannot be imported. In a thread it is a `ValueError`."""
    return type(error).__name__ == PANIC or (isinstance(error, ValueError) and "panicked" in str(error))


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
    """First and last row of each block, and its bytes: datums are next to each other in memory."""
    ends = np.frombuffer(datums.buffers()[1], np.int32)[datums.offset : datums.offset + len(datums) + 1]
    data = memoryview(datums.buffers()[2])
    marks = np.arange(int(ends[0]) + BLOCK_BYTES, int(ends[-1]), BLOCK_BYTES)
    cuts = sorted({0, *np.searchsorted(ends, marks).tolist(), len(datums)})
    return [(first, last, data[ends[first] : ends[last]]) for first, last in pairwise(cuts)]


def _compressor(codec: str, level: int | None) -> Callable[[memoryview], bytes]:
    level = DEFAULT_LEVELS.get(codec, 0) if level is None else level
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


def read_avro(data: bytes) -> pa.Table:
    """Times are read as numbers: Python has no years beyond 9999."""
    file = io.BytesIO(data)
    header: Any = fastavro.schemaless_reader(file, HEADER, None)
    schema = json.loads(header["meta"]["avro.schema"])
    header["meta"]["avro.schema"] = json.dumps(plain_schema(schema)).encode()
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, HEADER, header)
    plain.write(file.read())
    plain.seek(0)
    rows: list[Any] = list(fastavro.reader(plain))
    columns = [
        decoded(pa.array([row[f["name"]] for row in rows], arrow_type(f["type"], plain=True)), arrow_type(f["type"]))
        for f in schema["fields"]
    ]
    return pa.Table.from_arrays(columns, [f.get(SOURCE_NAME, f["name"]) for f in schema["fields"]])
