"""Columns as JSON text: the same as Python writes, for every type and every slice of a batch."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.text import json_of, number_text, quoted
from s3sink_job.columns.types import DOUBLE, TEXT
from tests.columns.kinds import kinds, values


def one_by_one(value: Any) -> str | None:
    def filled(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {name: filled(field) for name, field in inner.items() if field is not None}
        return [filled(item) for item in inner] if isinstance(inner, list) else inner

    return None if value is None else json.dumps(filled(value), ensure_ascii=False, separators=(",", ":"))


@settings(max_examples=300)
@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(values(kind), min_size=1, max_size=6))), st.data())
def test_any_column_is_written_as_python_writes_its_values(
    drawn: tuple[pa.DataType, list[Any]], data: st.DataObject
) -> None:
    kind, content = drawn
    start = data.draw(st.integers(0, len(content) - 1))

    column = pa.array(content, kind).slice(start)

    found = json_of(column)

    found.validate(full=True)
    assert found.type == TEXT
    expected = [one_by_one(value) for value in column.to_pylist()]
    assert [None if text is None else json.loads(text) for text in found.to_pylist()] == [
        None if text is None else json.loads(text) for text in expected
    ]
    if not has_doubles(kind):
        assert found.to_pylist() == expected


def has_doubles(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(has_doubles(field.type) for field in kind)
    return has_doubles(kind.value_type) if pa.types.is_list(kind) else kind == DOUBLE


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e16)
@example(1e-6)
@example(1e-5)
@example(123456789012345680.0)
@example(-0.0)
@example(9007199254740992.0)
@example(-9007199254740994.0)
@example(1000000000000000.5)
@example(1e10)
@example(9999999999.0)
@example(12345678901.5)
@example(-12345678901.0)
def test_a_double_has_the_text_that_arrow_gives_its_column(number: float) -> None:
    assert json_of(pa.array([number])).to_pylist() == [number_text(number)]


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=8), min_size=1))
@example(["".join(map(chr, range(0x80))), "\b\f", None])
def test_text_is_quoted_as_python_does(texts: list[str | None]) -> None:
    assert quoted(pa.array(texts, TEXT)).to_pylist() == [
        None if text is None else json.dumps(text, ensure_ascii=False) for text in texts
    ]


@pytest.mark.parametrize("kind", [pa.struct([]), pa.struct([("a", pa.null())]), pa.list_(pa.null())])
def test_columns_without_values_keep_their_number_of_rows(kind: pa.DataType) -> None:
    empty: Any = [] if pa.types.is_list(kind) else {}

    assert json_of(pa.array([empty, None, empty], kind)).to_pylist() == [json.dumps(empty), None, json.dumps(empty)]
