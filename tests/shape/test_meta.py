"""Meta fields beside values: nothing of either gets lost or mixed up."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from s3sink_job.shape.origin import KAFKA_FIELDS
from tests.decode.batches import Record, batch_of, decoded, json_texts, parsed, texts
from tests.encodings import encoding

KAFKA = encoding(meta="Kafka")
QUIX = encoding(meta="Quix")
ORIGIN = {"_key": "k", "_topic": "orders", "_partition": 3, "_offset": 70, "_timestamp": 1_700_000_000_123}


def without_meta(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in KAFKA_FIELDS}


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (b"{}", {}),
        (b"{ \n }", {}),
        (b' \t\r\n{"a":1}', {"a": 1}),
        (b'{"a":1}\n', {"a": 1}),
        (b'{\n  "a": {"b": []}\n}', {"a": {"b": []}}),
        (b'{"":"}"}', {"": "}"}),
        (b"[]", {"_value": []}),
        (b"[{}]", {"_value": [{}]}),
        (b' "{" ', {"_value": "{"}),
        (b"5", {"_value": 5}),
        (b"true", {"_value": True}),
        (b"null", {"_value": None}),
        (None, {"_value": None}),
    ],
)
def test_the_fields_of_a_record_are_beside_its_meta_fields(value: bytes | None, fields: dict[str, Any]) -> None:
    assert parsed(batch_of(value), KAFKA) == [{**ORIGIN, "_headers": [], **fields}]


def test_quix_keeps_the_value_in_one_field() -> None:
    batch = batch_of(b'{"_key": 1}', b"[1]", None)

    rows = parsed(batch, QUIX)

    assert rows[0] == {"_timestamp": 1_700_000_000_123, "_key": "k", "_value": {"_key": 1}}
    assert [row["_value"] for row in rows[1:]] == [[1], None]


@given(st.lists(json_texts, min_size=1, max_size=5))
def test_any_value_reads_back_the_same_beside_meta_fields(values: list[str]) -> None:
    # Hypothesis takes names from the source code, too, and so at times those of meta fields, which are bad records.
    found = [json.loads(text) for text in values]
    assume(not any(isinstance(value, dict) and value.keys() & set(KAFKA_FIELDS) for value in found))
    batch = batch_of(*(text.encode() for text in values))

    for number, (row, text) in enumerate(zip(parsed(batch, KAFKA), values, strict=True)):
        value = json.loads(text)
        assert without_meta(row) == (value if isinstance(value, dict) else {"_value": value})
        assert row["_offset"] == 70 + number
    assert [row["_value"] for row in parsed(batch, QUIX)] == [json.loads(text) for text in values]


@pytest.mark.parametrize("name", KAFKA_FIELDS)
def test_a_field_named_like_a_meta_field_is_a_bad_record(name: str) -> None:
    value = json.dumps({"a": {}, name: 1}).encode()

    lines, bad = decoded(batch_of(b'{"a":1}', value), KAFKA)

    assert set(bad) == {1}
    assert repr(name) in bad[1]
    assert json.loads(lines[0])["a"] == 1


@given(st.sampled_from(KAFKA_FIELDS), st.data())
def test_a_clash_is_found_however_its_name_is_escaped(name: str, data: st.DataObject) -> None:
    escaped = data.draw(st.sets(st.integers(0, len(name) - 1)))
    upper = data.draw(st.booleans())
    written = "".join(
        (f"\\u{ord(c):04X}" if upper else f"\\u{ord(c):04x}") if n in escaped else c for n, c in enumerate(name)
    )

    _, bad = decoded(batch_of(f'{{"a":[1], "{written}": 1}}'.encode()), KAFKA)

    assert set(bad) == {0}


@pytest.mark.parametrize(
    "value", [b'{"a": {"_key": 1}}', b'["_key"]', b'{"a": "_key"}', b'{"_keys": 1}', b'{"x_key": 1}', b'{"_Key": 1}']
)
def test_a_meta_name_below_the_top_level_is_no_clash(value: bytes) -> None:
    (row,) = parsed(batch_of(value), KAFKA)

    found = json.loads(value)
    assert without_meta(row) == (found if isinstance(found, dict) else {"_value": found})


@pytest.mark.parametrize(
    "bad", [b'{"_key":', b'{"_key": "\\ud800"}', b'{"_key": NaN}', b'{"_key": 1,}', b'"_key"]', b"\xff"]
)
def test_a_bad_record_with_a_meta_name_changes_no_other_record(bad: bytes) -> None:
    lines, found = decoded(batch_of(b'{"a":1}', bad, b'{"_topic": 1}'), KAFKA)

    assert set(found) == {1, 2}
    assert found[1].startswith("value is not ")
    assert json.loads(lines[0])["a"] == 1


def test_a_clash_is_found_below_deep_nesting() -> None:
    value = b'{"a": ' + b"[" * 3_000 + b"]" * 3_000 + b', "_key": 1}'

    assert set(decoded(batch_of(value), KAFKA)[1]) == {0}


def test_a_clash_is_found_in_records_with_numbers_too_long_for_python() -> None:
    value = f'{{"_key": 1, "n": {"9" * 5000}}}'.encode()

    assert set(decoded(batch_of(value), KAFKA)[1]) == {0}


@pytest.mark.parametrize(("meta"), ["Kafka", "Quix"])
@pytest.mark.parametrize(
    ("format", "key", "expected"),
    [
        ("String", None, None),
        ("String", b"", ""),
        ("String", 'a"\\\n\x00ä'.encode(), 'a"\\\n\x00ä'),
        ("Bytes", None, None),
        ("Bytes", b"", ""),
        ("Bytes", b"\xff\x00", "/wA="),
        ("Json", None, None),
        ("Json", b'{"id": [7]}', {"id": [7]}),
        ("Json", b'\n{"id":\n7}', {"id": 7}),
    ],
)
def test_keys_of_every_format_are_kept(meta: str, format: str, key: bytes | None, expected: Any) -> None:
    (row,) = parsed(batch_of(Record(b"{}", key=key)), encoding(meta=meta, key=format))

    assert row["_key"] == expected


@pytest.mark.parametrize(("format", "key"), [("String", b"\xff"), ("Json", b"{"), ("Json", b"")])
def test_a_bad_key_is_reported_as_a_bad_key(format: str, key: bytes) -> None:
    _, bad = decoded(batch_of(Record(b"{}", key=key)), encoding(meta="Kafka", key=format))

    assert bad[0].startswith("key is not ")


def test_a_bad_key_that_is_not_written_is_ignored() -> None:
    assert decoded(batch_of(Record(b"{}", key=b"\xff")), encoding(key="Json")) == ([b"{}"], {})


HEADERS = [
    ([], []),
    (None, []),
    ([("a", b"1"), ("a", b"2")], [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]),
    ([("a", None)], [{"key": "a", "value": None}]),
    ([("a", b"")], [{"key": "a", "value": ""}]),
    ([("", b"x")], [{"key": "", "value": "x"}]),
    ([("a", b"\xff")], [{"key": "a", "base64": "/w=="}]),
    ([('"\n', b'"\\\x01')], [{"key": '"\n', "value": '"\\\x01'}]),
    (
        [("a", b"\xff"), ("b", None), ("c", b"x")],
        [{"key": "a", "base64": "/w=="}, {"key": "b", "value": None}, {"key": "c", "value": "x"}],
    ),
]


@pytest.mark.parametrize(("headers", "expected"), HEADERS)
def test_headers_are_kept_in_order_whatever_they_hold(headers: Any, expected: list[dict[str, Any]]) -> None:
    (row,) = parsed(batch_of(Record(b"{}", headers=headers)), KAFKA)

    assert row["_headers"] == expected


headers_drawn = st.none() | st.lists(st.tuples(texts, st.none() | st.binary(max_size=6)), max_size=4)


def readable(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.lists(headers_drawn, min_size=1, max_size=6))
def test_no_header_ends_up_with_another_record(all_headers: list[list[tuple[str, bytes | None]] | None]) -> None:
    rows = parsed(batch_of(*(Record(b"{}", headers=h) for h in all_headers)), KAFKA)

    for row, headers in zip(rows, all_headers, strict=True):
        expected = []
        for key, value in headers or []:
            if value is not None and not readable(value):
                expected.append({"key": key, "base64": base64.b64encode(value).decode()})
            else:
                expected.append({"key": key, "value": None if value is None else value.decode()})
        assert row["_headers"] == expected


@pytest.mark.parametrize("millis", [0, -1, 1, 1_700_000_000_999, 253_402_300_799_999])
def test_timestamps_are_milliseconds_as_in_kafka(millis: int) -> None:
    (row,) = parsed(batch_of(Record(b"{}", millis=millis)), KAFKA)

    assert row["_timestamp"] == millis
