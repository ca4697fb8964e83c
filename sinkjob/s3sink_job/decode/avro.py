"""Input format Avro: in the wire format of schema registries, or plain with an inline schema.

The records of a batch are decoded in groups, one for the versions of a schema, and put back in order. The columns are
those of all schemas together: what one schema lacks is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from s3sink_job.columns.text import json_of, text_of
from s3sink_job.columns.types import TEXT, Column, Path
from s3sink_job.decode.avro_cursor import Ints, Records
from s3sink_job.decode.avro_decoder import AvroDecoder, decoder_of
from s3sink_job.decode.avro_schema import InvalidSchema
from s3sink_job.decode.avro_versions import AvroVersions, VersionFamilies
from s3sink_job.decode.bad_records import Fault, Faults, faults_at
from s3sink_job.decode.column_values import column_values
from s3sink_job.decode.field_values import FieldValues, field_name
from s3sink_job.decode.row_groups import RowGroup, in_order
from s3sink_job.decode.typed_columns import TypedColumns
from s3sink_job.decode.writer_schemas import SchemaLookup, WriterSchema

PREFIX = 5
"""Bytes in front of a record: 0, and the id of its schema in four bytes."""
WHOLE = "value"
"""The column of values that are no records."""
ONE_TEXT = pa.struct([("text", TEXT)])


class Values:
    """The values of a batch that are not null. Each has the code of its schema, once it is known."""

    def __init__(self, column: Column) -> None:
        self.column = column.cast(pa.binary())
        self.rows: Ints = np.arange(len(column))
        """The row of each value in the batch."""
        if self.column.null_count:
            self.rows = np.flatnonzero(self.column.is_valid().to_numpy(zero_copy_only=False))
            self.column = self.column.take(pa.array(self.rows))
        self.records = Records(self.column)
        self.codes: Ints = np.zeros(len(self.rows), np.int64)

    def rows_of(self, code: int) -> list[int]:
        found: list[int] = self.rows[self.codes == code].tolist()
        return found


@dataclass(frozen=True, eq=False)
class FoundSchema:
    """A schema of a batch."""

    name: str
    """For messages."""
    code: int
    decoder: AvroDecoder


@dataclass(frozen=True)
class SchemaGroup:
    """The records of a batch that were decoded together."""

    schemas: list[FoundSchema]
    rows: Ints
    values: Column

    def columns(self, refused: list[FoundSchema]) -> RowGroup:
        """Without columns that only refused schemas have."""
        kind = _record_of(self.values.type)
        columns = self.values.flatten() if pa.types.is_struct(self.values.type) else [self.values]
        if not columns:
            return RowGroup(self.rows, pa.RecordBatch.from_struct_array(self.values))
        found = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(kind)))
        if any(schema in refused for schema in self.schemas):
            kept = {name for s in self.schemas if s not in refused for name in _record_of(s.decoder.type).names}
            found = found.select([name for name in kind.names if name in kept])
        return RowGroup(self.rows, found)


@dataclass
class DecodedColumn:
    count: int
    values: Values
    schemas: list[FoundSchema] = field(default_factory=list)
    """In the order in which they come first."""
    groups: list[SchemaGroup] = field(default_factory=list)
    faults: dict[int, Fault] = field(default_factory=dict)

    def texts(self, parts: list[tuple[Ints, Column]]) -> Column:
        """One column of the texts of all groups; null in rows of no group."""
        groups = [RowGroup(rows, pa.RecordBatch.from_arrays([texts], ["text"])) for rows, texts in parts]
        return in_order(groups, ONE_TEXT, self.count).column(0)


class AvroInput:
    has_fields = True
    one_line = True
    must_fit = False

    def __init__(
        self,
        part: str,
        *,
        known: pa.StructType | None = None,
        supplied: pa.StructType | None = None,
        schemas: SchemaLookup | None = None,
    ) -> None:
        if schemas is None:
            raise ValueError(f"{part}: Avro needs schemas")
        self.part = part
        self._schemas = schemas
        self._columns = TypedColumns(known)
        self._accepted: WeakSet[AvroDecoder] = WeakSet()
        """Those whose columns are taken. Columns only widen: what fitted once fits for ever."""
        self._families = VersionFamilies()
        self._last: tuple[Column, DecodedColumn] | None = None
        """The last column that was decoded: one batch is asked for rows and for fields."""

    @property
    def schema(self) -> pa.StructType | None:
        return self._columns.record

    def widen_to_text(self, path: Path) -> None:
        raise TypeError(f"column {'.'.join(path)} has a type of its own and never becomes text")

    def plain(self, column: Column) -> tuple[Column, Faults]:
        """Text as it is, records as JSON."""
        return self._texts(column, text_of)

    def json(self, column: Column) -> tuple[Column, Faults]:
        return self._texts(column, json_of)

    def _texts(self, column: Column, text: Callable[[Column], Column]) -> tuple[Column, Faults]:
        decoded = self._decoded(column)
        return decoded.texts([(group.rows, text(group.values)) for group in decoded.groups]), decoded.faults

    def rows(self, column: Column) -> tuple[pa.RecordBatch, Faults]:
        decoded = self._decoded(column)
        faults, refused = dict(decoded.faults), []
        for schema in decoded.schemas:
            if schema.decoder in self._accepted:
                continue
            rows = decoded.values.rows_of(schema.code)
            if all(row in decoded.faults for row in rows):
                refused.append(schema)  # without a good record it must not decide on the columns
            elif fault := self._columns.take(_record_of(schema.decoder.type)):
                refused.append(schema)
                faults = dict.fromkeys(rows, fault.prefixed(f"{self.part} of {schema.name}")) | faults
            else:
                self._accepted.add(schema.decoder)
        usable = [group for group in decoded.groups if any(schema not in refused for schema in group.schemas)]
        return in_order([group.columns(refused) for group in usable], self._columns.record, len(column)), faults

    def fields(self, column: Column, paths: Mapping[Path, bool], *, unique_names: bool) -> dict[Path, FieldValues]:
        decoded = self._decoded(column)
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

    def _decoded(self, column: Column) -> DecodedColumn:
        if self._last is not None and _same(self._last[0], column):
            return self._last[1]
        values = Values(column)
        decoded = DecodedColumn(len(column), values)
        for schema, name, code in self._by_schema(values, decoded.faults):
            try:
                decoded.schemas.append(FoundSchema(name, code, self._decoder(schema, name)))
            except _Unusable as error:
                decoded.faults |= dict.fromkeys(values.rows_of(code), error.fault)
        for family, schemas in self._families.together([schema.decoder for schema in decoded.schemas]):
            self._decode(family, [decoded.schemas[number] for number in schemas], decoded)
        self._last = (column, decoded)
        return decoded

    def _by_schema(self, values: Values, faults: dict[int, Fault]) -> Iterator[tuple[WriterSchema, str, int]]:
        """Each schema with its name and its code, in the order in which they come first."""
        if not len(values.rows):
            return
        if self._schemas.inline is not None:
            yield self._schemas.inline, f"spec.source.{self.part}.schema", 0
            return
        for code, number in enumerate(self._ids(values, faults)):
            if number < 0:
                continue
            schema = self._schemas.by_id(number)
            if schema is None:
                why = f"{self.part} has the schema id {number}, which the schema registry does not have"
                faults |= faults_at(values.rows_of(code), "UnknownSchemaId", why)
                continue
            yield schema, f"schema id {number}", code

    def _ids(self, values: Values, faults: dict[int, Fault]) -> list[int]:
        """The schema ids of the batch by code; -1 for values without one."""
        records, begin = values.records, values.records.bounds[:-1]
        wrong = np.flatnonzero((np.diff(records.bounds) < PREFIX) | (records.data[begin] != 0))
        for place in wrong.tolist():
            faults[int(values.rows[place])] = self._no_prefix(values.column[place].as_py())
        ids = records.unaligned(">u4")[begin + 1].astype(np.int64)
        ids[wrong] = -1
        if (ids == ids[0]).all():
            return [int(ids[0])]
        encoded = pa.array(ids).dictionary_encode()
        values.codes = encoded.indices.to_numpy()
        found: list[int] = encoded.dictionary.to_pylist()
        return found

    def _no_prefix(self, value: bytes) -> Fault:
        if value[:1] in (b"", b"\x00"):
            why = f"has only {len(value)} bytes, and the id of a schema takes {PREFIX}"
        else:
            why = f"begins with the byte 0x{value[0]:02x}, and not with 0 and the id of a schema"
        return Fault("NotWireFormat", f"{self.part} {why}: check spec.source.{self.part}.format")

    def _decoder(self, schema: WriterSchema, name: str) -> AvroDecoder:
        if schema.kind != "AVRO":
            why = f"{self.part} has {name}, which is {schema.kind} and not AVRO: check spec.source.{self.part}.format"
            raise _Unusable(Fault("WrongSchemaType", why))
        try:
            return decoder_of(schema)
        except InvalidSchema as error:
            raise _Unusable(Fault("InvalidSchema", f"{self.part}: {name} is {error}")) from None

    def _decode(self, family: AvroVersions | None, schemas: list[FoundSchema], decoded: DecodedColumn) -> None:
        values, skip = decoded.values, 0 if self._schemas.inline else PREFIX
        column, records, codes, rows = values.column, values.records, values.codes, values.rows
        if len(schemas) < len(decoded.schemas) or decoded.faults:
            mine = np.isin(codes, [schema.code for schema in schemas])
            column, codes, rows = column.filter(pa.array(mine)), codes[mine], rows[mine]
            records = Records(column)
        if family is None:
            found, faults = schemas[0].decoder.decode(column, skip, records)
        else:
            versions = np.zeros(int(codes.max()) + 1, np.int64)
            for schema in schemas:
                versions[schema.code] = family.number(schema.decoder)
            found, faults = family.decode(column, skip, versions[codes], records)
        decoded.groups.append(SchemaGroup(schemas, rows, found))
        names = {schema.code: schema.name for schema in schemas}
        for row, fault in faults.items():
            decoded.faults[int(rows[row])] = fault.prefixed(f"{self.part} of {names[int(codes[row])]}")


class _Unusable(ValueError):
    """A schema that cannot decode anything."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _record_of(kind: pa.DataType) -> pa.StructType:
    return kind if pa.types.is_struct(kind) else pa.struct([(WHOLE, kind)])


def _same(one: Column, other: Column) -> bool:
    """Whether two columns are the same memory."""
    addresses = [[b and b.address for b in c.buffers()] for c in (one, other)]
    return one.offset == other.offset and len(one) == len(other) and addresses[0] == addresses[1]
