"""Bytes as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import NO_FAULTS, Fault, Faults


def utf8(column: Column) -> tuple[Column, Faults]:
    """Bytes as text; rows that are not UTF-8 are null and at fault. Rows are read one by one only if there are any."""
    if column.type.equals(pa.binary()) and _is_ascii(column):
        return pa.Array.from_buffers(pa.string(), len(column), column.buffers(), offset=column.offset), NO_FAULTS
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


def _is_ascii(column: Column) -> bool:
    """Whether all bytes are ASCII, which is UTF-8. Arrow's own check looks at each value by itself."""
    bounds, data = column.buffers()[1:]
    if not len(column) or data is None:
        return False
    first, last = np.frombuffer(bounds, np.int32, len(column) + 1, 4 * column.offset)[[0, -1]].tolist()
    return first == last or int(np.frombuffer(data, np.uint8, last - first, first).max()) < 0x80
