"""Inferred types only widen, with the same result in any order, and no value changes."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.cast import Inexact, as_text_at, cast_column, cast_rows, may_round
from s3sink_job.columns.known_columns import KnownColumns, known_from_text, known_to_text
from s3sink_job.columns.types import (
    BOOL,
    DOUBLE,
    EMPTY,
    INT,
    MORE,
    NULL,
    TEXT,
    bounded,
    from_text,
    holds_something,
    leaves,
    merge,
    merge_all,
    writable,
)
from tests.columns.kinds import EXACT, batch, kinds, records, rows, values


def unordered(kind: pa.DataType) -> Any:
    """A type without the order of its fields."""
    if pa.types.is_struct(kind):
        return frozenset((field.name, unordered(field.type)) for field in kind)
    return ("list", unordered(kind.value_type)) if pa.types.is_list(kind) else str(kind)


def same(value: Any, cast: Any) -> bool:
    """Whether a cast value is still the same: text holds strings as they are, or JSON of anything else."""
    if value is None:
        return cast is None
    if isinstance(value, dict) and isinstance(cast, dict):
        extra = {inner for name, inner in cast.items() if name not in value}
        return extra <= {None} and all(same(inner, cast[name]) for name, inner in value.items())
    if isinstance(value, list) and isinstance(cast, list):
        return len(value) == len(cast) and all(map(same, value, cast))
    if isinstance(value, str) or not isinstance(cast, str):
        return type(value) is type(cast) and value == cast if isinstance(value, bool) else bool(value == cast)
    return bool(json.loads(cast) == without_nulls(value))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_the_lattice_is_as_drawn() -> None:
    assert merge(INT, DOUBLE) == merge(DOUBLE, INT) == DOUBLE
    assert merge(BOOL, INT) == merge(TEXT, BOOL) == TEXT
    assert merge(EMPTY, pa.list_(NULL)) == TEXT
    assert merge(EMPTY, INT) == TEXT
    assert merge(pa.list_(INT), pa.list_(NULL)) == pa.list_(INT)
    assert merge(pa.struct([("a", INT)]), pa.struct([("b", TEXT)])) == pa.struct([("a", INT), ("b", TEXT)])


@given(kinds)
def test_a_type_merged_with_itself_or_with_nothing_stays(kind: pa.DataType) -> None:
    assert merge(kind, kind).equals(kind)
    assert merge(kind, NULL).equals(kind)
    assert merge(NULL, kind).equals(kind)


@given(kinds, kinds)
def test_it_does_not_matter_which_type_was_seen_first(one: pa.DataType, other: pa.DataType) -> None:
    assert unordered(merge(one, other)) == unordered(merge(other, one))


@given(kinds, kinds, kinds)
def test_it_does_not_matter_in_which_order_slices_are_merged(a: pa.DataType, b: pa.DataType, c: pa.DataType) -> None:
    assert unordered(merge(merge(a, b), c)) == unordered(merge(a, merge(b, c)))


@given(kinds, kinds)
def test_a_merged_type_is_never_narrower_than_either(one: pa.DataType, other: pa.DataType) -> None:
    both = merge(one, other)

    assert merge(both, one).equals(both)
    assert merge(both, other).equals(both)


@given(records, records)
def test_columns_keep_their_place_and_new_ones_come_last(known: pa.StructType, new: pa.StructType) -> None:
    names = [field.name for field in merge(known, new)]

    assert names[: len(known)] == [field.name for field in known]


@given(records)
def test_a_schema_is_read_back_as_it_was_written(record: pa.StructType) -> None:
    assert known_from_text(known_to_text(KnownColumns(record))).record.equals(record)


def test_no_text_is_a_record_without_fields() -> None:
    assert from_text("").equals(EMPTY)


@given(records, st.integers(2, 8))
def test_a_table_never_has_more_columns_than_the_limit(record: pa.StructType, most: int) -> None:
    within = bounded(record, most)

    assert sum(leaves(field.type) for field in within) <= most
    assert bounded(within, most).equals(within)
    left_over = [f.name for f in record if f.name not in {kept.name for kept in within}]
    assert not left_over or within[-1].equals(pa.field(MORE, TEXT))


@given(st.lists(records, min_size=1, max_size=5), st.integers(2, 6))
@example([pa.struct([("a", pa.struct([("x", INT)])), ("b", INT)]), pa.struct([("a", pa.struct([("y", INT)]))])], 3)
@example([pa.struct([("a", INT), ("b", INT)]), pa.struct([("c", INT)])], 2)
def test_a_column_is_kept_whatever_comes_later(seen: list[pa.StructType], most: int) -> None:
    known = EMPTY
    for record in seen:
        before, known = known, bounded(merge(known, record), most)
        assert merge(known, before).equals(known)


def test_nested_fields_become_text_before_a_field_loses_its_column() -> None:
    record = pa.struct([("a", pa.struct([("x", INT), ("y", INT)])), ("b", INT), ("c", INT)])

    assert bounded(record, 4) == pa.struct([("a", TEXT), ("b", INT), ("c", INT)])
    assert bounded(record, 3) == pa.struct([("a", TEXT), ("b", INT), (MORE, TEXT)])


@given(records)
def test_types_that_parquet_does_not_have_get_no_column(record: pa.StructType) -> None:
    def sound(kind: pa.DataType) -> bool:
        if pa.types.is_struct(kind):
            return len(kind) > 0 and all(sound(field.type) for field in kind)
        return sound(kind.value_type) if pa.types.is_list(kind) else not pa.types.is_null(kind)

    kept = writable(record)

    assert all(sound(field.type) for field in kept)
    assert [f.name for f in kept] == [f.name for f in record if holds_something(f.type)]
    assert writable(kept).equals(kept)


@st.composite
def narrow_rows_and_a_wider_type(draw: st.DrawFn) -> tuple[pa.StructType, list[dict[str, Any]], pa.StructType]:
    record = draw(records)
    return record, draw(rows(record)), merge(record, draw(records))


@settings(max_examples=300)
@given(narrow_rows_and_a_wider_type(), st.data())
def test_no_value_changes_when_its_column_widens(
    drawn: tuple[pa.StructType, list[dict[str, Any]], pa.StructType], data: st.DataObject
) -> None:
    record, content, wider = drawn
    assume(len(wider))
    start = data.draw(st.integers(0, len(content) - 1))
    count = data.draw(st.integers(1, len(content)))

    found = cast_rows(batch(record, content).slice(start, count), wider)

    found.validate(full=True)
    assert found.schema.equals(pa.schema(list(wider)))
    for value, cast in zip(content[start : start + count], found.to_pylist(), strict=True):
        assert same(value, cast)


@given(narrow_rows_and_a_wider_type())
def test_rows_without_columns_of_nulls_keep_all_values(
    drawn: tuple[pa.StructType, list[dict[str, Any]], pa.StructType],
) -> None:
    record, content, _ = drawn
    kept = writable(record)
    assume(len(kept))

    found = cast_rows(batch(record, content), kept)

    found.validate(full=True)
    assert found.num_rows == len(content)
    for field in kept:
        if field.type.equals(dict(zip([f.name for f in record], [f.type for f in record], strict=True))[field.name]):
            assert found.column(field.name).to_pylist() == [row[field.name] for row in content]


@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(values(kind), min_size=1, max_size=5))))
def test_any_type_can_become_text_and_null_stays_null(drawn: tuple[pa.DataType, list[Any]]) -> None:
    kind, content = drawn

    found = cast_column(pa.array(content, kind), TEXT).to_pylist()

    assert all(same(value, cast) for value, cast in zip(content, found, strict=True))


@pytest.mark.parametrize("number", [1.0, -0.0, 0.1, 1e300, 5e-324, 1e16, 123456789012345680.0, -1.7976931348623157e308])
def test_a_double_is_the_same_number_as_text(number: float) -> None:
    (text,) = cast_column(pa.array([number]), TEXT).to_pylist()

    assert json.loads(text) == number


LONG = EXACT + 1


@pytest.mark.parametrize(
    ("value", "kind", "wider", "path"),
    [
        (LONG, INT, DOUBLE, ("n",)),
        (-LONG, INT, DOUBLE, ("n",)),
        (2**63 - 1, INT, DOUBLE, ("n",)),
        ([1, None, LONG], pa.list_(INT), pa.list_(DOUBLE), ("n", "[]")),
        ({"m": LONG}, pa.struct([("m", INT)]), pa.struct([("m", DOUBLE)]), ("n", "m")),
        (
            [{"m": [LONG]}],
            pa.list_(pa.struct([("m", pa.list_(INT))])),
            pa.list_(pa.struct([("m", pa.list_(DOUBLE))])),
            ("n", "[]", "m", "[]"),
        ),
    ],
)
def test_a_whole_number_is_never_rounded_but_becomes_text_where_it_is(
    value: Any, kind: pa.DataType, wider: pa.DataType, path: tuple[str, ...]
) -> None:
    have, record = pa.struct([("n", kind)]), pa.struct([("k", BOOL), ("n", wider)])
    content = [{"n": None}, {"n": value}]

    assert may_round(have, record)
    with pytest.raises(Inexact) as caught:
        cast_rows(batch(have, content), record)
    assert caught.value.path == path

    exactly = as_text_at(record, path)
    assert not may_round(have, exactly)
    for row, cast in zip(content, cast_rows(batch(have, content), exactly).to_pylist(), strict=True):
        assert same(row, cast)


@pytest.mark.parametrize("number", [EXACT, -EXACT, 0, 1])
def test_whole_numbers_that_doubles_hold_become_doubles(number: int) -> None:
    assert cast_column(pa.array([number, None]), DOUBLE).to_pylist() == [number, None]


def test_a_long_number_outside_the_part_of_a_batch_does_not_matter() -> None:
    lists = pa.array([[LONG], [1], None, [2]], pa.list_(INT)).slice(1)

    assert cast_column(lists, pa.list_(DOUBLE)).to_pylist() == [[1.0], None, [2.0]]


def test_a_path_that_ends_in_text_already_changes_nothing() -> None:
    """Another object made the whole of `a` text, while this one still had it as columns."""
    record = pa.struct([("a", TEXT), ("b", pa.list_(TEXT))])

    assert as_text_at(record, ("a", "x")).equals(record)
    assert as_text_at(record, ("b", "[]", "y")).equals(record)
    assert as_text_at(record, ("gone", "y")).equals(record)


@given(records, st.data())
def test_a_field_named_like_the_step_into_a_list_is_not_confused_with_it(
    record: pa.StructType, data: st.DataObject
) -> None:
    assume(len(record))
    name = data.draw(st.sampled_from([field.name for field in record]))

    found = as_text_at(record, (name,))

    assert merge(found, record).equals(found)
    assert {f.name: f.type for f in found}[name] == TEXT


def test_many_types_are_merged_into_one() -> None:
    assert merge_all([pa.struct([("a", INT)]), pa.struct([("a", DOUBLE)]), pa.struct([("a", BOOL)])]) == pa.struct(
        [("a", TEXT)]
    )


@pytest.mark.parametrize(("have", "kind"), [(TEXT, INT), (DOUBLE, INT), (pa.list_(INT), EMPTY), (BOOL, INT)])
def test_rows_are_never_narrowed(have: pa.DataType, kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match="does not widen"):
        cast_column(pa.nulls(1, have), kind, ("a",))
