"""JSON objects as Arrow columns, by a schema that widens as it must.

Arrow's own reader does the work, and is told the whole schema, so that it refuses whatever is new instead of
guessing. A batch it refuses is looked at record by record, which teaches the schema and finds the records
that cannot be rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from s3sink_job.records.learn import NotARow, Number, Real, learn, misfit, parse
from s3sink_job.records.text import Bad, Column, utf8
from s3sink_job.schema.cast import as_text_at
from s3sink_job.schema.types import DOUBLE, TEXT, bounded, from_text, to_text
from s3sink_job.spec import MORE

NOTHING = "{}"
EXACT = 2.0**53
"""From here on a double no longer holds every whole number."""
COMMA, COLON = Number(","), Number(":")
"""Written as they stand, as numbers are."""
LONG_NUMBER = r"[:\[,]\s*-?[0-9]{16,}\s*[,\]}]"


class JsonColumns:
    """The decoder of one slice: it knows the schema so far, and each batch may widen it."""

    def __init__(self, known: str = "") -> None:
        self.record: pa.StructType = from_text(known)

    @property
    def schema(self) -> str:
        return to_text(self.record)

    def as_text(self, path: tuple[str, ...]) -> None:
        self.record = as_text_at(self.record, path)

    def decode(self, values: Column) -> tuple[pa.RecordBatch, Bad]:
        """One row for each value; bad ones and tombstones are rows of nulls."""
        text, odd = utf8(values)
        not_utf8 = {row: f"value is {why}" for row, why in odd.rows.items()}
        filled = pc.fill_null(text, NOTHING) if text.null_count else text
        rows = self._read(filled)
        if rows is not None:
            return rows, Bad(not_utf8)
        parsed, bad = _parse_each(filled)
        bad |= self._take(parsed)
        return _rows(parsed, self.record), Bad({**bad, **not_utf8})

    def _take(self, parsed: list[dict[str, Any] | None]) -> dict[int, str]:
        """Widens the schema to hold the rows. What could not be held is left out, and told of."""
        self.record = bounded(learn(self.record, [row for row in parsed if row]))
        return {}

    def _read(self, text: Column) -> pa.RecordBatch | None:
        """The fast way; None if any record is not as expected."""
        fields = [field for field in self.record if field.name != MORE]
        if not fields or not _look_like_objects(text):
            return None
        lines = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
        data = pc.binary_join(lines, "\n")[0].as_buffer()
        try:
            table = pj.read_json(
                pa.BufferReader(data),
                read_options=pj.ReadOptions(use_threads=False, block_size=max(data.size, 1 << 16)),
                parse_options=pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="error"),
            )
            table.validate()  # lists of several nulls and nothing else come out broken
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        # Each value gives at least one row, since it starts and ends as an object does. More is two in one.
        if table.num_rows != len(text) or _differs(table, text):
            return None
        if len(fields) < len(self.record):
            table = table.append_column(pa.field(MORE, TEXT), pa.nulls(len(text), TEXT))
        return table.combine_chunks().to_batches()[0]


class SuppliedColumns(JsonColumns):
    """By the schema that was supplied, and no other: a value that does not fit is a bad record."""

    def __init__(self, supplied: str) -> None:
        super().__init__(supplied)
        self._doc = json.loads(supplied)

    @property
    def schema(self) -> str:
        return ""

    def _take(self, parsed: list[dict[str, Any] | None]) -> dict[int, str]:
        bad = {}
        for number, row in enumerate(parsed):
            if row is not None and (why := misfit(row, self._doc)):
                parsed[number] = None
                bad[number] = f"value does not fit spec.source.value.schema: {why}"
        return bad


def _look_like_objects(text: Column) -> bool:
    """Whether each value starts with `{` and ends with `}`: then none can borrow its end from the next."""
    if not pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py():
        text = pc.ascii_trim(text, " \t\r\n")
        return bool(pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py())
    return True


def _differs(table: pa.Table, text: Column) -> bool:
    """Whether doubles may not be what was written: NaN, which is no JSON, or a whole number that was rounded."""
    doubles = [leaf for column in table.columns for chunk in column.chunks for leaf in _doubles(chunk)]
    if not all(pc.all(pc.is_finite(leaf), min_count=0).as_py() for leaf in doubles):
        return True
    largest = max((pc.max(pc.abs(leaf)).as_py() or 0.0 for leaf in doubles), default=0.0)
    return largest >= EXACT and bool(pc.any(pc.match_substring_regex(text, LONG_NUMBER)).as_py())


def _doubles(column: Column) -> Iterator[Column]:
    if column.type.equals(DOUBLE):
        yield column
    elif pa.types.is_struct(column.type):
        for number in range(column.type.num_fields):
            yield from _doubles(column.field(number))
    elif pa.types.is_list(column.type):
        yield from _doubles(column.flatten())


def _parse_each(text: Column) -> tuple[list[dict[str, Any] | None], dict[int, str]]:
    rows: list[dict[str, Any] | None] = []
    bad: dict[int, str] = {}
    for number, value in enumerate(text.to_pylist()):
        try:
            rows.append(parse(value))
        except NotARow as error:
            rows.append(None)
            bad[number] = f"value is {error}" if str(error).startswith("not") else f"value {error}"
    return rows, bad


def _rows(parsed: list[dict[str, Any] | None], record: pa.StructType) -> pa.RecordBatch:
    """Goes by what each row has, not by what it might have: rows of wide tables are mostly empty."""
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
            columns[MORE][number] = _text(rest)
    if not columns:
        # A batch of no columns would forget how many rows it has.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(parsed), pa.struct([])))
    arrays = [pa.array(columns[field.name], field.type) for field in record]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(record)))


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kind.equals(TEXT):
        return value if isinstance(value, str) else _text(value)
    if kind.equals(DOUBLE):
        return float(value)  # Arrow refuses whole numbers beyond 2**53, even those that doubles hold
    if pa.types.is_struct(kind):
        return {f.name: _fitted(value.get(f.name), f.type) for f in kind}
    if pa.types.is_list(kind):
        return [_fitted(item, kind.value_type) for item in value]
    return value


def _text(value: Any) -> str:
    """As JSON. Not by recursion: what nests too deeply for columns may nest too deeply for Python as well."""
    written: list[str] = []
    left: list[Any] = [value]
    while left:
        match left.pop():
            case Number() as verbatim:
                written.append(verbatim)
            case dict() as fields:
                parts = [part for name, inner in fields.items() for part in (COMMA, name, COLON, inner)]
                left += [Number("}"), *reversed(parts[1:]), Number("{")]
            case list() as items:
                parts = [part for item in items for part in (COMMA, item)]
                left += [Number("]"), *reversed(parts[1:]), Number("[")]
            case Real() as number:
                written.append(number.text)
            case scalar:
                written.append(json.dumps(scalar, ensure_ascii=False))
    return "".join(written)
