"""The input format of records that have a schema each, in any language: by its id in a registry, or one for all.

The records of a batch are decoded in groups, one for the versions of a schema, and put back in order. The columns are
those of all schemas together: what one schema lacks is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.text import json_of, text_of
from s3sink_job.columns.types import TEXT, Column, Path
from s3sink_job.decode.bad_records import Fault, Faults, faults_at
from s3sink_job.decode.column_values import column_values
from s3sink_job.decode.field_values import FieldValues, field_name
from s3sink_job.decode.framing import Payloads, SchemaKey, framed_payloads, plain_payloads
from s3sink_job.decode.glue_framing import glue_payloads
from s3sink_job.decode.header_schemas import HeaderColumns
from s3sink_job.decode.input_format import InputSettings
from s3sink_job.decode.record_bytes import Ints, Records
from s3sink_job.decode.row_groups import RowGroup, in_order
from s3sink_job.decode.schema_language import SchemaDecoder, SchemaFamily, SchemaLanguage
from s3sink_job.decode.typed_input import NO_SCHEMA, TypedInput, no_schemas
from s3sink_job.decode.writer_schemas import InvalidSchema, SourceSchema, WriterSchema, numbered
from s3sink_job.kafka.schema_ids import MESSAGES, SCHEMA_IDS

WHOLE = "value"
"""The column of values that are no records."""
LONG_ID = (
    "this may be an id of 8 bytes, as version 2 of Apicurio's serializers writes it. They write 4 bytes with"
    " apicurio.registry.as-confluent=true"
)
"""No registry has the id 0, and ids of 8 bytes begin with four zero bytes."""
ONE_TEXT = pa.struct([("text", TEXT)])


@dataclass(frozen=True, eq=False)
class FoundSchema:
    """A schema of a batch."""

    name: str
    """For messages."""
    code: int
    decoder: SchemaDecoder
    source: SourceSchema


@dataclass(frozen=True)
class SchemaGroup:
    """The records of a batch that were decoded together."""

    schemas: list[FoundSchema]
    rows: Ints
    values: Column

    def columns(self, refused: list[FoundSchema]) -> RowGroup:
        """Without columns that only refused schemas have."""
        if pa.types.is_struct(self.values.type):
            found = pa.RecordBatch.from_struct_array(self.values)
        else:
            found = pa.RecordBatch.from_arrays([self.values], [WHOLE])
        if any(schema in refused for schema in self.schemas):
            kept = {name for s in self.schemas if s not in refused for name in _record_of(s.decoder.type).names}
            found = found.select([name for name in found.schema.names if name in kept])
        return RowGroup(self.rows, found)


@dataclass
class DecodedPart:
    """The keys, or the values, of a batch."""

    count: int
    payloads: Payloads
    schemas: list[FoundSchema] = field(default_factory=list)
    """In the order in which they come first."""
    groups: list[SchemaGroup] = field(default_factory=list)
    faults: dict[int, Fault] = field(default_factory=dict)
    unknown_fields: int = 0

    def texts(self, parts: list[tuple[Ints, Column]]) -> Column:
        """One column of the texts of all groups; null in rows of no group."""
        groups = [RowGroup(rows, pa.RecordBatch.from_arrays([texts], ["text"])) for rows, texts in parts]
        return in_order(groups, ONE_TEXT, self.count).column(0)


class SchemaInput(TypedInput):
    def __init__(self, language: SchemaLanguage, settings: InputSettings) -> None:
        if settings.schemas is None:
            raise ValueError(f"{settings.part}: {language.kind} needs schemas")
        super().__init__(settings)
        self._language = language
        self._schemas, self._registry = settings.schemas, settings.registry
        self._accepted: WeakSet[SchemaDecoder] = WeakSet()
        """Those whose columns are taken. Columns only widen: what fitted once fits for ever."""
        self._families = language.families()
        self._last: tuple[pa.RecordBatch, DecodedPart] | None = None
        """The last batch that was decoded: it is asked for rows and for fields."""

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        """Text as it is, records as JSON."""
        return self._texts(batch, text_of)

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        return self._texts(batch, json_of)

    def _texts(self, batch: pa.RecordBatch, text: Callable[[Column], Column]) -> tuple[Column, Faults]:
        decoded = self._decoded(batch)
        return decoded.texts([(group.rows, text(group.values)) for group in decoded.groups]), decoded.faults

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
        decoded = self._decoded(batch)
        faults, refused = dict(decoded.faults), []
        for schema in decoded.schemas:
            if schema.decoder in self._accepted:
                continue
            rows = decoded.payloads.rows_of(schema.code)
            if all(row in decoded.faults for row in rows):
                refused.append(schema)  # without a good record it must not decide on the columns
            elif fault := self._columns.take(_columns_of(schema.decoder)):
                refused.append(schema)
                faults = dict.fromkeys(rows, fault.prefixed(f"{self.part} of {schema.name}")) | faults
            else:
                self._accepted.add(schema.decoder)
        usable = [group for group in decoded.groups if any(schema not in refused for schema in group.schemas)]
        return in_order([group.columns(refused) for group in usable], self._columns.record, decoded.count), faults

    def schema_numbers(self, batch: pa.RecordBatch) -> Column:
        decoded = self._decoded(batch)
        payloads, numbers = decoded.payloads, no_schemas(decoded.count)
        by_code = no_schemas(len(payloads.keys))
        for schema in decoded.schemas:
            by_code[schema.code] = self._number(schema.source, _record_of(schema.decoder.type))
        numbers[payloads.rows] = by_code[payloads.codes] if len(by_code) else NO_SCHEMA
        return pa.array(numbers)

    def unknown_fields(self, batch: pa.RecordBatch) -> int:
        return self._last[1].unknown_fields if self._last is not None and self._last[0] is batch else 0

    def fields(
        self, batch: pa.RecordBatch, paths: Mapping[Path, bool], *, unique_names: bool
    ) -> dict[Path, FieldValues]:
        decoded = self._decoded(batch)
        found = {}
        for path in paths:
            parts, faults = [], dict(decoded.faults)
            for group in decoded.groups:
                texts, refused = column_values(group.values, path)
                parts.append((group.rows, texts))
                if refused:
                    name = field_name(self.part, path)
                    faults = {int(group.rows[row]): fault.prefixed(name) for row, fault in refused.items()} | faults
            encoded = decoded.texts(parts).dictionary_encode()
            found[path] = FieldValues(encoded.dictionary, encoded.indices, faults)
        return found

    def _decoded(self, batch: pa.RecordBatch) -> DecodedPart:
        if self._last is not None and self._last[0] is batch:
            return self._last[1]
        payloads = self._payloads(batch)
        decoded = DecodedPart(batch.num_rows, payloads, faults=payloads.faults)
        decoded.schemas += self._found_schemas(decoded)
        for group in self._families.together([schema.decoder for schema in decoded.schemas]):
            self._decode(group.family, [decoded.schemas[place] for place in group.places], decoded)
        self._last = (batch, decoded)
        return decoded

    def _payloads(self, batch: pa.RecordBatch) -> Payloads:
        column = batch.column(self.part)
        if self._schemas.inline is not None:
            return plain_payloads(column)
        if self._registry == "Glue":
            return glue_payloads(column, self.part, messages=self._language.has_messages)
        ids, messages = (
            batch.column(name) if name in batch.schema.names else None
            for name in (SCHEMA_IDS[self.part], MESSAGES[self.part])
        )
        apicurio, lengths = self._registry == "Apicurio", None
        if self._language.has_messages:
            lengths = self._language.message_lengths
        return framed_payloads(
            *(column, HeaderColumns(ids, messages, apicurio=apicurio), self.part, lengths),
            frame_shows=self._language.frame_shows,
        )

    def _found_schemas(self, decoded: DecodedPart) -> Iterator[FoundSchema]:
        """Those that can be used; records of all others are at fault."""
        for code, key in enumerate(decoded.payloads.keys):
            if key is None:
                continue
            name = f"spec.source.{self.part}.schema" if key.schema is None else str(key.schema)
            schema = self._schemas.inline if key.schema is None else self._schemas.find(key.schema)
            found = self._decoder(schema, key, name)
            if isinstance(found, Fault):
                decoded.faults |= faults_at(decoded.payloads.rows_of(code), *found)
            elif schema is not None:
                yield FoundSchema(name, code, found, SourceSchema(key.schema, schema))

    def _decoder(self, schema: WriterSchema | None, key: SchemaKey, name: str) -> SchemaDecoder | Fault:
        if schema is None:
            why = f"{self.part} has the {name}, which the schema registry does not have"
            return Fault("UnknownSchemaId", f"{why}: {LONG_ID}" if key.schema == numbered(0) else why)
        kind = self._language.kind
        if schema.kind != kind:
            why = f"{self.part} has {name}, which is {schema.kind} and not {kind}: check spec.source.{self.part}.format"
            return Fault("WrongSchemaType", why)
        try:
            return self._language.decoder_of(schema, key.message)
        except InvalidSchema as error:
            return Fault("InvalidSchema", f"{self.part}: {name} is {error}")

    def _decode(self, family: SchemaFamily | None, schemas: list[FoundSchema], decoded: DecodedPart) -> None:
        payloads = decoded.payloads
        column, records, codes, rows = payloads.column, payloads.records, payloads.codes, payloads.rows
        if len(schemas) < len(decoded.schemas) or decoded.faults:
            mine = np.isin(codes, [schema.code for schema in schemas])
            column, codes, rows = column.filter(pa.array(mine)), codes[mine], rows[mine]
            records = Records(column)
        if family is None:
            found, faults = schemas[0].decoder.decode(column, payloads.skip, records)
            decoded.unknown_fields += schemas[0].decoder.unknown_fields
        else:
            versions = np.zeros(int(codes.max()) + 1, np.int64)
            for schema in schemas:
                versions[schema.code] = family.number(schema.decoder)
            found, faults = family.decode(column, payloads.skip, versions[codes], records)
        decoded.groups.append(SchemaGroup(schemas, rows, found))
        names = {schema.code: schema.name for schema in schemas}
        for row, fault in faults.items():
            decoded.faults[int(rows[row])] = fault.prefixed(f"{self.part} of {names[int(codes[row])]}")


def _columns_of(decoder: SchemaDecoder) -> KnownColumns:
    if pa.types.is_struct(decoder.type):
        return KnownColumns(decoder.type, decoder.sources)
    return KnownColumns(_record_of(decoder.type), {(WHOLE, *path): found for path, found in decoder.sources.items()})


def _record_of(kind: pa.DataType) -> pa.StructType:
    return kind if pa.types.is_struct(kind) else pa.struct([(WHOLE, kind)])
