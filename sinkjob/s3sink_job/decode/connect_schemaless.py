"""Payloads beside `"schema": null`, which Connect writes for values without one: types are inferred as for Json."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.cast import cast_rows
from s3sink_job.columns.duckdb_functions import without_rows
from s3sink_job.columns.text import concat
from s3sink_job.columns.types import Column, writable
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.json_columns import JsonColumns
from s3sink_job.decode.json_validation import json_text
from s3sink_job.decode.payload_schema import VALUE
from s3sink_job.decode.row_groups import RowGroup

Take = Callable[[pa.StructType], Fault | None]
"""Widens the known columns, or says why they cannot be widened."""


class SchemalessReader:
    def __init__(self) -> None:
        self._inferred: pa.StructType | None = None

    def read(self, payload: Column, take: Take) -> tuple[list[RowGroup], dict[int, Fault]]:
        """The rows in groups. A payload of null has no columns."""
        text = pc.ascii_trim(payload, " \t\r\n")
        # A payload that is not JSON could be JSON once it is named: `1,"a":2`.
        _, not_json = json_text(text.cast(pa.binary()))
        text = without_rows(text, not_json) if not_json else text
        named = pc.if_else(pc.starts_with(text, "{"), text, concat(f'{{"{VALUE}":', text, "}"))
        groups, faults = self._read(named, take, 0)
        return groups, {**faults, **not_json}

    def _read(self, text: Column, take: Take, first: int) -> tuple[list[RowGroup], dict[int, Fault]]:
        """A payload that does not fit the known columns is found by halves."""
        columns = JsonColumns(self._inferred)
        rows, faults = columns.decode(text)
        record = writable(columns.record)
        fault = take(record)
        if fault is None:
            self._inferred = columns.record
            places = np.arange(first, first + len(text))
            return [RowGroup(places, cast_rows(rows, record))], {first + row: why for row, why in faults.items()}
        if len(text) == 1:
            return [], {first: fault}
        half = len(text) // 2
        groups, bad = self._read(text.slice(0, half), take, first)
        more, others = self._read(text.slice(half), take, first + half)
        return groups + more, bad | others
