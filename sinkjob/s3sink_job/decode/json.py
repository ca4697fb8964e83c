"""Input format Json: JSON by RFC 8259. The columns of objects are inferred or supplied."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Faults, prefixed
from s3sink_job.decode.field_values import FieldValues
from s3sink_job.decode.json_columns import JsonColumns, SuppliedColumns
from s3sink_job.decode.json_fields import json_fields
from s3sink_job.decode.json_validation import json_text
from s3sink_job.decode.writer_schemas import SchemaLookup


class JsonInput:
    has_fields = True
    one_line = True

    def __init__(
        self,
        part: str,
        *,
        known: pa.StructType | None = None,
        supplied: pa.StructType | None = None,
        schemas: SchemaLookup | None = None,
    ) -> None:
        self.part = part
        self.must_fit = supplied is not None
        self._columns = JsonColumns(known) if supplied is None else SuppliedColumns(supplied)

    def plain(self, column: Column) -> tuple[Column, Faults]:
        return self.json(column)

    def json(self, column: Column) -> tuple[Column, Faults]:
        text, faults = json_text(column)
        return text, prefixed(faults, f"{self.part} is")

    def rows(self, column: Column) -> tuple[pa.RecordBatch, Faults]:
        rows, faults = self._columns.decode(column)
        return rows, prefixed(faults, self.part)

    def fields(self, column: Column, paths: Mapping[Path, bool], *, unique_names: bool) -> dict[Path, FieldValues]:
        return json_fields(column, paths, self.part, unique_names=unique_names)

    @property
    def schema(self) -> pa.StructType | None:
        return None if self.must_fit else self._columns.record

    def widen_to_text(self, path: Path) -> None:
        self._columns.widen_to_text(path)
