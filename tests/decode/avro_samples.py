"""Avro schemas and values made by Hypothesis, and records that fastavro wrote."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import dataclass
from typing import Any

import fastavro
from hypothesis import strategies as st

from s3sink_job.decode.writer_schemas import Reference, WriterSchema

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)
FLOATS = st.floats(width=32, allow_nan=False)
DOUBLES = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
PRIMITIVES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": INTS,
    "long": LONGS,
    "float": FLOATS,
    "double": DOUBLES,
    "bytes": st.binary(max_size=12),
    "string": TEXTS,
}
ON_LONG = (
    *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
    *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
)


@dataclass(frozen=True)
class Sample:
    """A schema, and values for it in the form in which fastavro writes them without logical types."""

    schema: Any
    values: st.SearchStrategy[Any]


def _named(draw: st.DrawFn, prefix: str) -> str:
    return f"{prefix}{next(_numbers)}"


_numbers = itertools.count()


@st.composite
def samples(draw: st.DrawFn, depth: int = 3, *, in_union: bool = False) -> Sample:
    kinds = ["primitive", "primitive", "logical", "enum", "fixed"]
    kinds += ["record", "array", "map"] if depth else []
    kinds += ["optional", "union"] if depth and not in_union else []
    match draw(st.sampled_from(kinds)):
        case "primitive":
            name = draw(st.sampled_from([name for name in PRIMITIVES if not (in_union and name == "null")]))
            return Sample(name, PRIMITIVES[name])
        case "logical":
            return draw(_logical())
        case "enum":
            symbols = draw(st.lists(st.from_regex(r"\A[A-Z_]{1,6}\Z"), min_size=1, max_size=5, unique=True))
            schema = {"type": "enum", "name": _named(draw, "E"), "symbols": symbols}
            return Sample(schema, st.sampled_from(symbols))
        case "fixed":
            size = draw(st.integers(1, 20))
            return Sample(
                {"type": "fixed", "name": _named(draw, "F"), "size": size}, st.binary(min_size=size, max_size=size)
            )
        case "record":
            return draw(records(depth - 1))
        case "array":
            items = draw(samples(depth - 1))
            return Sample({"type": "array", "items": items.schema}, st.lists(items.values, max_size=4))
        case "map":
            values = draw(samples(depth - 1))
            return Sample({"type": "map", "values": values.schema}, st.dictionaries(TEXTS, values.values, max_size=3))
        case "optional":
            value = draw(samples(depth - 1, in_union=True))
            branches = ["null", value.schema] if draw(st.booleans()) else [value.schema, "null"]
            return Sample(branches, st.none() | value.values)
        case _:
            return draw(_union())


@st.composite
def _union(draw: st.DrawFn) -> Sample:
    """Of types that fastavro can tell apart by the value."""
    possible = [
        Sample("null", st.none()),
        Sample("boolean", st.booleans()),
        Sample("long", LONGS.filter(lambda n: not isinstance(n, bool))),
        Sample("string", TEXTS),
        Sample("bytes", st.binary(max_size=5)),
    ]
    chosen = draw(st.lists(st.sampled_from(range(len(possible))), min_size=2, unique=True))
    branches = [possible[number] for number in chosen]
    return Sample([one.schema for one in branches], st.one_of(*(one.values for one in branches)))


@st.composite
def _logical(draw: st.DrawFn) -> Sample:
    match draw(st.sampled_from(["int", "long", "decimal", "uuid", "fixed decimal", "fixed uuid", "duration"])):
        case "int":
            name = draw(st.sampled_from(["date", "time-millis"]))
            return Sample({"type": "int", "logicalType": name}, st.integers(0, 86_399_999) if "time" in name else INTS)
        case "long":
            name = draw(st.sampled_from(ON_LONG))
            return Sample(
                {"type": "long", "logicalType": name},
                st.integers(0, 86_399_999_999) if name == "time-micros" else LONGS,
            )
        case "uuid":
            return Sample({"type": "string", "logicalType": "uuid"}, st.uuids().map(str))
        case "fixed uuid":
            schema = {"type": "fixed", "size": 16, "name": _named(draw, "U"), "logicalType": "uuid"}
            return Sample(schema, st.binary(min_size=16, max_size=16))
        case "duration":
            schema = {"type": "fixed", "size": 12, "name": _named(draw, "D"), "logicalType": "duration"}
            return Sample(schema, st.binary(min_size=12, max_size=12))
    precision = draw(st.integers(1, 80))
    scale = draw(st.integers(0, precision))
    numbers = st.integers(-(10**precision) + 1, 10**precision - 1)
    plain: dict[str, Any] = {"logicalType": "decimal", "precision": precision, "scale": scale}
    if draw(st.booleans()):
        pad = draw(st.integers(0, 20))
        return Sample({"type": "bytes", **plain}, numbers.map(lambda n: signed(n, (n.bit_length() // 8) + 1 + pad)))
    size = (10**precision).bit_length() // 8 + 1
    schema = {"type": "fixed", "size": size, "name": _named(draw, "D"), **plain}
    return Sample(schema, numbers.map(lambda n: signed(n, size)))


def signed(number: int, size: int) -> bytes:
    return number.to_bytes(size, "big", signed=True)


@st.composite
def records(draw: st.DrawFn, depth: int = 3) -> Sample:
    fields = {name: draw(samples(depth)) for name in draw(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True))}
    schema = {
        "type": "record",
        "name": _named(draw, "R"),
        "fields": [{"name": name, "type": sample.schema} for name, sample in fields.items()],
    }
    return Sample(schema, st.fixed_dictionaries({name: sample.values for name, sample in fields.items()}))


def without_logical(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: without_logical(inner) for name, inner in schema.items() if name != "logicalType"}
    return [without_logical(inner) for inner in schema] if isinstance(schema, list) else schema


def writer_schema(schema: Any, *references: Any) -> WriterSchema:
    return WriterSchema("AVRO", json.dumps(schema), tuple(Reference("", json.dumps(one)) for one in references))


def written(schema: Any, *values: Any) -> list[bytes]:
    """By fastavro, without logical types."""
    parsed = fastavro.parse_schema(without_logical(schema))
    out = []
    for value in values:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, value)
        out.append(buffer.getvalue())
    return out


def read_by_fastavro(schema: Any, data: bytes) -> Any:
    """With logical types."""
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)
