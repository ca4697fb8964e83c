"""Builds the rows of one slice for its output format: decode, transform, then shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns, join_known, split_known
from s3sink_job.columns.sources import NO_SOURCES, Sources
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import NO_FAULTS, BadRecords, Faults, Stage
from s3sink_job.decode.decoder import DecodedBatch, Decoder
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.decode.settings import Decoding
from s3sink_job.decode.writer_schemas import SourceSchema
from s3sink_job.flush.manifest import InputTypes
from s3sink_job.shape.columns import KEY, VALUE, ColumnShaper, columns_within, key_columns, value_columns
from s3sink_job.shape.lines import JsonLineShaper, text_lines
from s3sink_job.shape.origin import Origin
from s3sink_job.shape.settings import RowKind, Shape
from s3sink_job.shape.tombstones import refused_tombstones
from s3sink_job.shape.transform_settings import TransformSettings
from s3sink_job.shape.transformer import Transformer
from s3sink_job.shape.values import raw_values


@dataclass(frozen=True)
class BuiltRows:
    """`rows` has as many rows as the batch; bad ones hold nothing of use."""

    rows: pa.RecordBatch
    decoded: DecodedBatch
    keep: Column | None = None
    """A mask of the rows of the batch that the transform kept; None for all."""

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
        transform: TransformSettings | None = None,
    ) -> None:
        """`known` are the columns that earlier slices found in the values."""
        known_values, known_keys = (None, None) if known is None else split_known(known)
        self._transformer: Transformer | None = None
        if transform is not None:
            self._transformer = Transformer(transform, origin, skip_nulls=shape.nulls == "Skip")
            if transform.inputs is not None:
                base, fields = known_values or NO_COLUMNS, self._transformer.fields
                known_values = KnownColumns(fields.with_types(base.record, transform.inputs), base.sources)
        self._changes = transform is not None and transform.transform.changes_values
        of_keys = (known_keys or NO_COLUMNS) if kind.has_columns and shape.spreads_keys else None
        self._decoder = Decoder(decoding, known_values, access, of_keys)
        self._shape, self._typed = shape, decoding.typed
        spreads = kind.has_columns and shape.spreads_values
        needed = self._transformer is not None and self._transformer.needs_values
        self._spreads = (spreads or needed) and self._decoder.value.has_fields
        self._spreads_keys = of_keys is not None and self._decoder.key.has_fields
        self._rows_of = _shaper(shape, kind, origin)

    def build(self, batch: pa.RecordBatch, refused: Faults = NO_FAULTS) -> BuiltRows:
        """The one place where decoded records get their shape. `refused` are records that are bad already."""
        decoded, keep = self.transformed(batch, refused)
        return BuiltRows(self._rows_of(decoded), decoded, keep)

    def transformed(self, batch: pa.RecordBatch, refused: Faults = NO_FAULTS) -> tuple[DecodedBatch, Column | None]:
        """The records behind the transform, and a mask of those that it kept; None for all."""
        bad = BadRecords(batch)
        bad.add(Stage.SHAPE, refused)
        transformer = self._transformer
        if transformer is None:
            return self._decoded(batch, bad), None
        early = transformer.early(batch, bad, lambda: self._decoder.key.plain(batch))
        decoded = self._decoded(early.batch, early.bad)
        if not transformer.needs_values:
            return decoded, early.keep
        found, keep = transformer.apply(decoded)
        if self._changes and self._shape.nulls == "Fail":
            found.bad.add(Stage.SHAPE, refused_tombstones(found.batch, self._shape))
        return found, _both(early.keep, keep)

    def _decoded(self, batch: pa.RecordBatch, bad: BadRecords) -> DecodedBatch:
        decoded = self._decoder.decode(batch)
        decoded.bad = bad
        return decoded

    @property
    def input_types(self) -> InputTypes:
        """Of the fields that the transform's expressions depend on."""
        return () if self._transformer is None else self._transformer.types

    @property
    def schema(self) -> KnownColumns | None:
        """The columns of values and keys known so far; None where they are not inferred."""
        values = self._decoder.value.schema if self._spreads else None
        return join_known(values, self._decoder.key.schema) if self._spreads_keys else values

    def known_from(self, schema: pa.Schema) -> KnownColumns | None:
        """The columns of values and keys in an object with this schema; None where they are not inferred."""
        if self._typed:
            return None
        found = value_columns(schema, self._shape) if self._spreads and not self._changes else None
        keys = key_columns(schema, self._shape) if self._spreads_keys else None
        values = None if found is None else KnownColumns(found)
        return values if keys is None else join_known(values, KnownColumns(keys))

    def row_sources(self) -> Sources:
        """What the values' schemas say about the columns so far, by path among the rows."""
        known = self.schema
        if known is None or not self._shape.envelope:
            return NO_SOURCES if known is None or self._changes else known.sources
        values, keys = split_known(known)
        parts = [*([] if self._changes else [(VALUE, values)]), *([] if keys is None else [(KEY, keys)])]
        return {(part, *path): records for part, own in parts for path, records in own.sources.items()}

    def source_schema(self, number: int) -> SourceSchema:
        """The schema that values with this number were written with: see `DecodedBatch.schema_numbers`."""
        return self._decoder.typed_value.source_schema(number)

    def columns_of(self, number: int, schema: pa.Schema) -> pa.StructType:
        """The columns of rows with `schema` that a value with this schema number can have a value in."""
        own = self._decoder.typed_value.columns_of(number) if self._spreads and not self._changes else None
        return pa.struct(list(schema)) if own is None else columns_within(schema, self._shape, own)

    def widen_to_text(self, path: Path) -> None:
        """Makes a column of the rows text from now on, because the format had to write it so."""
        part, found = (path[0], path[1:]) if self._shape.envelope else (VALUE, path)
        if self._transformer is not None and self._changes and part == VALUE:
            source = self._transformer.input_path(found)
            if source is None:
                return
            found = source
        self._decoder.of(part).widen_to_text(found)


def _both(first: Column | None, second: Column | None) -> Column | None:
    """One mask for two that follow one another: the second has the rows that the first kept."""
    if first is None or second is None:
        return second if first is None else first
    return pc.replace_with_mask(first, first, second)


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
