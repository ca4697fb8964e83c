"""A batch of Kafka records as rows for a format, and the records that cannot be rows.

Formats of lines take one column `line`, Bytes takes one column `value`, the others take columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import WITH_COLUMNS, Encoding
from s3sink_job.records.lines import json_lines, text_lines
from s3sink_job.records.origin import Origin
from s3sink_job.records.tables import META_FIELDS, VALUE, ColumnDecoder
from s3sink_job.records.text import NONE_BAD, Column, Decoded


class Decoder(Protocol):
    """Of one slice. `schema` is what it knows of the values' columns, as text; nothing where there are none."""

    def decode(self, batch: pa.RecordBatch) -> Decoded: ...

    @property
    def schema(self) -> str: ...

    def as_text(self, path: tuple[str, ...]) -> None:
        """A column that the format had to write as text, and that will be text from now on."""
        ...


def open_decoder(encoding: Encoding, topic: str, schema: str = "", *, generation: int = 1) -> Decoder:
    origin = Origin(topic, generation)
    if encoding.format in WITH_COLUMNS:
        return ColumnDecoder(encoding, origin, schema)
    return BytesDecoder() if encoding.format == "Bytes" else LineDecoder(encoding, origin)


def null_rows(batch: pa.RecordBatch) -> Column:
    """Which records are tombstones: those without a value, not those whose value is JSON's `null`."""
    return pc.is_null(batch.column("value"))


@dataclass
class LineDecoder:
    encoding: Encoding
    origin: Origin
    schema: str = ""

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        if self.encoding.format == "Text":
            line, bad = text_lines(batch, self.encoding)
        else:
            line, bad = json_lines(batch, self.encoding, self.origin)
        return Decoded(pa.RecordBatch.from_arrays([line.cast(pa.binary())], ["line"]), bad)

    def as_text(self, path: tuple[str, ...]) -> None:
        raise TypeError("lines have no columns")


@dataclass
class BytesDecoder:
    """Values as they are, whatever their format: no record is bad. A tombstone has no bytes."""

    schema: str = ""

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        value = pc.fill_null(batch.column("value").cast(pa.binary()), b"")
        return Decoded(pa.RecordBatch.from_arrays([value], [VALUE]), NONE_BAD)

    def as_text(self, path: tuple[str, ...]) -> None:
        raise TypeError("bytes have no columns")


__all__ = ["META_FIELDS", "Decoder", "null_rows", "open_decoder"]
