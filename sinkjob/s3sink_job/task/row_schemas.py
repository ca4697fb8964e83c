"""The schema that each row was written with: a number, in a last column that no object gets.

It is found by position: a record may have a column of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.typed_input import NO_SCHEMA

SCHEMA = "s3sink.schema"
Numbers = npt.NDArray[np.int64]


def with_schemas(rows: pa.RecordBatch, numbers: Column) -> pa.RecordBatch:
    return rows.append_column(SCHEMA, numbers)


def without_schemas(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Numbers]:
    place = rows.num_columns - 1
    return rows.remove_column(place), rows.column(place).to_numpy()


def runs(numbers: Numbers) -> Iterator[tuple[int, int, int]]:
    """Start, end and schema of rows one after another with the same schema. Rows without one change nothing."""
    places = np.flatnonzero(numbers != NO_SCHEMA)
    known = numbers[places]
    changes = places[1:][known[1:] != known[:-1]].tolist()
    for start, end in pairwise([0, *changes, len(numbers)]):
        of_run = numbers[start:end]
        yield start, end, int(of_run.max(initial=NO_SCHEMA))
