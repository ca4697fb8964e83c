"""The values of one field in all rows of a batch, as text, by their distinct values."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Fault, Faults


@dataclass(frozen=True)
class FieldValues:
    """`codes` has for each row the place of its value in `distinct`, or null where there is none."""

    distinct: Column
    codes: Column
    faults: Faults

    def rows(self) -> Column:
        return self.distinct.take(self.codes)


def field_values(texts: Column, faults: Faults) -> FieldValues:
    """Of a column of text."""
    encoded = texts.dictionary_encode()
    return without_empty(encoded.dictionary, encoded.indices, faults)


def without_empty(distinct: Column, codes: Column, faults: Faults) -> FieldValues:
    """An empty text counts as no value, as in Hive."""
    some = pc.fill_null(pc.not_equal(distinct, ""), False)
    if not pc.all(some, min_count=0).as_py():
        codes = pc.if_else(some.take(codes), codes, pa.scalar(None, pa.int32()))
    return FieldValues(distinct, codes, faults)


def faults_by_row(codes: Column, refused: dict[int, Fault]) -> dict[int, Fault]:
    """The faults of distinct values, by the rows that have these values."""
    if not refused:
        return {}
    return {row: refused[code] for row, code in enumerate(codes.to_pylist()) if code in refused}


def field_name(part: str, path: Path) -> str:
    """A field of a key or value, for messages."""
    return f"{part} field {'.'.join(path)}" if path else part
