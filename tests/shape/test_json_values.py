"""JSON in, JSON lines out: every record is read back unchanged, and invalid JSON is found."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.decode.json_validation import as_one_array
from tests.decode.batches import batch_of, decoded, json_texts, parsed
from tests.encodings import encoding

JSON_TO_JSON = encoding()


def strictly(value: bytes) -> bool:
    """Whether it is JSON by RFC 8259, parsed by Python without its extensions."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        # Python limits the digits of a number, JSON does not.
        pairs = json.loads(value.decode(), parse_constant=refuse, parse_int=str, object_pairs_hook=list)
        json.dumps(pairs, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


@given(st.lists(json_texts, min_size=1, max_size=5))
def test_every_json_record_is_one_line_that_reads_back_the_same(texts: list[str]) -> None:
    batch = batch_of(*(text.encode() for text in texts))

    assert parsed(batch, JSON_TO_JSON) == [json.loads(text) for text in texts]


@given(st.lists(json_texts, min_size=1, max_size=5))
def test_json_records_are_written_unchanged(texts: list[str]) -> None:
    """Numbers keep their digits, names their order: only line breaks become spaces."""
    lines, _ = decoded(batch_of(*(text.encode() for text in texts)), JSON_TO_JSON)

    assert [line.decode() for line in lines] == [t.replace("\n", " ").replace("\r", " ") for t in texts]


@pytest.mark.parametrize(
    "number",
    ["123456789012345678901234567890", "-0", "1E400", "-1e-400", "0.10", "1.0000000000000000001", "9" * 5000],
)
def test_numbers_keep_every_digit(number: str) -> None:
    lines, bad = decoded(batch_of(number.encode()), JSON_TO_JSON)

    assert (lines, bad) == ([number.encode()], {})


def test_a_long_number_beside_a_suspicious_word_is_accepted() -> None:
    value = f'{{"information": {"9" * 5000}}}'.encode()

    assert decoded(batch_of(value), JSON_TO_JSON) == ([value], {})


def test_pretty_printed_json_stays_one_record_one_line() -> None:
    value = {"a": [1, {"b": "x\ny\r\u2028"}], "c": {}}

    pretty = json.dumps(value, indent=4).replace("\n", "\r\n").encode()

    assert parsed(batch_of(pretty), JSON_TO_JSON) == [value]


def test_a_tombstone_is_null() -> None:
    assert decoded(batch_of(None, b"1"), JSON_TO_JSON) == ([b"null", b"1"], {})


def test_fields_with_the_same_name_are_kept_in_json() -> None:
    assert decoded(batch_of(b'{"a":1,"a":2}'), JSON_TO_JSON) == ([b'{"a":1,"a":2}'], {})


@pytest.mark.parametrize("depth", [1_500, 100_000])
def test_deep_nesting_is_accepted(depth: int) -> None:
    value = b"[" * depth + b"]" * depth

    assert decoded(batch_of(value), JSON_TO_JSON) == ([value], {})


@pytest.mark.parametrize("core", [b"1,", b"NaN", b"-Infinity", b'"a" "b"'])
def test_invalid_json_below_deep_nesting_is_found(core: bytes) -> None:
    value = b"[" * 2_000 + core + b"]" * 2_000

    assert 0 in decoded(batch_of(value), JSON_TO_JSON)[1]


NOT_JSON = {
    "nothing": b"",
    "white space": b" \n",
    "a word": b"hello",
    "NaN": b'{"a": NaN}',
    "nan": b"nan",
    "Infinity": b"[Infinity]",
    "-Infinity": b"-Infinity",
    "inf": b"[-inf]",
    "trailing comma in a list": b"[1,]",
    "trailing comma in an object": b'{"a":1, \n}',
    "lone surrogate": b'"\\ud800"',
    "surrogates the wrong way round": b'{"\\udc00\\ud800": 1}',
    "lone surrogate in a name that comes twice": b'{"a\\ud800":1,"b":2}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "single quotes": b"{'a': 1}",
    "comment": b"1 // one",
    "two values": b"1 2",
    "two values and a comma": b"1,2",
    "a field behind the value": b'{"a":1},"b":{"c":2}',
    "more objects than one": b'{"a":1},{"b":2}',
    "leading zero": b"01",
    "plus": b"+1",
    "cut short": b'{"a": [1, 2',
    "line break in a string": b'"a\nb"',
    "tab in a string": b'"a\tb"',
    "NUL in a string": b'"a\x00b"',
    "NUL after the value": b"1\x00",
    "unknown escape": b'"\\x41"',
    "vertical tab": b"\x0b1",
    "no-break space": b"\xc2\xa01",
    "latin-1": '"ä"'.encode("latin-1"),
    "encoded surrogate": b'"\xed\xa0\x80"',
    "overlong": b'"\xc0\x80"',
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_invalid_json_is_found_and_other_records_are_kept(value: bytes) -> None:
    assert not strictly(value)

    lines, bad = decoded(batch_of(b'{"a":1}', value, b'"nan, inf,]"'), JSON_TO_JSON)

    assert set(bad) == {1}
    assert bad[1].startswith("value is not ")
    assert (lines[0], lines[2]) == (b'{"a":1}', b'"nan, inf,]"')


@pytest.mark.parametrize("meta", ["None", "Kafka", "Quix"])
def test_a_value_cannot_forge_meta_fields(meta: str) -> None:
    forged = b'{"a":1},"key":"forged","_offset":7,"metadata":{}'

    _, bad = decoded(batch_of(b'{"x":1}', forged, b'{"y":[1]}'), encoding(meta=meta))

    assert bad == {1: "value is not JSON: Extra data: line 1 column 8 (char 7)"}


PIECES = [
    *(b"1", b"{}", b'{"a":[{}]}', b"1,2", b'1,"b":2', b'{"a":1},"b":{"c":2}', b"{},{}", b"", b" [1] ", b'"["'),
    *(b'"x', b'y"', b"[1", b"2]", b'{"a":1', b'"b":2}', b'{"a":[1', b"2]}", b'{"a":[{}', b"{}]}", b'{"a":{}', b"{}}"),
    *(b'1},{"":2', b'[{"":1', b"1}]", b'1},[{"":2', b'1}],{"":2', b'1},{"":[{"":2', b'1}]},{"":2'),
]
"""Values, and fragments that are JSON only together with others."""


def test_invalid_values_that_are_json_together_are_bad_records() -> None:
    """Each invalid value is found, also in a batch that is JSON as a whole."""
    fine = {piece: strictly(piece) for piece in PIECES}
    for values in product(PIECES, repeat=3):
        taken = as_one_array(pa.array(values, pa.binary())) is not None
        assert taken == all(fine[value] for value in values), values


spoilt = st.builds(
    lambda text, at, cut, put: (text[: at % (len(text) + 1)] + put + text[at % (len(text) + 1) + cut :]).encode(),
    json_texts,
    st.integers(0, 1000),
    st.integers(0, 2),
    st.sampled_from(
        [*'",:[]{}\\-+.eE01 \n\t\x00\x0b', "NaN", "inf", "null", ",]", ",}", "\\ud800", "\\u", "\ufeff", "\u00a0"]
    ),
)


@settings(max_examples=300)
@given(st.lists(json_texts.map(str.encode) | spoilt | st.binary(max_size=8), min_size=1, max_size=8))
@example([b'["inf",]', b'"inf,]"', b"[1,2,\n]"])
def test_exactly_what_is_not_json_is_reported(values: list[bytes]) -> None:
    _, bad = decoded(batch_of(*values), JSON_TO_JSON)

    assert set(bad) == {row for row, value in enumerate(values) if not strictly(value)}


@given(st.lists(json_texts, min_size=1, max_size=4), st.sampled_from(["None", "Kafka", "Quix"]))
def test_bad_records_change_no_other_record_with_any_meta_columns(texts: list[str], meta: str) -> None:
    values: list[Any] = [t.encode() for t in texts if "_" not in t] or [b"1"]
    mixed = [v for value in values for v in (b"{", value, b"\xff")]

    lines, bad = decoded(batch_of(*mixed), encoding(meta=meta))
    alone, none_bad = decoded(batch_of(*values), encoding(meta=meta))

    assert set(bad) == {row for row in range(len(mixed)) if row % 3 != 1}
    assert none_bad == {}
    if meta != "Kafka":
        assert lines[1::3] == alone
