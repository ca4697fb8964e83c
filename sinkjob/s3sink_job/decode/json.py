"""Input format Json: JSON by RFC 8259. The columns of objects are inferred or supplied."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Faults, prefixed
from s3sink_job.decode.field_values import FieldValues
from s3sink_job.decode.input_format import InputSettings
from s3sink_job.decode.json_columns import JsonColumns, SuppliedColumns
from s3sink_job.decode.json_fields import json_fields
from s3sink_job.decode.json_validation import json_text


class JsonInput:
    has_fields = True
    one_line = True

    def __init__(self, settings: InputSettings) -> None:
        self.part, supplied = settings.part, settings.supplied
        self.must_fit = supplied is not None
        known = settings.known and settings.known.record
        self._columns = JsonColumns(known) if supplied is None else SuppliedColumns(supplied)

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        return self.json(batch)

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        text, faults = json_text(batch.column(self.part))
        return text, prefixed(faults, f"{self.part} is")

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
        rows, faults = self._columns.decode(batch.column(self.part))
        return rows, prefixed(faults, self.part)

    def fields(
        self, batch: pa.RecordBatch, paths: Mapping[Path, bool], *, unique_names: bool
    ) -> dict[Path, FieldValues]:
        return json_fields(batch.column(self.part), paths, self.part, unique_names=unique_names)

    @property
    def schema(self) -> KnownColumns | None:
        return None if self.must_fit else KnownColumns(self._columns.record)

    def widen_to_text(self, path: Path) -> None:
        self._columns.widen_to_text(path)
