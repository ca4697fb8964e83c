"""What input formats share whose records bring a schema along: nothing is inferred, and no column becomes text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

import numpy as np
import pyarrow as pa

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.types import Column, Path, fields_with_more
from s3sink_job.decode.input_format import InputSettings
from s3sink_job.decode.record_bytes import Ints
from s3sink_job.decode.typed_columns import TypedColumns
from s3sink_job.decode.writer_schemas import SourceSchema, WriterSchema, size_of

NO_SCHEMA = -1
"""The number of rows without a schema, such as tombstones."""
MOST_TEXT = 4 * 2**20
"""Characters of schemas that a slice keeps. Of others it keeps the ids."""


class TypedInput(ABC):
    has_fields = True
    one_line = True
    must_fit = False

    def __init__(self, settings: InputSettings) -> None:
        self.part = settings.part
        self._columns = TypedColumns(settings.known, settings.evolution.mode)
        self._numbers: dict[Hashable, int] = {}
        self._sources: list[SourceSchema] = []
        self._text = 0
        self._own: list[pa.StructType | None] | None = [] if settings.evolution.on_change == "Roll" else None
        """The columns of each schema, if they are needed."""

    @property
    def schema(self) -> KnownColumns | None:
        return self._columns.known

    def widen_to_text(self, path: Path) -> None:
        raise TypeError(f"column {'.'.join(path)} has a type of its own and never becomes text")

    @abstractmethod
    def schema_numbers(self, batch: pa.RecordBatch) -> Column:
        """For each row the number of the schema that its value was written with, or `NO_SCHEMA`."""

    def unknown_fields(self, batch: pa.RecordBatch) -> int:
        """Values that were left out when the batch was decoded, because their schema has no field for them."""
        return 0

    def source_schema(self, number: int) -> SourceSchema:
        return self._sources[number]

    def columns_of(self, number: int) -> pa.StructType | None:
        """The columns that records of the schema have; None if they may have any."""
        if self._own is None:
            raise TypeError("the columns of single schemas are kept only if each has its own objects")
        return None if number == NO_SCHEMA else self._own[number]

    def _number(self, source: SourceSchema, record: pa.StructType | None) -> int:
        # One schema of Protobuf may have several messages, each with its own columns.
        key = (source.id or source.schema, record)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._text += size_of(source.schema)
            whole = self._text <= MOST_TEXT
            self._sources.append(source if whole else SourceSchema(source.id, WriterSchema(source.schema.kind, "")))
            if self._own is not None:
                self._own.append(None if record is None else fields_with_more(record))
        return self._numbers[key]


def no_schemas(size: int) -> Ints:
    return np.full(size, NO_SCHEMA, np.int64)
