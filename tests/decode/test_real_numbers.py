"""Numbers of JSON in columns of floats and doubles: the nearest one of a fraction, and never another whole number."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.decode.connect_schema import connect_schema
from s3sink_job.decode.payload_columns import FEW, PayloadReader
from tests.decode.json_schema_samples import decoder

Found = tuple[Any, str]
Decode = Callable[[list[str]], tuple[list[Any], dict[int, str]]]
FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
OF_NUMBERS = {"number": {"type": "number"}}
OF_NUMBERS |= {kind: {"type": "number", "connect.type": kind} for kind in ("float32", "float64")}
WRAPS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "alone": (lambda number: number, "%s"),
    "a field": (
        lambda number: {
            "type": "object",
            "properties": {"a": number, "id": {"type": "integer"}},
            "additionalProperties": False,
        },
        '{"a":%s,"id":9007199254740993}',
    ),
    "in an open object": (lambda number: {"type": "object", "properties": {"a": number}}, '{"a":%s,"b":12345678}'),
    "in a map": (lambda number: {"type": "object", "additionalProperties": number}, '{"a":%s}'),
    "in lists": (lambda number: {"type": "array", "items": {"type": "array", "items": number}}, "[[%s],[]]"),
}


def by_json_schema(number: Any) -> Decode:
    by = decoder(number)

    def decode(texts: list[str]) -> tuple[list[Any], dict[int, str]]:
        found, faults = by.decode(pa.array([text.encode() for text in texts], pa.binary()))
        return found.to_pylist(), {row: fault.reason for row, fault in faults.items()}

    return decode


def by_connect(kind: str) -> Decode:
    reader = PayloadReader(connect_schema(json.dumps({"type": kind, "optional": True})))

    def decode(texts: list[str]) -> tuple[list[Any], dict[int, str]]:
        found, faults = reader.values(pa.array(texts))
        return found.to_pylist(), {row: fault.reason for row, fault in faults.items()}

    return decode


WAYS = {
    **{
        f"{name}, {where}": (by_json_schema(wrap(number)), text, FLOAT if name == "float32" else DOUBLE)
        for name, number in OF_NUMBERS.items()
        for where, (wrap, text) in WRAPS.items()
    },
    "Connect's float": (by_connect("float"), "%s", FLOAT),
    "Connect's double": (by_connect("double"), "%s", DOUBLE),
}


def both_ways(decode: Decode, text: str) -> Found:
    """The value and the reason for its refusal, with many rows and alone."""
    many, faults = decode([text] * (2 * FEW))
    (alone,), fault = decode([text])
    assert many == [alone] * (2 * FEW)
    assert faults == dict.fromkeys(range(2 * FEW), fault[0]) if fault else not faults
    return alone, fault.get(0, "")


def innermost(value: Any) -> float:
    while isinstance(value, dict | list | tuple):
        value = value["a"] if isinstance(value, dict) else value[-1] if isinstance(value, tuple) else value[0]
    return float(value)


def nearest(text: str, kind: np.dtype) -> Fraction | None:
    """The number of a column that is nearest to the text, of two the even one; None beyond the last."""
    number, limits = Fraction(text), np.finfo(kind)
    digits, last = limits.nmant + 1, Fraction(float(limits.max))
    lowest = Fraction(float(limits.smallest_subnormal))
    step = max(lowest, lowest * 2 ** max(0, _exponent(abs(number) / lowest) - digits + 1))
    found = round(number / step) * step
    return found if abs(found) <= last else None


def _exponent(number: Fraction) -> int:
    """Of the highest power of two that is not above the number; 0 below one."""
    whole = number.numerator // number.denominator
    return max(0, whole.bit_length() - 1)


powers = st.integers(0, 130).flatmap(lambda power: st.integers(-3, 3).map(lambda more: 2**power + more))
whole = (powers | st.integers(-(2**70), 2**70)).map(str)
fractions = st.builds(
    lambda digits, point, exponent: f"{digits}.{point}e{exponent}", *(st.integers(0, 10**18),) * 2, st.integers(-60, 45)
)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(number=whole | fractions)
@example(number="16777217")
@example(number="9007199254740993")
@example(number="-9007199254740993")
@example(number="123456792")
@example(number="1e39")
@example(number="1e400")
@example(number="3.4028235677973366e38")
@example(number="1.00000005960464480000001")
def test_no_whole_number_is_rounded_and_no_number_becomes_infinite(way: str, number: str) -> None:
    decode, text, kind = WAYS[way]
    value, reason = both_ways(decode, text % number)

    wanted = nearest(number, kind)
    refused = wanted is None or (number.lstrip("-").isdigit() and wanted != int(number))
    assert reason == ("SchemaMismatch" if refused else "")
    if not refused:
        assert innermost(value) == wanted


def test_ids_beside_large_floats_do_not_make_a_batch_slow() -> None:
    decode, text, _ = WAYS["float32, a field"]
    rows = [text % "16777218" for _ in range(50)]
    reader = decoder(WRAPS["a field"][0](OF_NUMBERS["float32"]))._reader
    assert decode(rows) == ([{"a": 16777218.0, "id": 9007199254740993}] * 50, {})
    assert reader._fast(pa.array(rows)) is not None
