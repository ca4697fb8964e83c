"""Input format JsonSchema. Records are JSON already: lines and names of folders have them as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.text import text_of
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Faults
from s3sink_job.decode.field_values import FieldValues
from s3sink_job.decode.input_format import InputSettings
from s3sink_job.decode.json_fields import json_fields
from s3sink_job.decode.json_schema_decoder import JsonSchema, without_first
from s3sink_job.decode.json_validation import one_line
from s3sink_job.decode.schema_input import DecodedPart, SchemaInput


class JsonSchemaInput(SchemaInput):
    def __init__(self, settings: InputSettings) -> None:
        super().__init__(JsonSchema(settings.options), settings)

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        """Strings without quotes, anything else as JSON."""
        decoded = self._decoded(batch)
        written = one_line(_payloads(decoded).cast(pa.string()))
        text = [(group.rows, text_of(group.values)) for group in decoded.groups if _is_string(group.values.type)]
        return (pc.coalesce(decoded.texts(text), written) if text else written), decoded.faults

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        decoded = self._decoded(batch)
        return one_line(_payloads(decoded).cast(pa.string())), decoded.faults

    def fields(
        self, batch: pa.RecordBatch, paths: Mapping[Path, bool], *, unique_names: bool
    ) -> dict[Path, FieldValues]:
        decoded = self._decoded(batch)
        found = json_fields(_payloads(decoded), paths, self.part, unique_names=unique_names)
        return {path: replace(values, faults={**values.faults, **decoded.faults}) for path, values in found.items()}


def _is_string(kind: pa.DataType) -> bool:
    """Whether the JSON of its values is a string. A column of text may also hold JSON."""
    return bool(pa.types.is_string(kind) or pa.types.is_temporal(kind) or pa.types.is_binary(kind))


def _payloads(decoded: DecodedPart) -> Column:
    """The JSON of all good records, by row of the batch."""
    column, rows = decoded.payloads.column, decoded.payloads.rows
    places = np.full(decoded.count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    places[list(decoded.faults)] = -1
    return without_first(column, decoded.payloads.skip).take(pa.array(places, mask=places < 0))
