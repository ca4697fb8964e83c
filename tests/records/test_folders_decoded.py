"""Fields taken from decoded columns: the same folders as by a look at the values themselves, only sooner."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3sink_job.encoding import Encoding
from s3sink_job.flush.escaping import MISSING
from s3sink_job.layout import Item, Layout
from s3sink_job.records import folders as module
from s3sink_job.records.decode import open_decoder
from s3sink_job.records.folders import folders_of
from s3sink_job.records.origin import OWN_FIELDS
from tests.records.batches import batch_of, encoding

ROOM = 900
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["true", "0", "-0", "1.50", "{}", "[1]", "null", "DE"]),
)
anything = st.one_of(
    scalars, st.lists(scalars, max_size=2), st.dictionaries(st.sampled_from("ab"), scalars, max_size=2)
)
records = st.lists(
    st.fixed_dictionaries({}, optional={"a": anything, "b": st.dictionaries(st.sampled_from("cd"), anything)}),
    min_size=1,
    max_size=6,
)


def columns(*items: Item, envelope: tuple[str, ...] = ()) -> Encoding:
    return replace(encoding(format="Parquet"), envelope=envelope, layout=Layout(items=items))


def both_ways(values: list[bytes], wanted: Encoding) -> tuple[list[Any], list[Any]]:
    """The folders of all records that are no error, with the rows and without."""
    batch = batch_of(*values).select(["partition", "offset", *wanted.columns])
    decoded = open_decoder(wanted, "orders").decode(batch)
    ways = []
    for rows in (decoded.rows, None):
        found, bad = folders_of(batch, wanted, "orders", 3, ROOM, rows)
        assert found is not None
        ways.append(
            [bad.rows.get(n, folder) for n, folder in enumerate(found.to_pylist()) if n not in decoded.bad.rows]
        )
    return ways[0], ways[1]


@pytest.mark.parametrize("envelope", [(), ("key", "value")])
@pytest.mark.parametrize("path", [("a",), ("b",), ("b", "c"), ("x",), ("a", "b")])
@given(found=records)
def test_the_rows_tell_the_same_folders_as_the_values(
    found: list[Any], path: tuple[str, ...], envelope: tuple[str, ...]
) -> None:
    values = [json.dumps(record).encode() for record in found]

    with_rows, without = both_ways(values, columns(Item("Field", "f", path), envelope=envelope))

    assert with_rows == without


@pytest.mark.parametrize(
    "written", ["-0", "0", "1.50", "1e3", "12345678901234567890", '"DE"', "true", "7", "null", "{}"]
)
@pytest.mark.parametrize("beside", ['"text"', "1", "2.5", "{}"])
def test_numbers_stay_as_they_are_written_whatever_their_column_became(written: str, beside: str) -> None:
    values = [f'{{"a":{one}}}'.encode() for one in (written, beside)]

    with_rows, without = both_ways(values, columns(Item("Field", "f", ("a",))))

    assert with_rows == without


BY_DAY = Item("Time", "", ("a",), "Field", "yyyy-MM-dd")


@given(found=records)
@example(found=[{"a": 1e17}])
def test_times_are_the_same(found: list[Any]) -> None:
    values = [json.dumps(record).encode() for record in [{"a": 1_700_000_000}, {"a": "2026-01-01T00:00:00Z"}, *found]]

    with_rows, without = both_ways(values, columns(BY_DAY))

    assert with_rows == without


def test_a_time_with_more_digits_than_a_double_has_is_in_the_same_folder_however_it_is_read() -> None:
    values = [b'{"a":1700006399.99999999999999}', b'{"a":"2026-01-01T00:00:00Z"}']

    with_rows, without = both_ways(values, columns(BY_DAY))

    assert with_rows == without


@pytest.mark.parametrize("meta", ["Kafka", "Airbyte"])
def test_columns_of_ours_are_no_fields_to_make_folders_of(meta: str) -> None:
    """Else each record had a folder of its own, by its offset or its id."""
    for name in (*OWN_FIELDS[meta], "a"):
        item = Item("Field", "f", (name,))
        wanted = replace(encoding(format="Parquet", meta=meta), flatten=meta == "Airbyte", layout=Layout(items=(item,)))

        with_rows, without = both_ways([b'{"a":"x"}', b'{"a":"x"}'], wanted)

        assert with_rows == without == ["f=x" if name == "a" else f"f={MISSING}"] * 2


def test_values_of_plain_columns_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module, "json_fields")
    wanted = columns(Item("Field", "f", ("a",)), Item("Field", "g", ("b", "c")), Item("Field", "h", ("d",)))
    batch = batch_of(b'{"a":"DE","b":{"c":7},"d":true}').select(["partition", "offset", *wanted.columns])
    rows = open_decoder(wanted, "orders").decode(batch).rows

    found, _ = folders_of(batch, wanted, "orders", 3, ROOM, rows)

    assert found is not None
    assert found.to_pylist() == ["f=DE/g=7/h=true"]
