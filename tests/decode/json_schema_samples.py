"""JSON Schemas with values that fit them, and what a column has to hold for each value."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from s3sink_job.decode.json_schema_decoder import JsonSchemaDecoder
from s3sink_job.decode.settings import NO_OPTIONS, JsonSchemaOptions
from s3sink_job.decode.writer_schemas import Reference, WriterSchema


def writer_schema(schema: Any, **references: Any) -> WriterSchema:
    """A dict, a list or a boolean as JSON, a string as it is."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    named = tuple(Reference(name, json.dumps(inner)) for name, inner in references.items())
    return WriterSchema("JSON", text, named)


def decoder(schema: Any, options: JsonSchemaOptions = NO_OPTIONS, **references: Any) -> JsonSchemaDecoder:
    return JsonSchemaDecoder(writer_schema(schema, **references), options)


@dataclass(frozen=True)
class Kind:
    schema: Any
    values: st.SearchStrategy[Any]
    expected: Callable[[Any], Any]
    """The value of the column, with JSON in text parsed."""


def same(value: Any) -> Any:
    return value


NAMES = st.sampled_from(["a", "b", "c d", "é", '"', "_m", "0", ""])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-5)), timezone(timedelta(hours=5, minutes=45))])
INTEGERS = st.integers(-(2**63), 2**63 - 1)
REALS = st.floats(allow_nan=False, allow_infinity=False)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | REALS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
TIMES = st.datetimes(timezones=ZONES).filter(lambda at: 1 < at.year < 9999)

LEAVES = [
    Kind({"type": "integer"}, INTEGERS, same),
    Kind({"type": "integer", "minimum": 0, "description": "d"}, st.sampled_from([1.0, 2e3, 7]), int),
    Kind({"type": "number"}, REALS | st.integers(-(2**53), 2**53), float),
    Kind({"type": "string"}, TEXTS, same),
    Kind({"type": "boolean"}, st.booleans(), same),
    Kind({"enum": ["x", "y", None]}, st.sampled_from(["x", "y", None]), same),
    Kind({"const": 3}, st.just(3), same),
    Kind({"type": "string", "format": "date"}, st.dates().map(str), date.fromisoformat),
    Kind({"type": "string", "format": "date-time"}, TIMES.map(datetime.isoformat), datetime.fromisoformat),
    Kind({}, ANYTHING, same),
    Kind({"type": ["string", "integer"]}, TEXTS | st.integers(), same),
]


def nullable(kind: Kind) -> st.SearchStrategy[Kind]:
    null = {"type": "null"}
    schemas = [{"oneOf": [null, kind.schema]}, {"anyOf": [kind.schema, null]}, {"nullable": True, **kind.schema}]
    values = st.none() | kind.values
    return st.sampled_from(schemas).map(lambda s: Kind(s, values, lambda v: None if v is None else kind.expected(v)))


def lists(kind: Kind) -> Kind:
    return Kind(
        {"type": "array", "items": kind.schema},
        st.lists(kind.values, max_size=3),
        lambda value: [_or_none(kind, item) for item in value],
    )


def maps(kind: Kind) -> Kind:
    return Kind(
        {"type": "object", "additionalProperties": kind.schema},
        st.dictionaries(NAMES, kind.values, max_size=3),
        lambda value: {name: _or_none(kind, item) for name, item in value.items()},
    )


def _or_none(kind: Kind, value: Any) -> Any:
    return None if value is None else kind.expected(value)


def objects(fields: dict[str, Kind], is_open: bool) -> Kind:
    schema = {"type": "object", "properties": {name: kind.schema for name, kind in fields.items()}}
    if not is_open:
        schema["additionalProperties"] = False
    known = st.fixed_dictionaries({}, optional={name: kind.values for name, kind in fields.items()})
    extra = st.dictionaries(NAMES.filter(lambda name: name not in fields), ANYTHING, max_size=2)

    def expected(value: dict[str, Any]) -> dict[str, Any]:
        row = {name: _or_none(kind, value.get(name)) for name, kind in fields.items()}
        more = {name: inner for name, inner in value.items() if name not in fields}
        return {**row, "_more": more or None} if is_open else row

    values = st.builds(lambda one, other: {**other, **one}, known, extra) if is_open else known
    return Kind(schema, values, expected)


def kinds() -> st.SearchStrategy[Kind]:
    return st.recursive(
        st.sampled_from(LEAVES) | st.sampled_from(LEAVES).flatmap(nullable),
        lambda inner: (
            inner.map(lists)
            | inner.map(maps)
            | st.builds(objects, st.dictionaries(NAMES, inner, min_size=1, max_size=3), st.booleans())
        ),
        max_leaves=5,
    )


def records() -> st.SearchStrategy[Kind]:
    return st.builds(objects, st.dictionaries(NAMES, kinds(), min_size=1, max_size=4), st.booleans())


WRITERS = st.sampled_from([{}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": 1}])


def written(values: list[Any], how: dict[str, Any]) -> list[bytes]:
    return [json.dumps(value, **how).encode() for value in values]
