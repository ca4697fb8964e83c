"""Only Parquet columns with repeated values get a dictionary: objects get smaller, not larger."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.formats.parquet_dictionaries import _sample, repeating

CHANCE = random.Random(7)


def drawn(count: int, values: int) -> list[str]:
    return [f"{CHANCE.randrange(values):016x}" for _ in range(count)]


def size(table: pa.Table, use_dictionary: list[str] | bool) -> int:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", use_dictionary=use_dictionary)
    return len(file.getvalue())


@pytest.mark.parametrize("count", [10, 1_000, 10_000, 200_000])
def test_a_column_without_repeated_values_has_no_dictionary(count: int) -> None:
    assert repeating(pa.table({"id": range(count), "session": drawn(count, 2**64)})) == []


@pytest.mark.parametrize("count", [100, 1_000, 10_000, 200_000])
def test_a_column_with_few_distinct_values_has_a_dictionary(count: int) -> None:
    assert repeating(pa.table({"country": drawn(count, 30), "one": ["x"] * count})) == ["country", "one"]


def test_values_repeated_much_later_give_a_dictionary_if_there_are_enough_rows() -> None:
    """Of fifty thousand values, ten thousand rows repeat few; half a million rows have each ten times."""
    values = drawn(500_000, 50_000)
    assert repeating(pa.table({"customer": values[:10_000]})) == []
    assert repeating(pa.table({"customer": values})) == ["customer"]


def test_values_repeated_at_once_give_a_dictionary() -> None:
    assert repeating(pa.table({"order": [number // 3 for number in range(100_000)]})) == ["order"]


def test_the_sample_comes_from_all_chunks_of_the_rows() -> None:
    """The first rows may be unlike all others."""
    pieces = [pa.table({"kind": [f"{first}-{n}" for n in range(100)]}) for first in range(3)]
    assert repeating(pa.concat_tables([*pieces, *[pa.table({"kind": ["same"] * 1_000})] * 50])) == ["kind"]


def test_columns_within_others_are_named_as_parquet_names_them() -> None:
    unlike, alike = list(range(2_000)), [1] * 2_000
    table = pa.table(
        {
            "a.b": alike,
            "s": [{"x": [{"y": one, "z": same}], "t": same} for one, same in zip(unlike, alike, strict=True)],
            "l": [[same, same] for same in alike],
            "n": pa.nulls(2_000, pa.int64()),
        }
    )
    names = ["a.b", "s.x.list.element.z", "s.t", "l.list.element", "n"]
    assert repeating(table) == names
    file = io.BytesIO()
    pq.write_table(table, file, use_dictionary=repeating(table))
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert [c.path_in_schema for c in columns if c.has_dictionary_page] == names


@pytest.mark.parametrize("values", [5, 500, 5_000, 2**64])
@pytest.mark.parametrize("count", [1_000, 20_000])
def test_objects_are_as_small_as_with_the_better_choice(count: int, values: int) -> None:
    table = pa.table({"value": drawn(count, values)})
    assert size(table, repeating(table)) <= 1.25 * min(size(table, True), size(table, False))


def test_the_sample_of_long_values_is_small() -> None:
    table = pa.table({"text": pa.array([bytes([number]) * 2**20 for number in range(64)])})
    assert repeating(table) == []
    assert _sample(table).num_rows == 4


leaves = st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))
row = {"i": leaves, "l": st.none() | st.lists(leaves, max_size=3), "s": st.none() | st.just({"t": "x"})}


@given(st.lists(st.fixed_dictionaries(row), max_size=30))
def test_the_paths_are_columns_of_the_object_for_any_rows(rows: list[dict[str, Any]]) -> None:
    kind = pa.struct([("i", pa.int64()), ("l", pa.list_(pa.int64())), ("s", pa.struct([("t", pa.string())]))])
    table = pa.Table.from_struct_array(pa.array(rows, kind))
    assert set(repeating(table)) <= {"i", "l.list.element", "s.t"}
