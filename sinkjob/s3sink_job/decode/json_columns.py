"""JSON objects as Arrow columns, by a schema that widens when it has to.

Arrow's own reader does the work. It gets the whole schema, so that it refuses new fields and types instead of guessing.
A batch that it refuses is parsed record by record. That widens the schema, and finds the records that cannot be rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from s3sink_api.spec import MORE
from s3sink_job.columns.cast import as_text_at
from s3sink_job.columns.types import DOUBLE, EMPTY, TEXT, Column, Path, bounded, stored, to_doc
from s3sink_job.decode.bad_records import Fault, Faults, prefixed
from s3sink_job.decode.json_inference import NotARow, Number, Real, learn, members, misfit, parse
from s3sink_job.decode.utf8 import utf8

NOTHING = "{}"
SAMPLE = 100
"""So many records mostly show the columns of all of a first batch. To parse one takes as long as to read thirty."""
EXACT = 2.0**53
"""From here on a double does not hold every whole number."""
COMMA, COLON = Number(","), Number(":")
"""Written without quotes, like numbers."""
LONG_NUMBER = r"(?:^|[:\[,])\s*-?[0-9]{16,}\s*(?:$|[,\]}])"
"""Also a text that is a number alone."""


class JsonColumns:
    """The columns of one slice, inferred: each batch may widen them. Faults lack their subject, `value`."""

    def __init__(self, known: pa.StructType | None = None) -> None:
        self.record: pa.StructType = EMPTY if known is None else known
        """The schema so far."""

    def widen_to_text(self, path: Path) -> None:
        self.record = as_text_at(self.record, path)

    def decode(self, values: Column) -> tuple[pa.RecordBatch, Faults]:
        """One row for each value; bad ones and tombstones are rows of nulls."""
        text, not_utf8 = utf8(values)
        filled = pc.fill_null(text, NOTHING) if text.null_count else text
        rows = self._read(filled)
        if rows is None and not len(self.record) and len(filled) > SAMPLE:
            self._take(_parse_each(filled.slice(0, SAMPLE))[0])
            rows = self._read(filled)
        if rows is not None:
            return rows, prefixed(not_utf8, "is")
        parsed, faults = _parse_each(filled)
        faults |= self._take(parsed)
        return _rows(parsed, self.record), {**faults, **prefixed(not_utf8, "is")}

    def _take(self, parsed: list[dict[str, Any] | None]) -> dict[int, Fault]:
        """Widens the schema to hold the rows. Rows that it cannot hold are removed and returned as faults."""
        self.record = bounded(learn(self.record, [row for row in parsed if row]))
        return {}

    def _read(self, text: Column) -> pa.RecordBatch | None:
        """The rows by Arrow's reader; None if any record does not fit the schema."""
        fields = [field for field in self.record if field.name != MORE]
        if not fields or not look_like_objects(text):
            return None
        lines = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
        data = pc.binary_join(lines, "\n")[0].as_buffer()
        try:
            table = pj.read_json(
                pa.BufferReader(data),
                read_options=pj.ReadOptions(use_threads=False, block_size=max(data.size, 1 << 16)),
                parse_options=pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="error"),
            )
            table.validate()  # Arrow reads lists of several nulls and nothing else wrongly
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        # Each value starts and ends like an object and gives at least one row. More rows mean two objects in one value.
        if table.num_rows != len(text) or may_be_rounded([c for part in table.columns for c in part.chunks], text):
            return None
        if len(fields) < len(self.record):
            table = table.append_column(pa.field(MORE, TEXT), pa.nulls(len(text), TEXT))
        return table.combine_chunks().to_batches()[0]


class SuppliedColumns(JsonColumns):
    """The columns of a supplied schema. They never widen: a value that does not fit is a bad record."""

    def __init__(self, supplied: pa.StructType) -> None:
        super().__init__(stored(supplied))
        self._doc = to_doc(supplied)

    def _take(self, parsed: list[dict[str, Any] | None]) -> dict[int, Fault]:
        faults = {}
        for number, row in enumerate(parsed):
            if row is not None and (why := misfit(row, self._doc)):
                parsed[number] = None
                faults[number] = Fault("SchemaMismatch", f"does not fit spec.source.value.schema: {why}")
        return faults


