"""Records are transformed again, by `verify` or a repair, exactly as they were when their slice was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.flush.manifest import InputTypes
from s3sink_job.shape.input_fields import noted_type
from s3sink_job.shape.row_builder import BuiltRows
from s3sink_job.shape.transformer import TypesChanged
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, batch_of
from tests.encodings import encoding

Outcome = dict[int, Any]
"""What became of each record, by its number: its row, "filtered" or "bad"."""


@dataclass
class Written:
    """A slice."""

    numbers: range
    outcome: Outcome
    inputs: InputTypes


def outcome(found: BuiltRows, numbers: range) -> Outcome:
    kept = [number for number, keep in zip(numbers, _keep(found, len(numbers)), strict=True) if keep]
    bad = {record.row for record in found.bad}
    rows = [_plain(row) for row in found.rows.to_pylist()]
    mine = {kept[at]: "bad" if at in bad else row for at, row in enumerate(rows)}
    return {number: mine.get(number, "filtered") for number in numbers}


def _keep(found: BuiltRows, count: int) -> list[bool]:
    return [True] * count if found.keep is None else found.keep.to_pylist()


def _plain(row: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, default=str, sort_keys=True)


def batch(values: list[Any], numbers: range) -> pa.RecordBatch:
    chosen = [None if values[n] is None else json.dumps(values[n]).encode() for n in numbers]
    return batch_of(*chosen)


def flushed(wanted: Encoding, values: list[Any], size: int) -> Iterator[tuple[Written, KnownColumns | None]]:
    """The slices that a sink would write, and the columns that it knows behind each."""
    start, known = 0, None
    while start < len(values):
        builder = wanted.row_builder(TOPIC, known=known)
        found: Outcome = {}
        for at in range(start, len(values), size):
            numbers = range(at, min(at + size, len(values)))
            try:
                found |= outcome(builder.build(batch(values, numbers)), numbers)
            except TypesChanged:
                break
        assert found, "a slice has at least one batch"
        known = builder.schema
        yield Written(range(start, start + len(found)), found, builder.input_types), known
        start += len(found)


def assert_same_again(transform: dict[str, Any], values: list[Any], size: int, nulls: str = "Include") -> int:
    """How many slices there were."""
    wanted = encoding(format="Parquet", transform=transform, nulls=nulls)
    slices = list(flushed(wanted, values, size))
    for known in (None, slices[-1][1]):
        for part, _ in slices:
            inputs = tuple((tuple(path), kind) for path, kind in json.loads(json.dumps(part.inputs)))
            again = wanted.with_input_types(inputs).row_builder(TOPIC, known=known)
            assert outcome(again.build(batch(values, part.numbers)), part.numbers) == part.outcome
    return len(slices)


SCALARS = st.sampled_from([None, 0, 1, 17, -1.5, True, "", "x", "1", "none"])
"""Without whole numbers beyond 2**53: where two fields become one, those beside fractions depend on the batch."""
INNER = st.dictionaries(st.sampled_from(["b", "c"]), SCALARS | st.lists(SCALARS, max_size=2), max_size=2)
VALUES = st.dictionaries(st.sampled_from(["a", "b", "c", "a_b"]), SCALARS | INNER, max_size=3)
EVENTS = st.fixed_dictionaries(
    {"op": st.sampled_from(["c", "u", "d", "t", "x", 1])},
    optional={"before": st.none() | INNER | SCALARS, "after": INNER | SCALARS, "source": INNER | SCALARS},
)
EXPRESSIONS = [
    "length(to_json(a)) < 10",
    "coalesce(c, 'none') <> '1'",
    "CAST(a AS VARCHAR) <> 'x'",
    "a.b = 1",
    "c < '10'",
    "TRY_CAST(c AS INTEGER) > 0",
]
COMPUTED = ["sha256(to_json(a)) AS s", "coalesce(c, 'none') AS c2", "CAST(b AS VARCHAR) AS b2", "a.b::VARCHAR AS ab"]
STEPS: list[list[dict[str, Any]]] = [
    [],
    [{"type": "Flatten"}, {"type": "Rename", "field": "a.b", "as": "a"}],
    [{"type": "Rename", "field": "b", "as": "c"}],
    [{"type": "Extract", "field": "a"}],
    [{"type": "Hoist", "field": "a"}],
    [{"type": "Cast", "fields": ["c"], "to": "Int32"}, {"type": "Mask", "fields": ["a"]}],
]


@given(
    st.lists(VALUES | st.none(), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(COMPUTED),
    st.sampled_from(STEPS),
    st.sampled_from(["Include", "Skip"]),
)
@example([{"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}], 1, EXPRESSIONS[0], COMPUTED[0], [], "Include")
@example([{"a": 1}, {"a": 1, "c": 1}], 1, EXPRESSIONS[1], COMPUTED[1], [], "Include")
@example([{"a": {}}], 1, EXPRESSIONS[0], COMPUTED[3], [], "Include")
@example([{}, {"a": None}], 1, EXPRESSIONS[0], COMPUTED[0], STEPS[4], "Include")
@settings(max_examples=150, deadline=None)
def test_records_of_a_slice_are_transformed_again_as_they_were(
    values: list[Any], size: int, where: str, select: str, steps: list[dict[str, Any]], nulls: str
) -> None:
    assert_same_again({"where": where, "select": [select], "steps": steps}, values, size, nulls)


@given(st.lists(EVENTS, min_size=1, max_size=10), st.integers(1, 4), st.sampled_from(EXPRESSIONS))
@settings(max_examples=100, deadline=None)
def test_change_events_of_a_slice_are_unwrapped_again_as_they_were(values: list[Any], size: int, where: str) -> None:
    options = {"addFields": ["op", "source.b"], "deletes": "Drop"}
    select = ["sha256(to_json(a)) AS s", "coalesce(c, 'none') AS c2", "__source_b::VARCHAR AS b"]
    assert_same_again({"unwrap": "Debezium", "debezium": options, "where": where, "select": select}, values, size)


def test_a_new_field_costs_one_short_slice_and_stable_fields_none() -> None:
    grows = [{"n": 1}] * 6 + [{"n": 1, "c": "new"}, {"n": 2}] * 6
    assert assert_same_again({"where": "n > 0"}, grows, 2) == 1
    assert assert_same_again({"where": "n > 0 AND coalesce(c, '') <> 'x'"}, grows, 2) == 2


def test_what_no_record_had_is_noted_as_null() -> None:
    builder = encoding(format="Parquet", transform={"where": "coalesce(a.b, c, d) IS NULL"}).row_builder(TOPIC)
    builder.build(batch_of(b'{"a": {"x": 1}, "d": null}'))
    assert builder.input_types == ((("a", "b"), '"null"'), (("c",), '"null"'), (("d",), '"null"'))


def test_notes_of_earlier_releases_take_what_is_known_for_fields_that_they_lack() -> None:
    wanted = encoding(format="Parquet", transform={"where": "n = 1 AND coalesce(c, 5) = 5"})
    known = KnownColumns(pa.struct([("n", pa.string()), ("c", pa.int64())]))
    again = wanted.with_input_types(((("n",), '"int64"'),)).row_builder(TOPIC, known=known)
    assert again.build(batch_of(b'{"n": 1}', b'{"n": 2}', b'{"n": 1, "c": 4}')).decoded.batch.num_rows == 1


@pytest.mark.parametrize(
    ("path", "noted"),
    [
        (("a", "b"), (("a", "b"), pa.int64())),
        (("a", "c", "d"), (("a", "c"), pa.null())),
        (("n", "x"), (("n",), pa.int64())),
        (("m", "key", "x"), (("m", "key"), pa.string())),
    ],
)
def test_a_field_without_a_type_is_noted_by_its_parent(path: tuple[str, ...], noted: Any) -> None:
    record = [("a", pa.struct([("b", pa.int64())])), ("n", pa.int64()), ("m", pa.map_(pa.string(), pa.string()))]
    assert noted_type(pa.struct(record), path) == noted
