"""JSON objects as columns: every value is in its own row, and values that cannot be rows are reported."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.known_columns import KnownColumns, known_from_text, known_to_text
from s3sink_job.columns.types import MAX_DEPTH, MAX_LEAVES, MORE, bounded, from_text, leaves, merge
from s3sink_job.decode import json_columns
from s3sink_job.decode.json_columns import JsonColumns
from s3sink_job.decode.json_inference import MAX_NESTING
from s3sink_job.shape.columns import TIME
from s3sink_job.shape.headers import HEADERS
from s3sink_job.shape.origin import KAFKA_FIELDS
from tests.columns.kinds import records
from tests.columns.kinds import rows as rows_of
from tests.decode.batches import TOPIC, Record, batch_of, scalars, texts
from tests.encodings import encoding
from tests.shape.model import found_in, strictly

NAMES = st.sampled_from(["a", "b", "c", "A", "", "ä", 'q"\\', "list", "a.b", "[]"]) | texts.filter(lambda n: n != MORE)
numbers = st.sampled_from(
    [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 2**63 - 1, -(2**63), 2**63, 0.5, 1e300, 1.0]
)
inner_values = st.recursive(
    scalars | numbers,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(NAMES, inner_values, max_size=5)
object_texts = st.builds(
    lambda value, indent, ascii_only, around: (
        around[0] + json.dumps(value, indent=indent, ensure_ascii=ascii_only) + around[1]
    ),
    objects,
    st.sampled_from([None, None, 0, "\t"]),
    st.booleans(),
    st.tuples(*[st.sampled_from(["", "", " ", "\n", "\r\n\t"])] * 2),
)


class ExactColumns(JsonColumns):
    """Never by Arrow's reader."""

    def _read(self, text: pa.Array) -> None:
        return None


def binary(*values: str | bytes | None) -> pa.Array:
    return pa.array([v.encode() if isinstance(v, str) else v for v in values], pa.binary())


def decoded(columns: JsonColumns, values: pa.Array) -> tuple[pa.RecordBatch, dict[int, str]]:
    """The rows, and the messages of the bad ones."""
    rows, faults = columns.decode(values)
    return rows, {row: fault.prefixed("value").message for row, fault in faults.items()}


def taken(columns: JsonColumns, *values: str | bytes | None) -> list[dict[str, Any]]:
    """The rows of values that are all good."""
    rows, bad = decoded(columns, binary(*values))
    assert bad == {}
    assert rows.num_rows == len(values)
    rows.validate(full=True)
    return list(rows.to_pylist())


@settings(max_examples=150)
@given(st.lists(st.lists(object_texts, min_size=1, max_size=5), min_size=1, max_size=4))
@example([['{"a":1.5}'], [f'{{"a":{2**60}}}', '{"a":2}']])
@example([['{"a":{}}', '{"a":[]}']])
@example([['{"a":[{}]}'], ['{"a":[{"b":1}]}'], ['{"a":[[]]}']])
def test_every_value_is_found_again_in_its_row(batches: list[list[str]]) -> None:
    columns = JsonColumns()
    for values in batches:
        for value, row in zip(values, taken(columns, *values), strict=True):
            assert found_in(json.loads(value), row)


