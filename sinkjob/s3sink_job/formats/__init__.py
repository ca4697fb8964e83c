"""Rows to bytes: one module per output format behind one small protocol, compression beneath it."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from s3sink_job.encoding import Encoding
from s3sink_job.formats.avro import AvroObject
from s3sink_job.formats.compression import ByteSink, compressing
from s3sink_job.formats.csv import CsvObject
from s3sink_job.formats.csv import unwritable as not_for_csv
from s3sink_job.formats.lines import LineWriter
from s3sink_job.formats.orc import OrcObject
from s3sink_job.formats.orc import unwritable as not_for_orc
from s3sink_job.formats.parquet import ParquetObject
from s3sink_job.spill import Spill


class ObjectWriter(Protocol):
    """Writes the rows of one object into the sink it was opened on. Order is kept."""

    @property
    def size(self) -> int:
        """How long the object would be if it were closed now: exact after `settle`, an estimate otherwise."""
        ...

    @property
    def held(self) -> int:
        """Bytes of rows kept in memory until they are encoded."""
        ...

    def takes(self, rows: pa.RecordBatch) -> bool:
        """Whether the rows may be written: not if they need a schema wider than the one that was already encoded."""
        ...

    def write(self, rows: pa.RecordBatch) -> None: ...

    def settle(self) -> None:
        """Encodes all that is held. It costs a little of the compression: do it seldom."""
        ...

    def close(self) -> tuple[tuple[str, ...], ...]:
        """Ends the object. The columns, as paths, that had to be written as text after all."""
        ...

    def abandon(self) -> None:
        """Gives back what it holds outside of memory."""
        ...


def open_object(encoding: Encoding, sink: ByteSink, spill: Spill) -> ObjectWriter:
    match encoding.format:
        case "Json" | "Text":
            return LineWriter(compressing(sink, encoding.codec, encoding.level))
        case "Parquet":
            return ParquetObject(encoding, sink, spill)
        case "Csv":
            return CsvObject(encoding, sink)
        case "Avro":
            return AvroObject(encoding, sink)
        case "Orc":
            return OrcObject(encoding, sink)
        case other:
            raise ValueError(f"no writer for format {other}")


def unwritable(rows: pa.RecordBatch, encoding: Encoding) -> dict[int, str]:
    """The rows that the format cannot hold as it was asked for, with why. A caller leaves them out."""
    match encoding.format:
        case "Csv":
            return not_for_csv(rows, encoding)
        case "Orc":
            return not_for_orc(rows)
        case _:
            return {}


__all__ = ["ByteSink", "ObjectWriter", "open_object", "unwritable"]