def look_like_objects(text: Column) -> bool:
    """Whether each value starts with `{` and ends with `}`: then no value can run into the next one."""
    if not pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py():
        text = pc.ascii_trim(text, " \t\r\n")
        return bool(pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py())
    return True


def may_be_rounded(columns: list[Column], text: Column) -> bool:
    """Whether doubles may differ from the text: NaN, which is not JSON, or a whole number that was rounded."""
    largest = [_largest(leaf) for column in columns for leaf in _doubles(column)]
    if not all(map(math.isfinite, largest)):
        return True
    return max(largest, default=0.0) >= EXACT and bool(pc.any(pc.match_substring_regex(text, LONG_NUMBER)).as_py())


def _largest(doubles: Column) -> float:
    """The largest absolute value. NaN if there is any."""
    values = (doubles.drop_null() if doubles.null_count else doubles).to_numpy()
    return float(np.abs(values).max(initial=0.0))


def _doubles(column: Column) -> Iterator[Column]:
    if column.type.equals(DOUBLE):
        yield column
    elif pa.types.is_struct(column.type):
        for number in range(column.type.num_fields):
            yield from _doubles(column.field(number))
    elif pa.types.is_list(column.type):
        yield from _doubles(column.flatten())


def _parse_each(text: Column) -> tuple[list[dict[str, Any] | None], dict[int, Fault]]:
    rows: list[dict[str, Any] | None] = []
    faults: dict[int, Fault] = {}
    for number, value in enumerate(text.to_pylist()):
        try:
            rows.append(parse(value))
        except NotARow as error:
            rows.append(None)
            faults[number] = error.fault
    return rows, faults


def _rows(parsed: list[dict[str, Any] | None], record: pa.StructType) -> pa.RecordBatch:
    """Loops over the fields of each row, not over all columns: rows of wide tables are mostly empty."""
    kinds = {field.name: field.type for field in record}
    columns: dict[str, list[Any]] = {name: [None] * len(parsed) for name in kinds}
    for number, row in enumerate(parsed):
        rest = {}
        for name, value in (row or {}).items():
            if name in kinds:
                columns[name][number] = _fitted(value, kinds[name])
            else:
                rest[name] = value
        if rest:
            columns[MORE][number] = written(rest)
    if not columns:
        # A batch without columns would lose its number of rows.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(parsed), pa.struct([])))
    arrays = [pa.array(columns[field.name], field.type) for field in record]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(record)))


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kind.equals(TEXT):
        return value if isinstance(value, str) else written(value)
    if kind.equals(DOUBLE):
        return float(value)  # Arrow refuses whole numbers beyond 2**53, even those that doubles hold
    if pa.types.is_struct(kind):
        return {f.name: _fitted(value.get(f.name), f.type) for f in kind}
    if pa.types.is_list(kind):
        return [_fitted(item, kind.value_type) for item in value]
    return value


def written(value: Any, *, as_written: bool = False) -> str:
    """The value as JSON; `as_written` means numbers as they were written, and not in their shortest form.

    Without recursion: values may be nested more deeply than Python's limit.
    """
    texts: list[str] = []
    left: list[Any] = [value]
    while left:
        match left.pop():
            case Number() as verbatim:
                texts.append(verbatim)
            case dict() as fields:
                parts = [part for name, inner in members(fields) for part in (COMMA, name, COLON, inner)]
                left += [Number("}"), *reversed(parts[1:]), Number("{")]
            case list() as items:
                parts = [part for item in items for part in (COMMA, item)]
                left += [Number("]"), *reversed(parts[1:]), Number("[")]
            case Real() as number:
                texts.append(number.written if as_written else number.text)
            case scalar:
                texts.append(json.dumps(scalar, ensure_ascii=False))
    return "".join(texts)
