"""The values of a batch on their way through a transform, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.cast import Inexact, as_text_at, cast_column
from s3sink_job.columns.types import TEXT, Column, merge
from s3sink_job.decode.bad_records import Fault


@dataclass(frozen=True)
class ValueColumns:
    columns: Mapping[str, Column]
    null: Column
    """A mask of the rows without a value. Their columns are null."""
    dropped: Column | None = None
    """A mask of the rows that are left out."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """By row: why the record cannot be transformed."""

    @property
    def count(self) -> int:
        return len(self.null)

    def with_columns(self, columns: Mapping[str, Column]) -> ValueColumns:
        return replace(self, columns=dict(columns))

    def with_faults(self, faults: Mapping[int, Fault]) -> ValueColumns:
        """The first fault of a row counts."""
        return replace(self, faults={**faults, **self.faults}) if faults else self

    def with_null(self, null: Column) -> ValueColumns:
        """More rows without a value."""
        return replace(self, null=pc.or_(self.null, null))

    def without(self, dropped: Column) -> ValueColumns:
        """More rows that are left out."""
        return replace(self, dropped=dropped if self.dropped is None else pc.or_(self.dropped, dropped))

    def struct(self) -> Column:
        if not self.columns:
            return pa.array([None if null else {} for null in self.null.to_pylist()], pa.struct([]))
        fields = [pa.field(name, column.type) for name, column in self.columns.items()]
        return pa.StructArray.from_arrays(list(self.columns.values()), fields=fields, mask=self.null)


def children(column: Column) -> dict[str, Column]:
    """The fields of a struct; null where the struct is null."""
    return dict(zip(column.type.names, column.flatten(), strict=True))


def everywhere(count: int) -> Column:
    """A mask of all rows."""
    return pa.array(np.ones(count, np.bool_))


def only(rows: Iterable[int], count: int) -> Column:
    """A mask of these rows."""
    mask = np.zeros(count, np.bool_)
    mask[list(rows)] = True
    return pa.array(mask)


def row_numbers(count: int) -> Column:
    return pa.array(np.arange(count, dtype=np.int64))


def true_rows(mask: Column) -> list[int]:
    rows: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return rows


def one_of(first: Column, second: Column) -> tuple[Column, list[int]]:
    """Of each row the value that there is, and the rows with two."""
    first, second = of_one_type(first, second)
    return chosen(first.is_valid(), first, second), true_rows(pc.and_(first.is_valid(), second.is_valid()))


def of_one_type(first: Column, second: Column) -> tuple[Column, Column]:
    """Both with the narrowest type that holds them."""
    kind = merge(first.type, second.type)
    while True:
        try:
            return cast_column(first, kind), cast_column(second, kind)
        except Inexact as error:
            kind = as_text_at(kind, error.path) if error.path else TEXT


def chosen(first: Column, yes: Column, no: Column) -> Column:
    """Of each row the one or the other; Arrow's `if_else` has no kernel for all nested types."""
    rows, count = row_numbers(len(first)), pa.scalar(len(first), pa.int64())
    return pa.concat_arrays([no, yes]).take(pc.if_else(first, pc.add(rows, count), rows))
