"""Builds the rows of one slice for its output format: decode, then shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns, join_known, split_known
from s3sink_job.columns.sources import NO_SOURCES, Sources
from s3sink_job.columns.types import Path
from s3sink_job.decode.bad_records import NO_FAULTS, BadRecords, Faults, Stage
from s3sink_job.decode.decoder import DecodedBatch, Decoder
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.decode.settings import Decoding
from s3sink_job.decode.writer_schemas import SourceSchema
from s3sink_job.shape.columns import KEY, VALUE, ColumnShaper, columns_within, key_columns, value_columns
from s3sink_job.shape.lines import JsonLineShaper, text_lines
from s3sink_job.shape.origin import Origin
from s3sink_job.shape.settings import RowKind, Shape
from s3sink_job.shape.values import raw_values


@dataclass(frozen=True)
class BuiltRows:
    """`rows` has as many rows as the batch; bad ones hold nothing of use."""

    rows: pa.RecordBatch
    decoded: DecodedBatch

    @property
    def bad(self) -> BadRecords:
        return self.decoded.bad


class RowBuilder:
    def __init__(
        self,
        decoding: Decoding,
        shape: Shape,
        kind: RowKind,
        origin: Origin,
        known: KnownColumns | None = None,
        access: SchemaAccess = NO_ACCESS,
    ) -> None:
        """`known` are the columns that earlier slices found in the values."""
        known_values, known_keys = (None, None) if known is None else split_known(known)
        of_keys = (known_keys or NO_COLUMNS) if kind.has_columns and shape.spreads_keys else None
        self._decoder = Decoder(decoding, known_values, access, of_keys)
        self._shape, self._typed = shape, decoding.typed
        self._spreads = kind.has_columns and shape.spreads_values and self._decoder.value.has_fields
        self._spreads_keys = of_keys is not None and self._decoder.key.has_fields
        self._rows_of = _shaper(shape, kind, origin)

    def build(self, batch: pa.RecordBatch, refused: Faults = NO_FAULTS) -> BuiltRows:
        """The one place where decoded records pass on to get their shape. `refused` are records that are bad already.

        A transform of records (SQL) belongs here: it takes a `DecodedBatch` and returns one.
        """
        decoded = self._decoder.decode(batch)
        decoded.bad.add(Stage.SHAPE, refused)
        return BuiltRows(self._rows_of(decoded), decoded)

    @property
    def schema(self) -> KnownColumns | None:
        """The columns of values and keys known so far; None where they are not inferred."""
        values = self._decoder.value.schema if self._spreads else None
        return join_known(values, self._decoder.key.schema) if self._spreads_keys else values

    def known_from(self, schema: pa.Schema) -> KnownColumns | None:
        """The columns of values and keys in an object with this schema; None where they are not inferred."""
        if self._typed:
            return None
        found = value_columns(schema, self._shape) if self._spreads else None
        keys = key_columns(schema, self._shape) if self._spreads_keys else None
        values = None if found is None else KnownColumns(found)
        return values if keys is None else join_known(values, KnownColumns(keys))

    def row_sources(self) -> Sources:
        """What the values' schemas say about the columns so far, by path among the rows."""
        known = self.schema
        if known is None or not self._shape.envelope:
            return NO_SOURCES if known is None else known.sources
        values, keys = split_known(known)
        parts = [(VALUE, values), *([] if keys is None else [(KEY, keys)])]
        return {(part, *path): records for part, own in parts for path, records in own.sources.items()}

    def source_schema(self, number: int) -> SourceSchema:
        """The schema that values with this number were written with: see `DecodedBatch.schema_numbers`."""
        return self._decoder.typed_value.source_schema(number)

    def columns_of(self, number: int, schema: pa.Schema) -> pa.StructType:
        """The columns of rows with `schema` that a value with this schema number can have a value in."""
        own = self._decoder.typed_value.columns_of(number) if self._spreads else None
        return pa.struct(list(schema)) if own is None else columns_within(schema, self._shape, own)

    def widen_to_text(self, path: Path) -> None:
        """Makes a column of the rows text from now on, because the format had to write it so."""
        if self._shape.envelope:
            self._decoder.of(path[0]).widen_to_text(path[1:])
        else:
            self._decoder.value.widen_to_text(path)


def _shaper(shape: Shape, kind: RowKind, origin: Origin) -> Callable[[DecodedBatch], pa.RecordBatch]:
    match kind:
        case RowKind.COLUMNS | RowKind.TEXT_COLUMNS:
            return ColumnShaper(shape, origin, typed=kind is RowKind.COLUMNS)
        case RowKind.JSON_LINES:
            return JsonLineShaper(shape, origin)
        case RowKind.TEXT_LINES:
            return text_lines
        case RowKind.VALUES:
            return raw_values
