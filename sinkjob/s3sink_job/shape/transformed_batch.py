"""A batch behind its transform: it offers what a decoded batch offers, with the values as the transform left them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.text import json_of
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import prefixed
from s3sink_job.decode.column_values import column_values
from s3sink_job.decode.decoder import DecodedBatch
from s3sink_job.decode.field_values import FieldValues, field_name, field_values
from s3sink_job.decode.input_format import InputFormat


class ChangedValues:
    """Values that are made of columns: what is asked of their input format."""

    has_fields = True
    one_line = True
    must_fit = False


class FilteredBatch(DecodedBatch):
    """The rows of a decoded batch that are kept. Their values are as they were."""

    def __init__(self, source: DecodedBatch, keep: Column | None) -> None:
        super().__init__(source.batch if keep is None else source.batch.filter(keep), source.decoder)
        self._source, self._keep = source, keep
        self.bad = source.bad if keep is None else source.bad.kept(self.batch, keep)

    def with_rows(self, rows: pa.RecordBatch) -> FilteredBatch:
        """With the rows that are kept, so that their values are not decoded again."""
        self._rows["value"] = rows
        return self

    def schema_numbers(self) -> Column:
        numbers = self._source.schema_numbers()
        return numbers if self._keep is None else numbers.filter(self._keep)

    @property
    def unknown_fields(self) -> int:
        return self._source.unknown_fields


class TransformedBatch(FilteredBatch):
    """With other values. A row that is `null` has a null value, whatever its columns say."""

    def __init__(self, source: FilteredBatch, rows: pa.RecordBatch, null: Column) -> None:
        super().__init__(source, None)
        self._columns, self._null = rows, null
        if not null.equals(self.batch.column("value").is_null()):
            value = pc.if_else(null, pa.scalar(None, self.batch.column("value").type), self.batch.column("value"))
            self.batch = self.batch.set_column(self.batch.schema.get_field_index("value"), "value", value)

    def input(self, part: str) -> InputFormat:
        return super().input(part) if part == "key" else ChangedValues()  # type: ignore[return-value]

    def plain(self, part: str) -> Column:
        return super().plain(part) if part == "key" else self._text()

    def json(self, part: str) -> Column:
        return super().json(part) if part == "key" else self._text()

    def rows(self, part: str = "value") -> pa.RecordBatch:
        return super().rows(part) if part == "key" else self._columns

    def fields(self, part: str, paths: Mapping[Path, bool]) -> dict[Path, FieldValues]:
        if part == "key":
            return super().fields(part, paths)
        whole, found = self._whole(), {}
        for path in paths:
            texts, faults = column_values(whole, path)
            found[path] = field_values(texts, prefixed(faults, field_name(part, path)))
        return found

    def _text(self) -> Column:
        return json_of(self._whole())

    def _whole(self) -> Column:
        rows = self._columns
        if not rows.num_columns:
            return pa.array([None if null else {} for null in self._null.to_pylist()], pa.struct([]))
        return pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=self._null)
