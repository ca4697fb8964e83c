"""Input format String: UTF-8 text."""

from __future__ import annotations

from s3sink_job.columns.text import quoted
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Faults, prefixed
from s3sink_job.decode.field_values import FieldValues, field_values
from s3sink_job.decode.input_format import WithoutFields
from s3sink_job.decode.utf8 import utf8


class StringInput(WithoutFields):
    _name = "String"

    def plain(self, column: Column) -> tuple[Column, Faults]:
        text, faults = utf8(column)
        return text, prefixed(faults, f"{self.part} is")

    def json(self, column: Column) -> tuple[Column, Faults]:
        text, faults = self.plain(column)
        return quoted(text), faults

    def whole(self, column: Column) -> FieldValues:
        return field_values(*self.plain(column))
