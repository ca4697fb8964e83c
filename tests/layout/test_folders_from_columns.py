"""Fields from decoded columns give the same folders as fields from raw values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3sink_job.decode import json as module
from s3sink_job.decode.decoder import Decoder
from s3sink_job.layout.escaping import MISSING
from s3sink_job.layout.folders import folders_of
from s3sink_job.layout.settings import LayoutItem, ObjectLayout
from s3sink_job.shape.origin import OWN_FIELDS
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import batch_of
from tests.encodings import changed, encoding

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


def columns(*items: LayoutItem, envelope: tuple[str, ...] = ()) -> Encoding:
    return changed(encoding(format="Parquet"), envelope=envelope, layout=ObjectLayout(items=items))


def both_ways(values: list[bytes], wanted: Encoding) -> tuple[list[Any], list[Any]]:
    """The folders of all good records, from columns and from raw values."""
    batch = batch_of(*values).select(["partition", "offset", *wanted.columns])
    built = wanted.row_builder("orders").build(batch)
    refused = set(built.bad.messages)
    ways = []
    for decoded in (built.decoded, Decoder(wanted.decoding).decode(batch)):
        found = folders_of(decoded, wanted.grouping, "orders", 3, ROOM)
        assert found is not None
        bad = decoded.bad.messages
        ways.append([bad.get(n, folder) for n, folder in enumerate(found.to_pylist()) if n not in refused])
    return ways[0], ways[1]


@pytest.mark.parametrize("envelope", [(), ("key", "value")])
@pytest.mark.parametrize("path", [("a",), ("b",), ("b", "c"), ("x",), ("a", "b")])
@given(found=records)
def test_columns_give_the_same_folders_as_values(
    found: list[Any], path: tuple[str, ...], envelope: tuple[str, ...]
) -> None:
    values = [json.dumps(record).encode() for record in found]

    with_rows, without = both_ways(values, columns(LayoutItem("Field", "f", path), envelope=envelope))

    assert with_rows == without


@pytest.mark.parametrize(
    "written", ["-0", "0", "1.50", "1e3", "12345678901234567890", '"DE"', "true", "7", "null", "{}"]
)
@pytest.mark.parametrize("beside", ['"text"', "1", "2.5", "{}"])
def test_numbers_stay_as_they_are_written_for_any_type_of_column(written: str, beside: str) -> None:
    values = [f'{{"a":{one}}}'.encode() for one in (written, beside)]

    with_rows, without = both_ways(values, columns(LayoutItem("Field", "f", ("a",))))

    assert with_rows == without


BY_DAY = LayoutItem("Time", "", ("a",), "Field", "yyyy-MM-dd")


@given(found=records)
@example(found=[{"a": 1e17}])
def test_times_are_the_same(found: list[Any]) -> None:
    values = [json.dumps(record).encode() for record in [{"a": 1_700_000_000}, {"a": "2026-01-01T00:00:00Z"}, *found]]

    with_rows, without = both_ways(values, columns(BY_DAY))

    assert with_rows == without


def test_a_time_with_more_digits_than_a_double_is_in_the_same_folder() -> None:
    values = [b'{"a":1700006399.99999999999999}', b'{"a":"2026-01-01T00:00:00Z"}']

    with_rows, without = both_ways(values, columns(BY_DAY))

    assert with_rows == without


@pytest.mark.parametrize("meta", ["Kafka", "Airbyte"])
def test_meta_columns_are_not_fields_for_folders(meta: str) -> None:
    """Otherwise each record would have its own folder, by its offset or id."""
    for name in (*OWN_FIELDS[meta], "a"):
        item = LayoutItem("Field", "f", (name,))
        wanted = changed(
            encoding(format="Parquet", meta=meta), flatten=meta == "Airbyte", layout=ObjectLayout(items=(item,))
        )

        with_rows, without = both_ways([b'{"a":"x"}', b'{"a":"x"}'], wanted)

        assert with_rows == without == ["f=x" if name == "a" else f"f={MISSING}"] * 2


def test_values_of_plain_columns_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module, "json_fields")
    wanted = columns(
        LayoutItem("Field", "f", ("a",)), LayoutItem("Field", "g", ("b", "c")), LayoutItem("Field", "h", ("d",))
    )
    batch = batch_of(b'{"a":"DE","b":{"c":7},"d":true}').select(["partition", "offset", *wanted.columns])
    built = wanted.row_builder("orders").build(batch)

    found = folders_of(built.decoded, wanted.grouping, "orders", 3, ROOM)

    assert found is not None
    assert found.to_pylist() == ["f=DE/g=7/h=true"]
