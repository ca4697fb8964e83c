"""SQL on batches: exact types, one row in and at most one out, and a row that fails fails alone."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.decode.bad_records import Stage
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.shape import sql_budget, sql_engine
from s3sink_job.shape.row_builder import BuiltRows, RowBuilder
from s3sink_job.shape.sql_engine import evaluate
from s3sink_job.shape.transformer import TypesChanged
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, Record, batch_of
from tests.encodings import encoding


def wanted(transform: dict[str, Any], **fields: Any) -> Encoding:
    return encoding(**{"format": "Parquet", "transform": transform, **fields})


def builder(transform: dict[str, Any], **fields: Any) -> RowBuilder:
    return wanted(transform, **fields).row_builder(TOPIC)


def build(transform: dict[str, Any], *records: Any, **fields: Any) -> BuiltRows:
    values = [json.dumps(one).encode() if isinstance(one, dict) else one for one in records]
    return builder(transform, **fields).build(batch_of(*values))


def rows(transform: dict[str, Any], *records: Any, **fields: Any) -> list[dict[str, Any]]:
    found = build(transform, *records, **fields)
    assert found.bad.messages == {}
    return found.rows.to_pylist()


ORDERS = [
    {"id": 1, "amount": 5, "ship": {"country": "de", "zip": "1"}, "tags": ["a", "b"]},
    {"id": 2, "amount": -5, "ship": {"country": "fr"}},
    {"id": 3, "amount": None, "ship": None},
]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("amount > 0", [1]),
        ("amount <= 0 OR amount IS NULL", [2, 3]),
        ("ship.country = 'fr'", [2]),
        ("ship['country'] = 'fr'", [2]),
        ("list_contains(tags, 'a')", [1]),
        ("missing IS NULL", [1, 2, 3]),
        ("missing > 0", []),
        ("missing.field = 'x'", []),
        ("_offset = 71", [2]),
        ("_topic = 'orders' AND _partition = 3 AND _key = 'k' AND id < 3", [1, 2]),
        ("_timestamp >= TIMESTAMPTZ '2023-11-14 22:13:20Z'", [1, 2, 3]),
        ("year(_timestamp) = 2022", []),
        ("NULL", []),
        ("true", [1, 2, 3]),
    ],
)
def test_a_condition_keeps_the_records_for_which_it_is_true(where: str, ids: list[int]) -> None:
    assert [row["id"] for row in rows({"where": where}, *ORDERS)] == ids


def test_selected_columns_have_names_and_an_order() -> None:
    select = ["ship.country", "* EXCLUDE (tags, ship)", "amount * 2 AS double", "_offset AS at", "_headers['h'] AS h"]
    (row,) = rows({"select": select, "where": "id = 1"}, *ORDERS)
    assert list(row.items()) == [("country", "de"), ("id", 1), ("amount", 5), ("double", 10), ("at", 70), ("h", None)]
    assert rows({"select": ["* REPLACE (-amount AS amount)"], "where": "id = 2"}, *ORDERS)[0]["amount"] == 5
    assert rows({"select": ["*", "'x' AS amount"], "where": "id = 2"}, *ORDERS)[0]["amount"] == "x"


def test_columns_that_are_selected_as_they_are_keep_their_exact_types() -> None:
    kinds = {
        "a": pa.decimal128(38, 10),
        "b": pa.decimal256(60, 2),
        "c": pa.timestamp("ns", "UTC"),
        "d": pa.binary(4),
        "e": pa.time32("ms"),
        "f": pa.map_(pa.string(), pa.struct([("x", pa.float32())])),
        "g": pa.date32(),
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    found = builder({"select": ["*", "n + 1 AS m"]}, value="Avro", value_schema=json.dumps(schema))
    assert found.build(batch_of(b"\x02")).rows.schema.types == [pa.int32(), pa.int32()]
    columns = {name: pa.nulls(2, kind) for name, kind in kinds.items()}
    usable = {name: kind for name, kind in kinds.items() if name not in "bd"}
    computed = evaluate([f"coalesce({name}, NULL)" for name in usable], {n: columns[n] for n in usable}, 2)
    widened = {**usable, "e": pa.time64("us")}
    assert [column.type for column in computed.columns] == list(widened.values())


def test_results_have_types_that_columns_can_have() -> None:
    sql = ["1::TINYINT", "1::UBIGINT", "1::HUGEINT", "1::UINTEGER", "[1::SMALLINT]", "TIMESTAMP_S '2020-01-01'", "'x'"]
    found = evaluate(sql, {}, 1).columns
    assert [column.type for column in found] == [
        *(pa.int32(), pa.decimal128(20, 0), pa.decimal128(38, 0), pa.int64()),
        *(pa.list_(pa.int32()), pa.timestamp("ms"), pa.string()),
    ]
    bad = build({"select": ["INTERVAL 1 DAY AS x"]}, {"a": 1}).bad
    assert "which no column can have: cast it" in bad.messages[0]


def test_a_row_that_fails_is_a_bad_record_and_its_neighbours_are_written() -> None:
    values = [{"n": str(n)} for n in range(1000)]
    values[17], values[600] = {"n": "x"}, {"n": "y"}
    found = build({"select": ["n", "CAST(n AS INTEGER) AS m"], "where": "n <> '5'"}, *values)
    assert found.keep is not None
    assert {bad.row: (bad.stage, bad.reason) for bad in found.bad} == dict.fromkeys(
        [16, 599], (Stage.TRANSFORM, "ExpressionFailed")
    )
    text = "transform.select 'CAST(n AS INTEGER) AS m': Conversion Error: Could not convert string 'x' to INT32"
    assert found.bad.messages[16] == text
    good = [row for place, row in enumerate(found.rows.to_pylist()) if place not in (16, 599)]
    assert good == [{"n": str(n), "m": n} for n in range(1000) if n not in (5, 17, 600)]


@given(st.lists(st.sampled_from(["1", "2", "x", None]), min_size=1, max_size=40))
@settings(max_examples=30, deadline=None)
def test_every_record_is_kept_filtered_or_bad_and_in_order(values: list[str | None]) -> None:
    found = build({"where": "CAST(n AS INTEGER) = 1"}, *({"n": value} for value in values))
    offsets = found.decoded.batch.column("offset").to_pylist()
    assert offsets == [70 + place for place, value in enumerate(values) if value in ("1", "x")]
    bad = {offsets[record.row] - 70 for record in found.bad}
    assert bad == {place for place, value in enumerate(values) if value == "x"}
    kept = len(values) if found.keep is None else sum(found.keep.to_pylist())
    assert kept == len(offsets) == found.rows.num_rows


def test_a_condition_on_headers_key_or_metadata_needs_no_decoding() -> None:
    broken = Record(b"\xffnot json", headers=[("kind", b"a"), ("kind", b"b")])
    good = Record(b'{"n": 1}', headers=[("kind", b"b"), ("kind", b"a")])
    found = build({"where": "_headers['kind'] = 'a'"}, broken, good, Record(b"[", headers=None))
    assert (found.rows.to_pylist(), found.bad.messages) == ([{"n": 1}], {})
    found = build({"where": "_key = 'k' AND _offset > 70 AND n = 1"}, broken, good)
    assert (found.rows.to_pylist(), found.bad.messages) == ([{"n": 1}], {})


def test_a_condition_on_a_key_that_cannot_be_decoded_makes_a_bad_record() -> None:
    """Without a key nobody knows whether the condition is true, so it must not count as filtered."""
    broken, other = Record(b'{"n": 1}', key=b"\xff"), Record(b'{"n": 2}', key=b"other")
    found = build({"where": "_key = 'k'"}, other, broken, Record(b'{"n": 3}', key=b"k"))
    assert [(bad.row, bad.stage, bad.reason) for bad in found.bad] == [(0, Stage.DECODE, "NotUtf8")]
    assert found.decoded.batch.column("offset").to_pylist() == [71, 72]


def test_a_header_that_is_no_text_counts_as_none() -> None:
    record = Record(b"{}", headers=[("h", b"\xff")])
    assert rows({"where": "_headers['h'] IS NULL", "select": ["_offset"]}, record) == [{"_offset": 70}]


def test_only_the_needed_columns_of_kafka_are_read() -> None:
    assert wanted({"where": "a > 1"}).columns == ("value",)
    assert wanted({"where": "_headers['h'] = 'x' AND _topic = 't'"}).columns == ("value", header_column("h"))
    assert wanted({"where": "_headers['h'] = 'x'", "select": ["_headers"]}).columns == ("value", "headers")
    assert wanted({"where": "_headers['h'] = 'x'"}, meta="Kafka").columns == ("key", "value", "timestamp", "headers")
    assert wanted({"select": ["_key", "_timestamp"]}).columns == ("key", "value", "timestamp")
    assert wanted({"steps": [{"type": "Insert", "field": "t", "source": "Timestamp"}]}).columns == (
        "value",
        "timestamp",
    )


@pytest.mark.parametrize("value", [None, b"a", b"b", b"", b"\xff"])
def test_a_single_header_counts_as_it_does_among_all(value: bytes | None) -> None:
    record = Record(b'{"n": 1}', headers=[("h", b"a"), ("h", value)])
    batch, transform = batch_of(record), {"where": "_headers['h'] = 'a'"}
    single = batch.drop_columns(["headers"]).append_column(header_column("h"), pa.array([value], pa.binary()))
    kept = builder(transform).build(batch).rows.num_rows
    assert builder(transform).build(single).rows.num_rows == kept == (value == b"a")


def test_a_tombstone_stays_one() -> None:
    assert rows({"select": ["coalesce(a, 1) AS a", "'x' AS b"]}, None, {"a": 5}) == [
        {"a": None, "b": None},
        {"a": 5, "b": "x"},
    ]
    lines = build({"select": ["coalesce(a, 1) AS a"]}, None, {"a": 5}, format="Json").rows.column("line").to_pylist()
    assert lines == [b"null", b'{"a":1}'.replace(b"1", b"5")]


def test_lines_that_are_only_filtered_stay_byte_for_byte() -> None:
    found = build({"where": "a = 1"}, b'{ "a":1.0e0 }', b'{"a": 2}', format="Json")
    assert found.rows.column("line").to_pylist() == [b'{ "a":1.0e0 }']
    found = build({"where": "value LIKE 'a%'"}, b"ab", b"b", format="Text", value="String")
    assert found.rows.column("line").to_pylist() == [b"ab"]
    found = build({"where": "_offset = 71"}, b"\xff", b"\xfe", format="Bytes", value="Bytes")
    assert found.rows.column("value").to_pylist() == [b"\xfe"]


def test_folders_are_made_of_what_the_transform_left() -> None:
    found = build({"select": ["upper(c) AS c"]}, {"c": "de"}, {"c": None})
    assert found.decoded.fields("value", {("c",): False})[("c",)].rows().to_pylist() == ["DE", None]


def test_values_without_fields_can_be_given_some() -> None:
    assert rows({"select": ["upper(value) AS v", "length(value) AS n"]}, b"ab", value="String") == [{"v": "AB", "n": 2}]


def test_names_are_found_by_their_exact_case() -> None:
    assert rows({"select": ["Id + 1 AS a", "id + 1 AS b"]}, {"Id": 1, "id": 10}) == [{"a": 2, "b": 11}]


def test_a_type_that_changes_ends_the_slice_so_that_each_has_one() -> None:
    slice = builder({"where": "n < '10'"})
    slice.build(batch_of(b'{"n": 9, "other": 1}'))
    slice.build(batch_of(b'{"n": null, "other": "x"}'))
    assert slice.input_types == ((("n",), '"int64"'),)
    with pytest.raises(TypesChanged):
        slice.build(batch_of(b'{"n": "9"}'))
    whole = builder({"steps": [{"type": "Extract", "field": "a"}], "where": "b > 1"})
    for value in (b'{"a": {"b": 1}}', b'{"a": {"b": 2, "c": "new"}}', b'{"a": {"b": 3, "c": "d"}}'):
        whole.build(batch_of(value))
    assert slice.schema is not None
    assert slice.schema.record.field("n").type == pa.string()


def test_records_that_were_written_are_read_with_the_types_they_had() -> None:
    text = wanted({"where": "n < '10'"}).with_input_types(((("n",), '"text"'),))
    as_numbers = wanted({"where": "n < '10'"})
    batch = batch_of(b'{"n": 9}')
    assert text.row_builder(TOPIC).build(batch).rows.num_rows == 0
    assert as_numbers.row_builder(TOPIC).build(batch).rows.num_rows == 1
    nested = wanted({"where": "a.b > 1"}).with_input_types(((("a", "b"), '"double"'),))
    known = KnownColumns(pa.struct([("x", pa.int64())]))
    assert nested.row_builder(TOPIC, known=known).build(batch_of(b'{"a": {"b": 2}}')).rows.num_rows == 1


def test_a_field_that_one_odd_record_made_text_names_the_cause_and_the_way_out() -> None:
    events, odd = {"unwrap": "Debezium", "debezium": {"addFields": []}}, {"op": "c", "after": "x"}
    for transform, *values in (
        ({"where": "a.b = 1"}, {"a": {"b": 1}}, {"a": 5}),
        ({"select": ["a.b AS c"]}, {"a": {"b": 1}}, {"a": 5}),
        (events, {"op": "c", "after": {"b": 1}}, odd),
    ):
        messages = build(transform, *values).bad.messages
        assert list(messages) == [0, 1]
        assert "one record with another value, maybe an earlier one, has made it text for all" in messages[0]
        assert "source.value.schema" in messages[0]
    fields = [{"name": "a", "type": "long"}]
    declared = {"value": "Avro", "value_schema": json.dumps({"type": "record", "name": "R", "fields": fields})}
    (message,) = build({"where": "a.b = 1"}, b"\x02", **declared).bad.messages.values()
    assert message == "transform.where: field a is int64 and has no fields: a.b does not exist"


def test_an_expression_that_takes_too_long_is_a_fault_and_not_a_hanging_task(monkeypatch: pytest.MonkeyPatch) -> None:
    long = pa.array(["a" * 4_000] * 30_000)
    monkeypatch.setattr(sql_budget, "SECONDS", 0.01)
    found = evaluate([f"sha256(v || '{n}')" for n in range(40)], {"v": long}, len(long))
    assert set(found.faults.values()) == {"took too long"}
    monkeypatch.undo()
    assert evaluate(["length(v)"], {"v": long.slice(0, 2)}, 2).columns[0].to_pylist() == [4_000, 4_000]


def test_a_prepared_statement_keeps_nothing_of_its_last_batch_in_memory() -> None:
    before = pa.total_allocated_bytes()
    texts = pa.array(["a" * 4_000] * 4_000)
    assert evaluate(["length(v) > 3"], {"v": texts}, len(texts)).columns[0].null_count == 0
    del texts
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_result_that_needs_too_much_memory_is_a_fault_of_its_record() -> None:
    sizes = pa.array(["a" * 10, "a" * 20_000_000, "a" * 30])
    found = evaluate(["repeat(v, 16)"], {"v": sizes}, 3)
    assert set(found.faults) == {1}
    assert [len(found.columns[0][row].as_py()) for row in (0, 2)] == [160, 480]


def test_results_of_a_batch_have_a_limit_and_the_rows_beyond_it_are_bad() -> None:
    """Memory is finite: without a limit the pod is killed, starts again, and is killed again."""
    texts = pa.array(["a" * 100_000] * 2_800 + ["b"])
    found = evaluate(["upper(v)"], {"v": texts}, len(texts))
    limit = sql_budget.MOST_BYTES // 100_000
    assert found.faults == dict.fromkeys(range(limit, len(texts)), "needs too much memory")
    assert pa.compute.binary_length(found.columns[0]).to_pylist() == [100_000] * limit + [None] * (2_801 - limit)


def test_a_row_that_needs_too_much_memory_alone_does_not_spoil_the_next_ones() -> None:
    sql = ", ".join(f"v || '{n}' AS x{n}" for n in range(60)).split(", ")
    texts = pa.array(["a", "a" * 5_000_000, "c"])
    found = evaluate([text.partition(" AS")[0] for text in sql], {"v": texts}, 3)
    assert found.faults == {1: "needs too much memory"}
    assert [column.to_pylist() for column in found.columns] == [[f"a{n}", None, f"c{n}"] for n in range(60)]


def test_constants_take_no_more_memory_than_a_batch_may() -> None:
    select = [f"repeat('x', 1000) || {n} AS c{n}" for n in range(500)]
    found = build({"select": select}, *({"a": n} for n in range(1_000)))
    offsets = [bad.row for bad in found.bad]
    assert offsets == list(range(offsets[0], 1_000))
    assert 500 < offsets[0] < 540
    assert found.bad.messages[999] == "transform.select: needs too much memory"


def test_all_expressions_of_a_batch_have_one_time_also_to_find_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_budget, "SECONDS", 0.2)
    slow = " || ".join(f"sha256(v || '{n}')" for n in range(12))
    values = [{"v": "a" * 10_000} for _ in range(2_000)]
    slice = builder({"where": f"v > 'b' OR length({slow}) > 1", "select": [f"{slow} AS x{n}" for n in range(12)]})
    batch = batch_of(*(json.dumps(one).encode() for one in values))
    began = time.monotonic()
    found = slice.build(batch)
    assert time.monotonic() - began < 5
    assert set(found.bad.messages.values()) <= {"transform.where: took too long", "transform.select: took too long"}
    assert len(found.bad) > 1_000
    # The next batch has a time of its own.
    assert slice.build(batch_of(b'{"v": "a"}')).bad.messages == {}


def test_when_the_time_is_over_no_good_record_gets_the_fault_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_budget, "SECONDS", 0.3)
    found = evaluate(["CAST(v AS INTEGER)"], {"v": pa.array(["x", "1"] * 50_000)}, 100_000)
    assert len(found.faults) > 50_000
    assert {row % 2 for row, why in found.faults.items() if why.startswith("Conversion Error")} == {0}
    assert {why for row, why in found.faults.items() if row % 2} == {"took too long"}


def test_an_expression_without_a_usable_type_is_named_beside_one_that_fails() -> None:
    select = ["CAST(n AS INTEGER) AS m", "INTERVAL 1 DAY AS x"]
    (message,) = build({"select": select}, {"n": "x"}).bad.messages.values()
    assert message.startswith("transform.select 'CAST(n AS INTEGER) AS m': ")


def test_nothing_of_python_can_be_read() -> None:
    secret = pa.table({"v": ["secret"]})
    assert secret.num_rows
    assert "secret" in evaluate(["(SELECT v FROM secret)"], {}, 1).faults[0]


def test_statements_are_kept_by_text_and_types_and_forgotten_when_there_are_many() -> None:
    numbers, words = pa.array([1, None, 3]), pa.array(["1", "x", "30"])
    for _ in range(2):
        for more in range(2 * sql_engine.STATEMENTS):
            assert evaluate([f"c0 + {more}"], {"c0": numbers}, 3).columns[0].to_pylist() == [1 + more, None, 3 + more]
        # The same text with other types is another statement; the same types with other rows is the same one.
        assert evaluate(["c0 > '2'"], {"c0": words}, 3).columns[0].to_pylist() == [False, True, True]
        assert evaluate(["c0 > '2'"], {"c0": numbers}, 3).columns[0].to_pylist() == [False, None, True]
        assert evaluate(["c0 > '2'"], {"c0": words[2:]}, 1).columns[0].to_pylist() == [True]
    failed = evaluate(["CAST(c0 AS INTEGER)"], {"c0": words}, 3)
    assert (failed.columns[0].to_pylist(), list(failed.faults)) == ([1, None, 30], [1])
    # A statement that cannot be planned leaves nothing behind that would be in the way of the next one.
    assert len(evaluate(["c0 + [1]"], {"c0": words}, 3).faults) == 3
    assert evaluate(["upper(c0)"], {"c0": words}, 3).columns[0].to_pylist() == ["1", "X", "30"]
