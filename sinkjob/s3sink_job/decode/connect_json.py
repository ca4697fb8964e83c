"""Input format ConnectJson: Kafka Connect's JSON with a schema beside each payload, as its JsonConverter writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Fault, Faults, faults_at, prefixed
from s3sink_job.decode.connect_envelope import NOT_CONNECT_JSON, Envelopes, envelopes
from s3sink_job.decode.connect_schema import BadSchema, connect_schema
from s3sink_job.decode.connect_schemaless import SchemalessReader
from s3sink_job.decode.field_values import FieldValues
from s3sink_job.decode.input_format import InputSettings
from s3sink_job.decode.json_fields import json_fields
from s3sink_job.decode.json_validation import NOT_JSON, json_text
from s3sink_job.decode.payload_columns import PayloadReader
from s3sink_job.decode.payload_schema import VALUE
from s3sink_job.decode.payload_sources import sources_of
from s3sink_job.decode.row_groups import RowGroup, in_order
from s3sink_job.decode.text_cache import TextCache
from s3sink_job.decode.typed_input import TypedInput, no_schemas
from s3sink_job.decode.writer_schemas import SourceSchema, WriterSchema

KIND = "CONNECT"
WITHOUT_SCHEMA = "null"
KEPT_SCHEMAS = 4 * 2**20
"""Characters of schemas that stay parsed: thousands of common ones, or two that are very large."""


class ConnectJsonInput(TypedInput):
    def __init__(self, settings: InputSettings) -> None:
        super().__init__(settings)
        self._readers: TextCache[str, PayloadReader] = TextCache(_reader, len, KEPT_SCHEMAS)
        self._schemaless = SchemalessReader()
        self._last: tuple[pa.RecordBatch, Envelopes] | None = None
        """The last batch: it is asked for rows, fields and schemas."""

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        return self.json(batch)

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        found = self._envelopes(batch)
        text, not_json = json_text(pc.ascii_trim(found.payload, " \t\r\n").cast(pa.binary()))
        faults = {row: found.why_not_json(row) for row in not_json}
        return text, prefixed({**faults, **found.faults}, self.part)

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
        found = self._envelopes(batch)
        faults, groups = dict(found.faults), []
        for schema, rows in found.by_schema():
            payload = found.payload if len(rows) == batch.num_rows else found.payload.take(pa.array(rows))
            read, bad = self._read(schema, payload)
            faults |= {int(rows[row]): fault for row, fault in bad.items()}
            groups += [RowGroup(rows[group.rows], group.columns) for group in read]
        for row, fault in faults.items():
            if fault.reason == NOT_JSON:
                faults[row] = found.why_not_json(row)
        return in_order(groups, self._columns.record, batch.num_rows), prefixed(faults, self.part)

    def fields(
        self, batch: pa.RecordBatch, paths: Mapping[Path, bool], *, unique_names: bool
    ) -> dict[Path, FieldValues]:
        found = self._envelopes(batch)
        values = json_fields(found.payload.cast(pa.binary()), paths, self.part, unique_names=unique_names)
        return {path: replace(v, faults=self._field_faults(v.faults, found)) for path, v in values.items()}

    def _field_faults(self, faults: Faults, found: Envelopes) -> Faults:
        whole = {row: found.why_not_json(row) for row, fault in faults.items() if fault.reason == NOT_JSON}
        return {**faults, **prefixed({**whole, **found.faults}, self.part)}

    def schema_numbers(self, batch: pa.RecordBatch) -> Column:
        numbers = no_schemas(batch.num_rows)
        for schema, rows in self._envelopes(batch).by_schema():
            numbers[rows] = self._number(SourceSchema(None, WriterSchema(KIND, schema)), self._record_of(schema))
        return pa.array(numbers)

    def _record_of(self, schema: str) -> pa.StructType | None:
        try:
            return None if schema == WITHOUT_SCHEMA else self._readers.of(schema).record
        except BadSchema:
            return None  # its records are bad

    def _envelopes(self, batch: pa.RecordBatch) -> Envelopes:
        if self._last is None or self._last[0] is not batch:
            self._last = (batch, envelopes(batch.column(self.part)))
        return self._last[1]

    def _read(self, schema: str, payload: Column) -> tuple[list[RowGroup], dict[int, Fault]]:
        """The payloads of one schema as columns, by their row among them."""
        if schema == WITHOUT_SCHEMA:
            return self._schemaless.read(payload, lambda record: self._columns.take(KnownColumns(record)))
        try:
            reader = self._readers.of(schema)
        except BadSchema as error:
            why = f'has a "schema" that is not one of Connect: {error}'
            return [], faults_at(range(len(payload)), NOT_CONNECT_JSON, why)
        columns, bad = reader.read(payload)
        # A schema without a good record must not decide on the columns.
        if len(bad) == len(payload):
            return [], bad
        if not reader.taken:
            if fault := self._columns.take(_columns_of(reader)):
                return [], dict.fromkeys(range(len(payload)), fault)
            reader.taken = True
        return [RowGroup.whole(columns)], bad


def _columns_of(reader: PayloadReader) -> KnownColumns:
    path = () if reader.schema.type == "struct" else (VALUE,)
    return KnownColumns(reader.record, sources_of(reader.schema, path))


def _reader(schema: str) -> PayloadReader:
    return PayloadReader(connect_schema(schema))
