"""Input format Avro: in the wire format of schema registries, or plain with an inline schema.

The records of a batch are decoded schema by schema, and put back in order. The columns are those of all schemas
together: what one schema lacks is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from s3sink_job.columns.text import json_of, text_of
from s3sink_job.columns.types import TEXT, Column, Path
from s3sink_job.decode.avro_cursor import Ints, Records
from s3sink_job.decode.avro_decoder import AvroDecoder, decoder_of
from s3sink_job.decode.avro_schema import InvalidSchema
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


@dataclass(frozen=True)
class SchemaGroup:
    """The records of a batch that one schema wrote."""

    name: str
    """Of the schema, for messages."""
    rows: Ints
    values: Column

    @property
    def record(self) -> pa.StructType:
        kind = self.values.type
        return kind if pa.types.is_struct(kind) else pa.struct([(WHOLE, kind)])

    @property
    def group(self) -> RowGroup:
        columns = self.values.flatten() if pa.types.is_struct(self.values.type) else [self.values]
        if not columns:
            return RowGroup(self.rows, pa.RecordBatch.from_struct_array(self.values))
        return RowGroup(self.rows, pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(self.record))))


@dataclass
class DecodedColumn:
    count: int
    groups: list[SchemaGroup] = field(default_factory=list)
    faults: dict[int, Fault] = field(default_factory=dict)

    def in_order(self, parts: list[tuple[Ints, Column]], kind: pa.DataType) -> Column:
        """One column of the columns of several groups; null in rows of no group."""
        if not parts:
            return pa.nulls(self.count, kind)
        if len(parts) == 1 and len(parts[0][0]) == self.count:
            return parts[0][1]
        places, first = np.full(self.count, -1), 0
        for rows, _ in parts:
            places[rows] = np.arange(first, first + len(rows))
            first += len(rows)
        joined = pa.concat_arrays([values for _, values in parts])
        return joined.take(pa.array(places, mask=places < 0))


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
        return decoded.in_order([(group.rows, text(group.values)) for group in decoded.groups], TEXT), decoded.faults

    def rows(self, column: Column) -> tuple[pa.RecordBatch, Faults]:
        decoded = self._decoded(column)
        faults, groups = dict(decoded.faults), []
        for group in decoded.groups:
            if faults and all(row in faults for row in group.rows.tolist()):
                continue  # a schema without a good record must not decide on the columns
            if fault := self._columns.take(group.record):
                named = fault.prefixed(f"{self.part} of {group.name}")
                faults = dict.fromkeys(group.rows.tolist(), named) | faults
            else:
                groups.append(group.group)
        return in_order(groups, self._columns.record, len(column)), faults

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
            texts = decoded.in_order(parts, TEXT)
            encoded = texts.dictionary_encode()
            found[path] = FieldValues(encoded.dictionary, encoded.indices, faults)
        return found

    def _decoded(self, column: Column) -> DecodedColumn:
        if self._last is not None and _same(self._last[0], column):
            return self._last[1]
        decoded = DecodedColumn(len(column))
        values = column.cast(pa.binary())
        rows = np.arange(len(column))
        if values.null_count:
            rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            values = values.take(pa.array(rows))
        for schema, name, chosen, skip in self._by_schema(values, rows, decoded.faults):
            decoder = self._decoder(schema, name, rows[chosen], decoded.faults)
            if decoder is not None:
                part = values if len(chosen) == len(values) else values.take(pa.array(chosen))
                self._decode(decoder, name, part, skip, rows[chosen], decoded)
        self._last = (column, decoded)
        return decoded

    def _by_schema(
        self, values: Column, rows: Ints, faults: dict[int, Fault]
    ) -> Iterator[tuple[WriterSchema, str, Ints, int]]:
        """Each schema with its name, the places of its records, and the bytes in front of each record."""
        if not len(values):
            return
        if self._schemas.inline is not None:
            yield self._schemas.inline, f"spec.source.{self.part}.schema", np.arange(len(values)), 0
            return
        records = Records(values)
        first, length = records.data[records.bounds[:-1]], np.diff(records.bounds)
        wrong = np.flatnonzero((length < PREFIX) | (first != 0))
        for row in wrong.tolist():
            faults[int(rows[row])] = self._no_prefix(values[row].as_py())
        ids = records.unaligned(">u4")[records.bounds[:-1] + 1].astype(np.int64)
        ids[wrong] = -1
        for number, chosen in _groups(ids):
            if number < 0:
                continue
            schema = self._schemas.by_id(number)
            if schema is None:
                why = f"{self.part} has the schema id {number}, which the schema registry does not have"
                faults |= faults_at(rows[chosen].tolist(), "UnknownSchemaId", why)
                continue
            yield schema, f"schema id {number}", chosen, PREFIX

    def _no_prefix(self, value: bytes) -> Fault:
        if value[:1] in (b"", b"\x00"):
            why = f"has only {len(value)} bytes, and the id of a schema takes {PREFIX}"
        else:
            why = f"begins with the byte 0x{value[0]:02x}, and not with 0 and the id of a schema"
        return Fault("NotWireFormat", f"{self.part} {why}: check spec.source.{self.part}.format")

    def _decoder(self, schema: WriterSchema, name: str, rows: Ints, faults: dict[int, Fault]) -> AvroDecoder | None:
        if schema.kind != "AVRO":
            why = f"{self.part} has {name}, which is {schema.kind} and not AVRO: check spec.source.{self.part}.format"
            faults |= faults_at(rows.tolist(), "WrongSchemaType", why)
            return None
        try:
            return decoder_of(schema)
        except InvalidSchema as error:
            faults |= faults_at(rows.tolist(), "InvalidSchema", f"{self.part}: {name} is {error}")
            return None

    def _decode(
        self, decoder: AvroDecoder, name: str, values: Column, skip: int, rows: Ints, decoded: DecodedColumn
    ) -> None:
        found, faults = decoder.decode(values, skip)
        decoded.groups.append(SchemaGroup(name, rows, found))
        for row, fault in faults.items():
            decoded.faults[int(rows[row])] = fault.prefixed(f"{self.part} of {name}")


def _groups(ids: Ints) -> Iterator[tuple[int, Ints]]:
    """The rows of each id, ids in the order in which they come first."""
    if (ids == ids[0]).all():
        yield int(ids[0]), np.arange(len(ids))
        return
    distinct, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    for place in np.argsort(first).tolist():
        start = 0 if not place else int(ends[place - 1])
        yield int(distinct[place]), order[start : int(ends[place])]


def _same(one: Column, other: Column) -> bool:
    """Whether two columns are the same memory."""
    addresses = [[b and b.address for b in c.buffers()] for c in (one, other)]
    return one.offset == other.offset and len(one) == len(other) and addresses[0] == addresses[1]
