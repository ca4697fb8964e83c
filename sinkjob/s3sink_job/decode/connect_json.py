"""Input format ConnectJson: Kafka Connect's JSON with a schema beside each payload, as its JsonConverter writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Fault, Faults, faults_at, prefixed
from s3sink_job.decode.connect_columns import PayloadReader
from s3sink_job.decode.connect_envelope import NOT_CONNECT_JSON, Envelopes, envelopes
from s3sink_job.decode.connect_schema import BadSchema, connect_schema
from s3sink_job.decode.connect_schemaless import SchemalessReader
from s3sink_job.decode.field_values import FieldValues
from s3sink_job.decode.json_fields import json_fields
from s3sink_job.decode.json_validation import NOT_JSON, json_text
from s3sink_job.decode.row_groups import RowGroup, in_order
from s3sink_job.decode.text_cache import TextCache
from s3sink_job.decode.typed_columns import TypedColumns
from s3sink_job.decode.writer_schemas import SchemaLookup

NO_SCHEMA = "null"
KEPT_SCHEMAS = 4 * 2**20
"""Characters of schemas that stay parsed: thousands of common ones, or two that are very large."""


class ConnectJsonInput:
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
        self.part = part
        self._columns = TypedColumns(known)
        self._readers: TextCache[str, PayloadReader] = TextCache(_reader, len, KEPT_SCHEMAS)
        self._schemaless = SchemalessReader()

    def plain(self, column: Column) -> tuple[Column, Faults]:
        return self.json(column)

    def json(self, column: Column) -> tuple[Column, Faults]:
        found = envelopes(column)
        text, not_json = json_text(pc.ascii_trim(found.payload, " \t\r\n").cast(pa.binary()))
        faults = {row: found.why_not_json(row) for row in not_json}
        return text, prefixed({**faults, **found.faults}, self.part)

    def rows(self, column: Column) -> tuple[pa.RecordBatch, Faults]:
        found = envelopes(column)
        faults, groups = dict(found.faults), []
        for schema, rows in found.by_schema():
            payload = found.payload if len(rows) == len(column) else found.payload.take(pa.array(rows))
            read, bad = self._read(schema, payload)
            faults |= {int(rows[row]): fault for row, fault in bad.items()}
            groups += [RowGroup(rows[group.rows], group.columns) for group in read]
        for row, fault in faults.items():
            if fault.reason == NOT_JSON:
                faults[row] = found.why_not_json(row)
        return in_order(groups, self._columns.record, len(column)), prefixed(faults, self.part)

    def fields(self, column: Column, paths: Mapping[Path, bool], *, unique_names: bool) -> dict[Path, FieldValues]:
        found = envelopes(column)
        values = json_fields(found.payload.cast(pa.binary()), paths, self.part, unique_names=unique_names)
        return {path: replace(v, faults=self._field_faults(v.faults, found)) for path, v in values.items()}

    def _field_faults(self, faults: Faults, found: Envelopes) -> Faults:
        whole = {row: found.why_not_json(row) for row, fault in faults.items() if fault.reason == NOT_JSON}
        return {**faults, **prefixed({**whole, **found.faults}, self.part)}

    @property
    def schema(self) -> pa.StructType | None:
        return self._columns.record

    def widen_to_text(self, path: Path) -> None:
        raise TypeError(f"column {'.'.join(path)} has a type of its own and never becomes text")

    def _read(self, schema: str, payload: Column) -> tuple[list[RowGroup], dict[int, Fault]]:
        """The payloads of one schema as columns, by their row among them."""
        if schema == NO_SCHEMA:
            return self._schemaless.read(payload, self._columns.take)
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
            if fault := self._columns.take(reader.record):
                return [], dict.fromkeys(range(len(payload)), fault)
            reader.taken = True
        return [RowGroup.whole(columns)], bad


def _reader(schema: str) -> PayloadReader:
    return PayloadReader(connect_schema(schema))
