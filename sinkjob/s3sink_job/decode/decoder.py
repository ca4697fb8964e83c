"""Decodes batches of Kafka records, as far as the output needs them decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from s3sink_api.spec import SchemaEvolution
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import BadRecords, Stage
from s3sink_job.decode.column_fields import column_fields
from s3sink_job.decode.field_values import FieldValues
from s3sink_job.decode.input_format import InputFormat, InputSettings
from s3sink_job.decode.input_formats import INPUTS
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.decode.schema_languages import kind_of
from s3sink_job.decode.settings import Decoding, PartDecoding
from s3sink_job.decode.typed_input import TypedInput


class Decoder:
    """The input formats of one slice. What it learns from one batch it uses for the next."""

    def __init__(
        self,
        decoding: Decoding,
        known: KnownColumns | None = None,
        access: SchemaAccess = NO_ACCESS,
        known_keys: KnownColumns | None = None,
    ) -> None:
        """`known_keys` only if the fields of keys become columns."""
        key, value = (_settings(part, access) for part in decoding.parts)
        if known_keys is not None:
            # One mode for both: their columns are committed together.
            key = replace(key, known=known_keys, evolution=SchemaEvolution(mode=decoding.evolution.mode))
        self.key = INPUTS[decoding.key](key)
        self.value = INPUTS[decoding.value](
            replace(value, known=known, supplied=decoding.supplied, evolution=decoding.evolution)
        )

    @property
    def typed_value(self) -> TypedInput:
        if not isinstance(self.value, TypedInput):
            raise TypeError("the values have no schemas of their own")
        return self.value

    def of(self, part: str) -> InputFormat:
        return self.key if part == "key" else self.value

    def decode(self, batch: pa.RecordBatch) -> DecodedBatch:
        return DecodedBatch(batch, self)


def _settings(part: PartDecoding, access: SchemaAccess) -> InputSettings:
    schemas = part.schemas
    lookup = access.lookup(schemas, kind_of(part.format))
    return InputSettings(part.part, schemas=lookup, registry=schemas.registry_kind, options=schemas.options)


class DecodedBatch:
    """A batch of records. It is decoded on demand, and records that cannot be decoded are collected in `bad`."""

    def __init__(self, batch: pa.RecordBatch, decoder: Decoder) -> None:
        self.batch = batch
        self.bad = BadRecords(batch)
        self.decoder = decoder
        self._rows: dict[str, pa.RecordBatch] = {}

    def input(self, part: str) -> InputFormat:
        return self.decoder.of(part)

    def plain(self, part: str) -> Column:
        """Key or value in one column."""
        column, faults = self.input(part).plain(self.batch)
        self.bad.add(Stage.DECODE, faults)
        return column

    def json(self, part: str) -> Column:
        """Key or value as JSON text."""
        column, faults = self.input(part).json(self.batch)
        self.bad.add(Stage.DECODE, faults)
        return column

    def rows(self, part: str = "value") -> pa.RecordBatch:
        """The fields of the values, or of the keys, as columns."""
        if part not in self._rows:
            self._rows[part], faults = self.input(part).rows(self.batch)
            self.bad.add(Stage.DECODE, faults)
        return self._rows[part]

    def schema_numbers(self) -> Column:
        """For each value the number of the schema that it was written with. Only for typed values."""
        return self.decoder.typed_value.schema_numbers(self.batch)

    @property
    def unknown_fields(self) -> int:
        """Values left out of what is decoded so far, because their schema has no field for them."""
        typed = (part for part in (self.decoder.key, self.decoder.value) if isinstance(part, TypedInput))
        return sum(part.unknown_fields(self.batch) for part in typed)

    def fields(self, part: str, paths: Mapping[Path, bool]) -> dict[Path, FieldValues]:
        """Single fields as text, from columns that are decoded already where these hold them exactly."""
        rows = self._rows.get("value") if part == "value" else None
        found = {} if rows is None else column_fields(rows, paths)
        if left := {path: exact for path, exact in paths.items() if path not in found}:
            # Columns refuse a record that has a field twice: there is no need to search for it again.
            unique = rows is not None
            found |= self.input(part).fields(self.batch, left, unique_names=unique)
        return found
