"""Input format String: UTF-8 text."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.columns.text import quoted
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Faults, prefixed
from s3sink_job.decode.field_values import FieldValues, field_values
from s3sink_job.decode.input_format import WithoutFields
from s3sink_job.decode.utf8 import utf8


class StringInput(WithoutFields):
    _name = "String"

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        text, faults = utf8(batch.column(self.part))
        return text, prefixed(faults, f"{self.part} is")

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        text, faults = self.plain(batch)
        return quoted(text), faults

    def whole(self, batch: pa.RecordBatch) -> FieldValues:
        return field_values(*self.plain(batch))
