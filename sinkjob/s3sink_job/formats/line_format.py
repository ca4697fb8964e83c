"""What formats of lines share: each row's bytes, then a line break."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.base.spill import Spill
from s3sink_job.formats.compression import ByteSink, compressing, decompress
from s3sink_job.formats.line_writer import LineWriter
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.settings import Output
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes


class LineFormat(OutputFormat):
    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        return LineWriter(compressing(sink, output.codec, output.level))

    def read(self, data: bytes, output: Output) -> pa.Table:
        content = decompress(data, output.codec)
        lines = content.split(b"\n")
        return pa.table({"line": pa.array(lines[:-1] if content.endswith(b"\n") else lines, pa.binary())})
