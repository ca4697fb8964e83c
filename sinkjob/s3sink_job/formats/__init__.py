"""Rows to bytes: one module per output format behind one small protocol, compression beneath it."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from s3sink_job.encoding import Encoding
from s3sink_job.formats.compression import ByteSink, compressing
from s3sink_job.formats.lines import LineWriter


class ObjectWriter(Protocol):
    """Writes the rows of one object into the sink it was opened on. Order is kept."""

    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def open_object(encoding: Encoding, sink: ByteSink) -> ObjectWriter:
    match encoding.format:
        case "Json" | "Text":
            return LineWriter(compressing(sink, encoding.codec, encoding.level))
        case other:
            raise ValueError(f"no writer for format {other}")


__all__ = ["ByteSink", "ObjectWriter", "open_object"]
