"""Bytes as text."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import NO_FAULTS, Fault, Faults


def utf8(column: Column) -> tuple[Column, Faults]:
    """Bytes as text; rows that are not UTF-8 are null and at fault. Rows are read one by one only if there are any."""
    try:
        return column.cast(pa.string()), NO_FAULTS
    except pa.ArrowInvalid:
        values, faults = [], {}
        for row, value in enumerate(column.to_pylist()):
            try:
                values.append(None if value is None else value.decode())
            except UnicodeDecodeError as error:
                values.append(None)
                faults[row] = Fault("NotUtf8", f"not UTF-8: {error.reason} at byte {error.start}")
        return pa.array(values, pa.string()), faults
