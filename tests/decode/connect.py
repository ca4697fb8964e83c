"""Connect's JSON at random: schemas, values, and how JsonConverter writes them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.decode.batches import texts

DATA = "org.apache.kafka.connect.data."
NAMES = st.sampled_from(["a", "b", "A", "ä", 'q"\\', "list", "a.b", "[]", "payload", "schema", "7"]) | texts.filter(
    bool
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Kind:
    """A schema, its values as a row has them, and their JSON."""

    doc: dict[str, Any]
    values: st.SearchStrategy[Any]
    json: Callable[[Any], str] = json.dumps

    @property
    def type(self) -> str:
        return str(self.doc["type"])


def envelope(kind: Kind, value: Any) -> bytes:
    """As JsonConverter writes it."""
    return f'{{"schema":{json.dumps(kind.doc, separators=(",", ":"))},"payload":{kind.json(value)}}}'.encode()


def plain(kind: str, values: st.SearchStrategy[Any], to_json: Callable[[Any], str] = json.dumps, **more: Any) -> Kind:
    return Kind({"type": kind, **more}, values, to_json)


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _real(value: float) -> str:
    if math.isfinite(value):
        return json.dumps(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _base64(value: bytes) -> str:
    return json.dumps(base64.b64encode(value).decode())


def _unscaled(value: Decimal) -> str:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return _base64(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _decimals(scale: int, digits: int | None, numeric: bool) -> Kind:
    most = 10 ** (digits or 38) - 1
    parameters = {"scale": str(scale)} | ({"connect.decimal.precision": str(digits)} if digits else {})
    values = st.integers(-most, most).map(lambda number: Decimal((number < 0, _digits(abs(number)), -scale)))
    write = (lambda value: f"{value:f}") if numeric else _unscaled
    return plain("bytes", values, write, name=f"{DATA}Decimal", version=1, parameters=parameters)


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(number))


days = st.dates(date(1, 1, 2), date(9999, 12, 30))
times = st.integers(0, 86_399_999).map(lambda ms: (datetime(1, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).time())
instants = st.integers(-62_000_000_000_000, 253_000_000_000_000).map(lambda ms: EPOCH + timedelta(milliseconds=ms))


def _millis(value: timedelta) -> str:
    return str(value // timedelta(milliseconds=1))


leaves: st.SearchStrategy[Kind] = st.sampled_from(
    [
        *(plain(f"int{bits}", _whole(bits)) for bits in (8, 16, 32, 64)),
        plain("float", st.floats(width=32), _real),
        plain("double", st.floats(), _real),
        plain("boolean", st.booleans()),
        plain("string", texts),
        plain("bytes", st.binary(max_size=20), _base64),
        plain("int32", days, lambda day: str((day - EPOCH.date()).days), name=f"{DATA}Date", version=1),
        plain(
            "int32",
            times,
            lambda time: _millis(datetime.combine(EPOCH, time) - datetime.combine(EPOCH, datetime.min.time())),
            name=f"{DATA}Time",
        ),
        plain("int64", instants, lambda time: _millis(time - EPOCH), name=f"{DATA}Timestamp", version=1),
        plain("int64", _whole(64), name="io.debezium.time.MicroTimestamp", version=1),
    ]
) | st.builds(_decimals, st.integers(0, 6), st.none() | st.integers(7, 38), st.booleans())


def optional(kind: Kind) -> Kind:
    write = kind.json
    doc = {**kind.doc, "optional": True}
    return Kind(doc, st.none() | kind.values, lambda value: "null" if value is None else write(value))


def _array(items: Kind) -> Kind:
    doc = {"type": "array", "items": items.doc, "optional": False}
    return Kind(doc, st.lists(items.values, max_size=3), lambda values: f"[{','.join(map(items.json, values))}]")


def _map(keys: Kind, items: Kind) -> Kind:
    doc = {"type": "map", "keys": keys.doc, "values": items.doc}
    pairs = st.lists(st.tuples(keys.values, items.values), max_size=3, unique_by=lambda pair: repr(pair[0]))

    def write(values: list[tuple[Any, Any]]) -> str:
        if keys.type == "string":
            return f"{{{','.join(f'{keys.json(key)}:{items.json(item)}' for key, item in values)}}}"
        return f"[{','.join(f'[{keys.json(key)},{items.json(item)}]' for key, item in values)}]"

    return Kind(doc, pairs, write)


def struct(fields: dict[str, Kind]) -> Kind:
    docs = [{"field": name, **kind.doc} for name, kind in fields.items()]

    def write(value: dict[str, Any]) -> str:
        return f"{{{','.join(f'{json.dumps(name)}:{kind.json(value[name])}' for name, kind in fields.items())}}}"

    values = st.fixed_dictionaries({name: kind.values for name, kind in fields.items()})
    return Kind({"type": "struct", "name": "s", "fields": docs}, values, write)


def _nested(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return (
        inner.map(_array)
        | st.builds(_map, leaves.filter(lambda kind: kind.type == "string"), inner)
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(struct)
    )


def _maybe_optional(kinds: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return kinds | kinds.map(optional)


kinds = st.recursive(_maybe_optional(leaves), lambda inner: _maybe_optional(_nested(inner)), max_leaves=6)
structs = st.dictionaries(NAMES, kinds, min_size=1, max_size=4).map(struct)


def rows_of(kind: Kind, value: Any) -> dict[str, Any]:
    """The row of a value that is not null."""
    return value if kind.type == "struct" else {"value": value}