@given(st.lists(st.lists(object_texts, min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_column_never_changes_back_to_a_narrower_type(batches: list[list[str]]) -> None:
    columns = JsonColumns()
    for values in batches:
        before = columns.record
        rows, _ = decoded(columns, binary(*values))

        assert merge(columns.record, before).equals(columns.record)
        assert rows.schema.equals(pa.schema(list(columns.record)))
        assert known_from_text(known_to_text(KnownColumns(columns.record))).record.equals(columns.record)


@settings(max_examples=200)
@given(
    records.flatmap(rows_of).map(lambda rows: [json.dumps(row) for row in rows]) | st.lists(object_texts, min_size=1)
)
def test_arrows_reader_and_the_record_by_record_parser_give_the_same_rows(values: list[str]) -> None:
    known = ExactColumns()
    decoded(known, binary(*values))
    rows = JsonColumns(known.record)._read(pa.array(values, pa.string()))
    if rows is None:
        return

    exact = ExactColumns(known.record)

    assert rows.to_pylist() == taken(exact, *values)
    assert rows.schema.equals(pa.schema(list(exact.record)))
    assert exact.record == known.record


def test_a_batch_that_fits_the_schema_is_read_by_arrows_reader() -> None:
    """Otherwise the test above would prove nothing."""
    values = [
        '{"a":1,"b":"x","c":[1.5,null],"d":{"e":[{"f":true}]},"n":null}',
        ' {\n"d":{}, "b":"\\u00e4\\n"}\r\n',
        "{}",
    ]
    columns = JsonColumns()
    decoded(columns, binary(*values))

    rows = columns._read(pa.array(values, pa.string()))

    assert rows is not None
    assert rows.to_pylist() == taken(ExactColumns(columns.record), *values)


PIECES = [
    *'",:[]{}\\-+.eE01 \n\t\x00\x0b',
    *("NaN", "Infinity", "-Infinity", "null", "null\n", "true", ",]", ",}", "}{", "}\n{", "}null{", "}\x00{", "{}"),
    *("\\ud800", "\\udc00", "\\u", "\ufeff", "\u00a0", "1e400", "9007199254740993", "9" * 25, '"a":1,', '"a":1,"a":2'),
]
spoilt = st.builds(
    lambda text, at, cut, put: text[: at % (len(text) + 1)] + put + text[at % (len(text) + 1) + cut :],
    object_texts,
    st.integers(0, 1000),
    st.integers(0, 2),
    st.sampled_from(PIECES),
)
KNOWN = ['{"a":1,"b":1.5,"c":"x","A":[1.5],"ä":{"a":1,"b":[{"a":true}]},"":null,"list":{},"[]":[]}']
bits = st.sampled_from(
    [
        *('{"a":1}', '{"b":1}', '{"b":9007199254740993}', '{"b":1e999}', '{"b":NaN}', '{"b":-Infinity}', '{"A":[NaN]}'),
        *('{"c":"}"}', '{"c":"{', '"}', '{"a":1', "}", "{", '{"a":', "1}", "{}", "{}{}", "{}null{}", "{}\x00}", ""),
        *("null", "5", "[1]", '"x"', "true", " ", "\n", "{}\n{}", '{"ä":{"a":1', "}}", '{"ä":{}', '{"c":"\\udc00"}'),
        *('{"a":1,}', '{"a":01}', '{"a":1}//', '{"a":1,"a":1}', '{"ä":{"a":1,"a":2}}', '{"c":"a\nb"}', '{"c":"\x01"}'),
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(bits | spoilt | object_texts, min_size=3, max_size=12))
@example(['{"a":1}'] * 3 + ['{"a":1.5}', '{"b":1}'])
@example(["{}", '{"a":null}', "{", '{"a":{}}', '{"a":[]}'])
def test_a_first_batch_has_the_columns_of_all_its_records(monkeypatch: pytest.MonkeyPatch, values: list[str]) -> None:
    """Whatever the first of them look like."""
    monkeypatch.setattr(json_columns, "SAMPLE", 2)
    columns, exact = JsonColumns(), ExactColumns()

    found, wanted = decoded(columns, binary(*values)), decoded(exact, binary(*values))

    assert columns.record == exact.record
    assert (found[0].to_pylist(), found[1]) == (wanted[0].to_pylist(), wanted[1])


def test_only_a_few_records_of_a_first_batch_are_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def counted(text: pa.Array) -> Any:
        parsed.append(len(text))
        return parse_each(text)

    parse_each = json_columns._parse_each
    monkeypatch.setattr(json_columns, "_parse_each", counted)
    values = [json.dumps({"id": n, "text": str(n), "inner": {"half": n / 2}}) for n in range(3000)]

    assert taken(JsonColumns(), *values) == [json.loads(value) for value in values]
    assert parsed == [json_columns.SAMPLE]


@settings(max_examples=250)
@given(st.lists(bits | spoilt | object_texts, min_size=1, max_size=6), st.booleans())
@example(["{}{}{}\x00}", "{}", "{}"], True)
@example(['{"c":"}', '"}', "{}"], True)
@example(['{"b":NaN}'], True)
def test_only_values_that_cannot_be_rows_are_reported_and_no_row_shifts(values: list[str], known: bool) -> None:
    columns = JsonColumns()
    if known:
        decoded(columns, binary(*KNOWN))

    rows, bad = decoded(columns, binary(*values))

    assert rows.num_rows == len(values)
    for number, value in enumerate(values):
        try:
            expected = strictly(value)
        except ValueError:
            expected = None
        if isinstance(expected, dict) and MORE not in expected:
            assert number not in bad
            assert found_in(expected, rows.slice(number, 1).to_pylist()[0])
        else:
            assert bad[number].startswith("value ")


WORDS = {
    '{"a":1}{"a":2}': "value is not JSON",
    '{"a":1}\n{"a":2}': "value is not JSON",
    '{"a":1} null {"a":2}': "value is not JSON",
    '{"a":': "value is not JSON",
    "}": "value is not JSON",
    "": "value is not JSON",
    " \n": "value is not JSON",
    "null": "value is not a JSON object but null",
    "\nnull\n": "value is not a JSON object but null",
    "5": "value is not a JSON object but",
    "[1]": "value is not a JSON object but an array",
    '"x"': "value is not a JSON object but a string",
    "true": "value is not a JSON object but a boolean",
    '{"a":1,"a":1}': "value has the field 'a' twice",
    '{"d":{"e":1,"e":2}}': "value has the field 'e' twice",
    '{"a":1,"\\u0061":1}': "value has the field 'a' twice",
    '{"c":"\\ud800"}': "value is not JSON: a lone surrogate",
    '{"c":"\\uDC00x"}': "value is not JSON: a lone surrogate",
    '{"\\ud800":1}': "value is not JSON: a lone surrogate",
    '{"c":"a\nb"}': "value is not JSON",
    '{"c":"\x00"}': "value is not JSON",
    '{"b":NaN}': "value is not JSON: NaN",
    '{"b":Infinity}': "value is not JSON: Infinity",
    '{"b":[-Infinity]}': "value is not JSON: -Infinity",
    '{"a":1,}': "value is not JSON",
    '\ufeff{"a":1}': "value is not JSON",
    '{"_more":"x"}': "value has a field '_more'",
    '{"a":1}\x00': "value is not JSON",
    '{"a":1}{"a":2}{"a":3}\x00}': "value is not JSON",
    b"\xff": "value is not UTF-8",
    b'{"c":"\xed\xa0\x80"}': "value is not UTF-8",
    '{"a":' + "[" * 5_000 + "]" * 5_000 + "}": "value is nested too deeply",
    '{"a":' * 5_000 + "1" + "}" * 5_000: "value is nested too deeply",
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("value", "words"), WORDS.items(), ids=lambda v: repr(v)[:40])
def test_a_bad_record_is_named_and_its_neighbours_keep_their_rows(
    value: str | bytes, words: str, known: bool, place: int
) -> None:
    columns = JsonColumns()
    if known:
        decoded(columns, binary('{"a":1,"b":1.5,"c":"x","d":{"e":1}}'))
    values: list[str | bytes] = ['{"a":71}', '{"a":72}']
    values.insert(place, value)

    rows, bad = decoded(columns, binary(*values))

    assert set(bad) == {place}
    assert bad[place].startswith(words)
    numbers = rows.column("a").to_pylist()
    assert numbers.pop(place) is None
    assert numbers == [71, 72]
    assert set(rows.slice(place, 1).to_pylist()[0].values()) == {None}


@pytest.mark.parametrize("value", ["null", " null", "null ", "\tnull\r\n", "", "null{}", "{}null", "5", "[null]"])
def test_values_that_would_crash_arrows_reader_never_reach_it(value: str) -> None:
    columns = JsonColumns(from_text('{"struct":{"a":"int64"}}'))

    assert columns._read(pa.array([value, "{}"], pa.string())) is None
    assert columns._read(pa.array(["{}", value], pa.string())) is None


@pytest.mark.parametrize("value", ["{}null{}", "{}\nnull{}", "{}\nnull\n{}", "{} null null {}", "{}\r\n\nnull {}"])
def test_a_null_between_two_objects_in_one_value_is_a_bad_record(value: str) -> None:
    columns = JsonColumns(from_text('{"struct":{"a":"int64"}}'))

    for values in ([value], [value, "{}"], ["{}", value]):
        assert set(decoded(columns, binary(*values))[1]) == {values.index(value)}


@pytest.mark.parametrize("number", [2**53 + 1, 2**60 + 1, -(2**53) - 1, 2**63 - 1])
@pytest.mark.parametrize("shape", ['{"n":%s}', '{"n":[%s]}', '{"n":{"m":[{"k": %s }]}}', '{"n":[0.5,%s,1]}'])
@pytest.mark.parametrize("known", ["", "0.5", "1"])
def test_a_long_number_that_meets_doubles_keeps_every_digit(number: int, shape: str, known: str) -> None:
    columns = JsonColumns()
    if known:
        taken(columns, shape % known)
    values = [shape % number, shape % "0.5", shape % "1"]

    rows = taken(columns, *values)

    assert all(found_in(json.loads(value), row) for value, row in zip(values, rows, strict=True))
    assert str(number) in str(rows[0])


@pytest.mark.parametrize("text", ["1e400", "-1E+999", "9" * 30, "-" + "9" * 5000, str(2**63), str(-(2**63) - 1)])
@pytest.mark.parametrize("known", ["", '{"n":1}', '{"n":0.5}', '{"n":"x"}'])
def test_a_number_beyond_every_column_is_kept_as_its_text(text: str, known: str) -> None:
    columns = JsonColumns()
    if known:
        taken(columns, known)

    assert taken(columns, f'{{"n":{text}}}')[0]["n"] == text
    assert taken(columns, f'{{"n":[{{"m":{text}}}]}}')[0]["n"] == f'[{{"m":{text}}}]'


def test_a_tiny_number_is_rounded_like_in_any_reader_of_doubles() -> None:
    columns = JsonColumns()

    assert taken(columns, '{"n":1e-400}', '{"n":5e-324}') == taken(columns, '{"n":1e-400}', '{"n":5e-324}')


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 100, MAX_NESTING - 1])
@pytest.mark.parametrize(("open", "close"), [('{"a":', "}"), ("[", "]")])
def test_fields_nested_too_deeply_for_columns_are_text(depth: int, open: str, close: str) -> None:
    value = '{"a":' + open * depth + "1e400" + close * depth + "}"
    columns = JsonColumns()

    for _ in range(2):
        cell: Any = taken(columns, value)[0]["a"]
        written = ""
        while not isinstance(cell, str):
            written += "{" if isinstance(cell, dict) else "["
            cell = cell["a"] if isinstance(cell, dict) else cell[0]
        assert len(written) <= MAX_DEPTH
        assert cell == open * (depth - len(written)) + "1e400" + close * (depth - len(written))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("open", "close"), [('{"a":', "}"), ("[", "]"), ('[{"a":"]}]}", "b":', "}]")])
def test_the_limit_of_nesting_depends_on_the_row_alone(open: str, close: str, known: bool) -> None:
    levels = len(close)
    columns = JsonColumns(from_text('{"struct":{"a":"text"}}' if known else ""))

    def nested(depth: int) -> str:
        return '{"a":' + open * (depth // levels) + "1" + close * (depth // levels) + "}"

    rows, bad = decoded(columns, binary(nested(MAX_NESTING - 2), nested(MAX_NESTING + 2), '{"a":"[[[[{{{{"}'))

    assert rows.num_rows == 3
    assert set(bad) == {1}
    assert f"more than {MAX_NESTING} levels" in bad[1]


def test_brackets_in_a_string_do_not_count_as_nesting() -> None:
    text = "[{" * MAX_NESTING + '\\"' + "[{" * MAX_NESTING

    assert taken(JsonColumns(), f'{{"a":"{text}"}}') == [{"a": json.loads(f'"{text}"')}]


def test_a_string_without_an_end_is_refused_quickly() -> None:
    never_ending = '{"msg":"' + '{\\"k\\":[{\\"v\\":\\"text\\"}]},' * 1_000
    started = time.process_time()

    _, bad = decoded(JsonColumns(), binary(never_ending, never_ending + "\\"))

    assert [why.split(":")[0] for why in bad.values()] == ["value is not JSON"] * 2
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "number",
    ["0.1234567890123456789012", "-12345678901234567890.5", "1e-400", "4.9406564584124654e-324", "0.10000000000000001"],
)
def test_text_keeps_the_digits_that_a_double_would_round(number: str) -> None:
    columns = JsonColumns(from_text('{"struct":{"e":"text"}}'))
    wide = JsonColumns(bounded(pa.struct([(f"f{n}", pa.int64()) for n in range(MAX_LEAVES)])))

    assert taken(columns, f'{{"e":{number}}}', f'{{"e":{{"p":[{number},1.50]}}}}') == [
        {"e": number},
        {"e": f'{{"p":[{number},1.5]}}'},
    ]
    assert taken(wide, f'{{"new":{number}}}')[0][MORE] == f'{{"new":{number}}}'


def test_a_lone_surrogate_in_a_nested_field_is_a_bad_record() -> None:
    value = '{"a":' + "[" * 400 + '"\\ud800"' + "]" * 400 + "}"

    assert set(decoded(JsonColumns(), binary(value))[1]) == {0}


def in_one_record(count: int) -> list[str]:
    return [json.dumps({f"f{n}": n for n in range(count)})]


def one_a_record(count: int) -> list[str]:
    return [json.dumps({f"f{n}": n}) for n in range(count)]


def below_one_field(count: int) -> list[str]:
    return [json.dumps({"f0": 0, "a": {f"f{n}": n}, "f1": 1}) for n in range(count)]


@pytest.mark.parametrize("values", [in_one_record(10_000), one_a_record(10_000)], ids=["one record", "one each"])
def test_ten_thousand_fields_fit_into_a_limited_number_of_columns(values: list[str]) -> None:
    columns = JsonColumns()
    started = time.process_time()

    for _ in range(2):
        rows, bad = decoded(columns, binary(*values))

        assert bad == {}
        assert sum(leaves(field.type) for field in columns.record) <= MAX_LEAVES
        found = {
            name: n for name in rows.schema.names if name != MORE for n in rows.column(name).drop_null().to_pylist()
        }
        for more in rows.column(MORE).drop_null().to_pylist():
            found |= json.loads(more)
        assert found == {f"f{n}": n for n in range(10_000)}

    assert time.process_time() - started < 30


def test_a_field_with_ten_thousand_fields_is_text_and_others_keep_their_columns() -> None:
    values = below_one_field(10_000)
    columns = JsonColumns()

    rows = taken(columns, *values)

    assert [field.name for field in columns.record] == ["f0", "a", "f1"]
    assert [json.loads(row["a"]) for row in rows] == [json.loads(value)["a"] for value in values]
    assert {(row["f0"], row["f1"]) for row in rows} == {(0, 1)}


@given(st.lists(st.lists(object_texts, min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_a_part_of_a_batch_gives_the_same_as_its_records_alone(batches: list[list[str]], data: st.DataObject) -> None:
    columns, alone = JsonColumns(), JsonColumns()
    for values in batches:
        start = data.draw(st.integers(0, len(values) - 1))
        whole = binary("{", *values, b"\xff")

        rows, bad = columns.decode(whole.slice(start + 1, len(values) - start))

        assert bad == {}
        assert rows.to_pylist() == taken(alone, *values[start:])


def test_times_as_text_stay_text() -> None:
    stamps = ["2024-01-01T00:00:00Z", "2024-01-01", "2024-01-01 00:00:00"]
    columns = JsonColumns()

    for _ in range(2):
        assert [row["t"] for row in taken(columns, *(json.dumps({"t": t}) for t in stamps))] == stamps


def test_text_that_looks_like_a_number_stays_text_and_a_number_a_number() -> None:
    columns = JsonColumns()

    for _ in range(2):
        assert [r["t"] for r in taken(columns, '{"t":"1"}', '{"t":"true"}', '{"t":"null"}')] == ["1", "true", "null"]
    assert [r["t"] for r in taken(columns, '{"t":1}', '{"t":false}', '{"t":null}', '{"t":{"a":[]}}')] == [
        *("1", "false", None),
        '{"a":[]}',
    ]


def test_a_tombstone_is_a_row_of_nulls() -> None:
    columns = JsonColumns()

    assert taken(columns, '{"a":1}', None) == [{"a": 1}, {"a": None}]
    assert taken(columns, None, '{"a":1}') == [{"a": None}, {"a": 1}]
    assert taken(columns, None, None) == [{"a": None}] * 2


def test_tombstones_alone_are_counted_though_they_have_no_column() -> None:
    rows, bad = decoded(JsonColumns(), binary(None, "{}", None))

    assert (rows.num_rows, bad) == (3, {})


def test_a_column_that_was_written_as_text_is_text_from_then_on() -> None:
    columns = JsonColumns()
    taken(columns, '{"a":{"b":[1]}}')

    columns.widen_to_text(("a", "b", "[]"))

    assert taken(columns, '{"a":{"b":[2]}}') == [{"a": {"b": ["2"]}}]


def kafka_rows(
    *records: Record | bytes | None, meta: str = "Kafka", **formats: str
) -> tuple[pa.RecordBatch, dict[int, str]]:
    wanted = encoding(format="Parquet", meta=meta, **formats)
    found = wanted.row_builder(TOPIC).build(batch_of(*records).select(["partition", "offset", *wanted.columns]))
    found.rows.validate(full=True)
    return found.rows, found.bad.messages


def test_kafka_columns_have_their_own_types() -> None:
    rows, bad = kafka_rows(Record(b'{"a":1}', key=b"k", headers=[("h", b"\xff")], millis=1_700_000_000_123), None)

    assert bad == {}
    assert list(zip(rows.schema.names, rows.schema.types, strict=True)) == [
        ("_key", pa.string()),
        ("_topic", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", TIME),
        ("_headers", HEADERS),
        ("a", pa.int64()),
    ]
    assert rows.slice(0, 1).to_pylist() == [
        {
            "_key": "k",
            "_topic": TOPIC,
            "_partition": 3,
            "_offset": 70,
            "_timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
            "_headers": [{"key": "h", "value": b"\xff"}],
            "a": 1,
        }
    ]
    assert rows.column("_offset").to_pylist() == [70, 71]


any_headers = st.none() | st.lists(st.tuples(texts, st.none() | st.binary(max_size=3)), max_size=3)


@given(st.lists(any_headers, min_size=1, max_size=6), st.data())
def test_any_headers_are_kept_in_their_order(drawn: list[Any], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(drawn) - 1))
    batch = batch_of(*(Record(b"{}", headers=headers) for headers in drawn)).slice(start)

    found = encoding(format="Parquet", meta="Kafka").row_builder(TOPIC).build(batch).rows

    assert [[(h["key"], h["value"]) for h in row] for row in found.column("_headers").to_pylist()] == [
        headers or [] for headers in drawn[start:]
    ]


@pytest.mark.parametrize("name", KAFKA_FIELDS)
def test_a_field_named_like_a_kafka_column_is_a_bad_record(name: str) -> None:
    clash = json.dumps({"a": 2, name: 1}).encode()
    builder = encoding(format="Parquet", meta="Kafka").row_builder(TOPIC)

    for _ in range(2):
        found = builder.build(batch_of(b'{"a":1}', clash, b'{"a":3}'))
        assert set(found.bad.messages) == {1}
        assert repr(name) in found.bad.messages[1]
        assert found.rows.schema.names == [*KAFKA_FIELDS, "a"]
        assert found.rows.column("a").to_pylist()[::2] == [1, 3]


def test_a_field_named_like_a_kafka_column_is_kept_without_kafka_columns() -> None:
    rows, bad = kafka_rows(b'{"_key":1}', meta="None")

    assert (rows.to_pylist(), bad) == ([{"_key": 1}], {})


def test_a_bad_value_does_not_hide_a_bad_key_of_another_record() -> None:
    _, bad = kafka_rows(Record(b"{}", key=b"\xff"), Record(b"{", key=b"\xff"), Record(b"\xff"), b"{}")

    assert set(bad) == {0, 1, 2}
    assert bad[0].startswith("key is not UTF-8")
    assert bad[1].startswith("value is not JSON")
    assert bad[2].startswith("value is not UTF-8")


@pytest.mark.parametrize(
    ("value", "content", "kind"),
    [
        ("Json", [b'{"a":\n[1]}', b"5", None], pa.string()),
        ("String", [b"a\nb", b"", None], pa.string()),
        ("Bytes", [b"\xff\x00", b"", None], pa.binary()),
    ],
)
@pytest.mark.parametrize(("meta", "name"), [("None", "value"), ("Kafka", "value"), ("Quix", "_value")])
def test_values_without_fields_are_one_column(
    value: str, content: list[bytes | None], kind: pa.DataType, meta: str, name: str
) -> None:
    if value == "Json" and meta != "Quix":
        return

    rows, bad = kafka_rows(*content, meta=meta, value=value)

    expected = [c if c is None or kind == pa.binary() else c.decode().replace("\n", " ") for c in content]
    if value == "String":
        expected = [c if c is None else c.decode() for c in content]
    assert bad == {}
    assert rows.column(name).type == kind
    assert rows.column(name).to_pylist() == expected


def test_quix_columns_are_timestamp_key_and_value() -> None:
    rows, bad = kafka_rows(b'{"_key":1}', None, meta="Quix")

    assert bad == {}
    assert rows.to_pylist() == [
        {"_timestamp": 1_700_000_000_123, "_key": "k", "_value": '{"_key":1}'},
        {"_timestamp": 1_700_000_000_123, "_key": "k", "_value": None},
    ]


@pytest.mark.parametrize(("value", "bad_value"), [("Json", b"{"), ("Json", b"\xff"), ("String", b"\xff")])
def test_a_bad_value_is_reported_also_where_it_is_one_column(value: str, bad_value: bytes) -> None:
    _, bad = kafka_rows(b"1", bad_value, meta="Quix", value=value)

    assert set(bad) == {1}
    assert bad[1].startswith("value is not ")


@pytest.mark.parametrize(
    ("format", "key", "expected"),
    [
        ("String", "ä".encode(), "ä"),
        ("Bytes", b"\xff", b"\xff"),
        ("Json", b'{"a":\n1}', '{"a": 1}'),
        ("Json", None, None),
    ],
)
@pytest.mark.parametrize("meta", ["Kafka", "Quix"])
def test_keys_of_every_format_are_kept(format: str, key: bytes | None, expected: Any, meta: str) -> None:
    rows, bad = kafka_rows(Record(b"{}", key=key), meta=meta, key=format)

    assert (rows.column("_key").to_pylist(), bad) == ([expected], {})
