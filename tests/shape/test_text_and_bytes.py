"""Text and bytes: kept as they are, or refused where a format cannot hold them."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decode.batches import Record, batch_of, decoded, json_texts, parsed, texts
from tests.encodings import encoding

metas = pytest.mark.parametrize("meta", ["None", "Kafka", "Quix"])


def value_in(row: object, meta: str) -> object:
    return row if meta == "None" else row["_value"]  # type: ignore[index]


@metas
@given(values=st.lists(st.none() | texts, min_size=1, max_size=6))
def test_any_text_reads_back_the_same_from_json(meta: str, values: list[str | None]) -> None:
    batch = batch_of(*(None if v is None else v.encode() for v in values))

    assert [value_in(row, meta) for row in parsed(batch, encoding(meta=meta, value="String"))] == values


@metas
@given(values=st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=6))
def test_any_bytes_read_back_the_same_from_json(meta: str, values: list[bytes | None]) -> None:
    rows = parsed(batch_of(*values), encoding(meta=meta, value="Bytes"))

    found = [value_in(row, meta) for row in rows]
    assert [None if v is None else base64.b64decode(str(v), validate=True) for v in found] == values


def test_every_control_character_survives_in_json() -> None:
    text = "".join(map(chr, range(0x21))) + '"\\/\x7f\u2028\U0001f600'

    assert parsed(batch_of(text.encode()), encoding(value="String")) == [text]


@pytest.mark.parametrize("format", ["Json", "Text"])
@given(values=st.lists(st.binary(max_size=6), min_size=1, max_size=6))
def test_only_invalid_utf8_is_reported(format: str, values: list[bytes]) -> None:
    _, bad = decoded(batch_of(*values), encoding(format=format, value="String"))

    def broken(value: bytes) -> bool:
        try:
            return "\n" in value.decode() and format == "Text"
        except UnicodeDecodeError:
            return True

    assert set(bad) == {row for row, value in enumerate(values) if broken(value)}


@given(st.lists(st.none() | st.binary(max_size=8), min_size=1, max_size=6))
def test_bytes_as_text_are_untouched_and_never_break_a_line(values: list[bytes | None]) -> None:
    lines, bad = decoded(batch_of(*values), encoding(format="Text", value="Bytes"))

    assert set(bad) == {row for row, value in enumerate(values) if value is not None and b"\n" in value}
    for row, value in enumerate(values):
        if row not in bad:
            assert lines[row] == (value or b"")


@given(st.lists(json_texts, min_size=1, max_size=5))
def test_json_as_text_is_one_line_a_record(values: list[str]) -> None:
    lines, bad = decoded(batch_of(*(v.encode() for v in values)), encoding(format="Text"))

    assert bad == {}
    assert [json.loads(line) for line in lines] == [json.loads(v) for v in values]
    assert not any(b"\n" in line for line in lines)


def test_the_message_of_a_line_break_names_another_format() -> None:
    _, bad = decoded(batch_of(b"a\nb"), encoding(format="Text", value="String"))

    assert "use format Json" in bad[0]


@pytest.mark.parametrize("value", ["Json", "String", "Bytes"])
def test_a_tombstone_is_an_empty_line_in_text(value: str) -> None:
    assert decoded(batch_of(None, b"1"), encoding(format="Text", value=value)) == ([b"", b"1"], {})


FORMATS = [
    *(("Text", "None", "String", value) for value in ("Json", "String", "Bytes")),
    *(
        ("Json", meta, key, value)
        for meta in ("None", "Kafka", "Quix")
        for key in ("Json", "String", "Bytes")
        for value in ("Json", "String", "Bytes")
    ),
]
any_record = st.builds(
    Record,
    value=st.none() | st.binary(max_size=5) | json_texts.map(str.encode),
    key=st.none() | st.binary(max_size=3) | st.just(b'{"a":\n1}'),
    headers=st.none() | st.lists(st.tuples(texts, st.none() | st.binary(max_size=3)), max_size=3),
)


@pytest.mark.parametrize(("format", "meta", "key", "value"), FORMATS)
@settings(max_examples=30)
@given(records=st.lists(any_record, min_size=1, max_size=6), start=st.integers(0, 5), count=st.integers(0, 6))
def test_a_part_of_a_batch_gives_the_same_as_its_records_alone(
    format: str, meta: str, key: str, value: str, records: list[Record], start: int, count: int
) -> None:
    """Objects roll in the middle of a batch: the next one gets a slice with an offset."""
    wanted = encoding(format=format, meta=meta, key=key, value=value)
    whole = batch_of(*records)
    window = whole.slice(start, count)
    if not window.num_rows:
        return
    alone = whole.take(list(range(start, start + window.num_rows)))

    assert decoded(window, wanted) == decoded(alone, wanted)


@pytest.mark.parametrize(("format", "meta", "key", "value"), FORMATS)
def test_a_bad_record_outside_of_a_slice_is_not_reported(format: str, meta: str, key: str, value: str) -> None:
    bad = Record(b"\xff\n", key=b"\xff", headers=[("h", b"\xff")])
    window = batch_of(bad, Record(b"1", key=b"2"), bad).slice(1, 1)

    lines, found = decoded(window, encoding(format=format, meta=meta, key=key, value=value))

    assert found == {}
    assert b"base64" not in lines[0]
