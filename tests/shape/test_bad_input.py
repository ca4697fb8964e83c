"""Bad and unusual input in every format: kept, widened or refused, with the same result for every reader."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.cast import cast_rows
from s3sink_job.columns.known_columns import known_from_text
from s3sink_job.columns.types import TEXT, from_text
from s3sink_job.decode.json_columns import JsonColumns
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, Record, batch_of
from tests.encodings import changed, encoding
from tests.shape.model import shapes

COLUMNS = sorted(name for name, format in OUTPUT_FORMATS.items() if format.rows.has_columns)
LINES = ["Json", "Text"]
KEPT = [
    *(encoding(format=format) for format in LINES),
    *(encoding(format=format, meta=meta) for format in COLUMNS for meta in ("Quix", "Airbyte")),
    encoding(meta="Airbyte"),
    changed(encoding(), envelope=("key", "value")),
]
"""Encodings that write a JSON value as its text."""


def rows_of(wanted: Encoding, *values: bytes | None, schema: str = "") -> tuple[list[dict[str, Any]], dict[int, str]]:
    found = wanted.row_builder(TOPIC, known=known_from_text(schema)).build(batch_of(*values))
    return found.rows.to_pylist(), found.bad.messages


@pytest.mark.parametrize("format", COLUMNS)
def test_a_field_that_is_an_object_here_and_a_number_there_becomes_text(format: str) -> None:
    values = [b'{"a":{"b":1}}', b'{"a":5}', b'{"a":"x"}', b'{"a":[1,null]}', b'{"a":null}']
    expected = ['{"b":1}', "5", "x", "[1,null]", None]

    rows, bad = rows_of(encoding(format=format), *values)

    assert bad == {}
    assert [row["a"] for row in rows] == expected
    for value, text in zip(values, expected, strict=True):
        later, bad = rows_of(encoding(format=format), value, schema='{"struct":{"a":"text"}}')
        assert (later, bad) == ([{"a": text}], {})


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "9" * 400, "1e400", "-1E+999"])
@pytest.mark.parametrize("known", ["null", "int64", "double", "text"])
@pytest.mark.parametrize("format", COLUMNS)
def test_a_number_beyond_every_type_is_kept_exactly_as_text(format: str, known: str, number: str) -> None:
    schema = json.dumps({"struct": {"a": known}})

    rows, bad = rows_of(encoding(format=format), f'{{"a":{number}}}'.encode(), b'{"a":1}', schema=schema)

    assert bad == {}
    assert rows == [{"a": number}, {"a": "1"}]


TWICE = [b'{"a":1,"a":1}', b'{"a":1,"a":null}', b'{"a":null,"a":null}', b'{"a":1,"\\u0061":2}', b'{"a":"x","a":{}}']
DEEP = [b'{"b":{"c":1,"c":2}}', b'{"b":[{"c":1,"c":1}]}', b'{"d":{"x":1,"x":2}}']
KNOWN = '{"struct":{"a":"int64","b":{"struct":{"c":"int64"}},"d":"text"}}'


@pytest.mark.parametrize("value", [*TWICE, *DEEP])
@pytest.mark.parametrize("schema", ["", KNOWN])
@pytest.mark.parametrize("format", COLUMNS)
def test_a_record_with_a_field_twice_is_a_bad_record(format: str, schema: str, value: bytes) -> None:
    for wanted in (encoding(format=format), changed(encoding(format=format), envelope=("value",))):
        rows, bad = rows_of(wanted, b'{"a":1}', value, b'{"a":3}', schema=schema)

        assert set(bad) == {1}
        assert "twice: it is not clear which one counts" in bad[1]
        assert len(rows) == 3


@pytest.mark.parametrize("value", [*TWICE, *DEEP])
@pytest.mark.parametrize("wanted", KEPT, ids=lambda w: f"{w.output.format}-{w.shape.meta}-{len(w.shape.envelope)}")
def test_a_field_may_occur_twice_where_the_value_stays_text(wanted: Encoding, value: bytes) -> None:
    for neighbour in (b"{}", b"{"):
        rows, bad = rows_of(wanted, value, neighbour)

        assert 0 not in bad
        cells = [cell if isinstance(cell, bytes) else str(cell).encode() for cell in rows[0].values()]
        assert any(value in cell for cell in cells)


pairs = st.lists(
    st.tuples(
        st.sampled_from(['"a"', '"b"', '"c"', '"\\u0061"', '"d"']),
        st.sampled_from(["1", "null", "1.5", '"x"', "{}", '{"c":1}', '{"c":1,"c":null}', "[]", '[{"c":2,"c":2}]']),
    ),
    max_size=5,
)


@settings(max_examples=300)
@given(pairs)
@example([('"a"', "null"), ('"a"', "1")])
def test_a_field_twice_is_found_by_every_way_of_reading(fields: list[tuple[str, str]]) -> None:
    value = ("{" + ",".join(f"{name}:{inner}" for name, inner in fields) + "}").encode()
    once = len({json.loads(name) for name, _ in fields}) == len(fields)
    fine = once and not any('"c":1,' in inner or '"c":2,' in inner for _, inner in fields)

    for schema in ("", KNOWN, '{"struct":{"a":"double","b":{"list":{"struct":{"c":"int64"}}},"c":"text","d":"null"}}'):
        rows, bad = rows_of(encoding(format="Csv"), value, schema=schema)
        assert (bad == {}) == fine
        assert len(rows) == 1


@pytest.mark.parametrize("value", [b"\xff", b"a\xc3", b'{"a":"\xed\xa0\x80"}', b'{"\xff":1}', b"\xef\xbf\xbe\xfe"])
@pytest.mark.parametrize("source", ["Json", "String"])
@pytest.mark.parametrize("format", [*COLUMNS, *LINES])
def test_invalid_utf8_is_refused_wherever_text_is_written(format: str, source: str, value: bytes) -> None:
    for wanted in shapes(format) if format != "Text" else [encoding(format=format)]:
        if wanted.shape.envelope and "value" not in wanted.shape.envelope:
            continue
        _, bad = rows_of(changed(wanted, value=source), b"{}", value)

        assert set(bad) == {1}
        assert "value is not UTF-8" in bad[1]


def test_bytes_are_kept_where_text_is_written_as_base64_or_as_they_are() -> None:
    value = b"\xff\x00,"

    assert rows_of(encoding(format="Csv", value="Bytes"), value) == ([{"value": value}], {})
    assert rows_of(encoding(format="Text", value="Bytes"), value) == ([{"line": value}], {})
    (line,), bad = rows_of(encoding(format="Json", value="Bytes"), value)
    assert (base64.b64decode(json.loads(line["line"])), bad) == (value, {})


@pytest.mark.parametrize("value", [b"5", b'"x"', b"[1]", b"true", b"null", b" null "])
@pytest.mark.parametrize("format", COLUMNS)
def test_a_value_that_is_no_object_is_a_bad_record_unless_it_stays_text(format: str, value: bytes) -> None:
    for wanted in shapes(format):
        if wanted.shape.envelope and "value" not in wanted.shape.envelope:
            continue
        _, bad = rows_of(wanted, value)
        stays = wanted.shape.meta in {"Quix", "Airbyte"} and not wanted.shape.flatten
        assert set(bad) == (set() if stays else {0})
        assert stays or "columns need named fields" in bad[0]


MB = 2**20
LARGE = {
    "a string": json.dumps({"a": "x" * 5 * MB}).encode(),
    "escapes": json.dumps({"a": '"\\\n\u0001ä' * (MB // 2)}).encode(),
    "an array": json.dumps({"a": list(range(700_000))}).encode(),
    "objects": json.dumps({"a": [{"b": n, "c": "x" * 20} for n in range(100_000)]}).encode(),
    "white space": b'{"a":' + b" \n" * (5 * MB // 2) + b"1}",
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE.keys())
@pytest.mark.parametrize("format", [*COLUMNS, *LINES])
def test_a_record_of_five_megabytes_is_a_record_like_any_other(format: str, value: bytes) -> None:
    started = time.process_time()
    wanted = encoding(format=format)
    builder = wanted.row_builder(TOPIC)

    for _ in range(2):
        found = builder.build(batch_of(b'{"a":null}', value))
        assert found.bad.messages == {}
        if format in COLUMNS:
            assert found.rows.column("a")[1].as_py() == json.loads(value)["a"]
        else:
            assert json.loads(found.rows.column("line")[1].as_py()) == json.loads(value)

    assert time.process_time() - started < 20


@pytest.mark.parametrize("source", ["String", "Bytes"])
@pytest.mark.parametrize("format", [*COLUMNS, "Json", "Text", "Bytes"])
def test_five_megabytes_of_anything_are_kept(format: str, source: str) -> None:
    value = b"0123456789,\"'\t" * (5 * MB // 14)

    rows, bad = rows_of(encoding(format=format, value=source), value)

    assert bad == {}
    (cell,) = rows[0].values()
    if format == "Json":
        text = json.loads(cell)
        cell = base64.b64decode(text) if source == "Bytes" else text
    assert (cell.encode() if isinstance(cell, str) else cell) == value


NUMBERS = [
    *("0", "1", "1.0", "1.50", "1e2", "-0.0", "1e-7", "1e-6", "5e-324", "123456.789e3"),
    *("1e10", "12345678901", "12345678901.5", "1e15", "-1000000000000001", "1e16", "9007199254740992"),
]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("shape", "before"), [("%s", "double"), ("[%s,null]", {"list": "double"})])
def test_a_number_has_the_same_text_before_and_after_its_column_widens(number: str, shape: str, before: Any) -> None:
    values = batch_of(f'{{"a":{shape % number}}}'.encode()).column("value")
    (first,) = JsonColumns(pa.struct([("a", TEXT)])).decode(values)[0].column("a").to_pylist()

    rows, bad = JsonColumns(from_text(json.dumps({"struct": {"a": before}}))).decode(values)
    (later,) = cast_rows(rows, pa.struct([("a", TEXT)])).column("a").to_pylist()

    assert bad == {}
    assert first == later
    assert json.loads(first) == json.loads(shape % number)


def test_a_bad_key_in_an_envelope_is_reported_as_a_bad_key() -> None:
    for format in ("Json", "Parquet", "Avro", "Orc"):
        for source, key in (("String", b"\xff"), ("Json", b"{"), ("Json", b"")):
            wanted = changed(encoding(format=format, key=source), envelope=("key", "value"))
            found = wanted.row_builder(TOPIC).build(batch_of(Record(b"{}", key=key), Record(b"{", key=key)))
            assert found.bad.messages[0].startswith("key is not ")
            assert found.bad.messages[1].startswith("value is not ")
