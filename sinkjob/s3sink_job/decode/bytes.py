"""Input format Bytes: bytes as they are; as text they are base64."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.columns.duckdb_functions import base64
from s3sink_job.columns.text import concat
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import NO_FAULTS, Faults
from s3sink_job.decode.field_values import FieldValues, field_values
from s3sink_job.decode.input_format import WithoutFields


class BytesInput(WithoutFields):
    _name = "Bytes"

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        return batch.column(self.part).cast(pa.binary()), NO_FAULTS

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        return concat('"', base64(batch.column(self.part)), '"'), NO_FAULTS

    def whole(self, batch: pa.RecordBatch) -> FieldValues:
        return field_values(base64(batch.column(self.part)), NO_FAULTS)
