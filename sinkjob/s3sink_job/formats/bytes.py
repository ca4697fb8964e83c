"""Output format Bytes: an object for each record, with the bytes of its value."""

from __future__ import annotations

import io

import pyarrow as pa

from s3sink_job.base.spill import Spill
from s3sink_job.formats.compression import ByteSink, compressing, decompress
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.settings import Output
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes
from s3sink_job.shape.settings import RowKind


class BytesFormat(OutputFormat):
    name = "Bytes"
    extension = ".bin"
    content_type = "application/octet-stream"
    rows = RowKind.VALUES

    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        raise TypeError("Bytes has no object of several records: use `value_object` for each record")

    def read(self, data: bytes, output: Output) -> pa.Table:
        return pa.table({"value": pa.array([decompress(data, output.codec)], pa.binary())})


def value_object(value: bytes, output: Output) -> bytes:
    """The whole object of one record."""
    sink = io.BytesIO()
    stream = compressing(sink, output.codec, output.level)
    stream.write(value)
    stream.close()
    return sink.getvalue()
