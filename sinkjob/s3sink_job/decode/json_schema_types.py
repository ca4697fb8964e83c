"""The types of JSON Schema's combinators: what holds values of either schema, and what holds values of both.

All columns may be null, so null in a union changes nothing.
"""

from __future__ import annotations

import pyarrow as pa

from s3sink_api.spec import MORE
from s3sink_job.decode.payload_schema import (
    DATE,
    DATE_TIME,
    INTEGER,
    JSON,
    NULL,
    NUMBER,
    OF_JSON_SCHEMA,
    PLAIN,
    PayloadSchema,
    struct,
)

WHOLE = frozenset({INTEGER, "int8", "int16", "int32", "int64"})
NUMBERS = WHOLE | {NUMBER, "float", "double"}
STRINGS = frozenset({"string", DATE, DATE_TIME, "bytes"})
GENERAL = frozenset({NUMBER, "string"})
"""Where two schemas hold at once, the other one says more."""


def leaf(name: str) -> PayloadSchema:
    kind = PLAIN.get(name)
    return PayloadSchema(name, OF_JSON_SCHEMA[name] if kind is None else kind, optional=True)


ANYTHING = leaf(JSON)
"""No type in common, or none given: the column is text with JSON."""
ONLY_NULL = leaf(NULL)
NOTHING = PayloadSchema("never", pa.null(), optional=True)
"""The schema `false`, which no value fits."""


def array(items: PayloadSchema) -> PayloadSchema:
    return ANYTHING if items == NOTHING else PayloadSchema("array", pa.list_(items.kind), optional=True, items=items)


def mapping(values: PayloadSchema) -> PayloadSchema:
    kind = pa.map_(pa.string(), values.kind)
    return PayloadSchema("map", kind, optional=True, keys=leaf("string"), items=values)


def record(fields: dict[str, PayloadSchema], *, is_open: bool) -> PayloadSchema:
    """An open object has a field more, for members that the schema does not name."""
    kept = {name: inner for name, inner in fields.items() if inner != NOTHING and not (is_open and name == MORE)}
    return struct(tuple(kept.items()), MORE if is_open else "")


def either(one: PayloadSchema, other: PayloadSchema) -> PayloadSchema:
    """Holds values of both. A field that only one of two objects names has the type that this one gives it."""
    if one == other or other in (NOTHING, ONLY_NULL):
        return one
    if one in (NOTHING, ONLY_NULL):
        return other
    match one.type, other.type:
        case "struct", "struct":
            fields = dict(one.fields)
            for name, inner in other.fields:
                fields[name] = either(fields.get(name, NOTHING), inner)
            return record(fields, is_open=bool(one.rest or other.rest))
        case ("array", "array") | ("map", "map") if one.items and other.items:
            return (array if one.type == "array" else mapping)(either(one.items, other.items))
    if _are(one, other, WHOLE):
        return leaf(INTEGER)
    if _are(one, other, NUMBERS) and _plain(one) and _plain(other):
        return leaf(NUMBER)
    return leaf("string") if _are(one, other, STRINGS) and _plain(one) and _plain(other) else ANYTHING


def both(one: PayloadSchema, other: PayloadSchema) -> PayloadSchema:
    """Holds values that fit one and the other. A value that cannot exist may be anything."""
    if other in (one, ANYTHING):
        return one
    if one == ANYTHING:
        return other
    if NOTHING in (one, other):
        return NOTHING
    match one.type, other.type:
        case "struct", "struct":
            fields = dict(one.fields)
            for name, inner in other.fields:
                fields[name] = both(fields.get(name, ANYTHING), inner)
            return record(fields, is_open=bool(one.rest and other.rest))
        case ("array", "array") | ("map", "map") if one.items and other.items:
            return (array if one.type == "array" else mapping)(both(one.items, other.items))
        case ("struct", "map") | ("map", "struct"):
            return one if one.type == "struct" else other
    if _are(one, other, NUMBERS):
        return _narrower_number(one, other)
    if _are(one, other, STRINGS):
        return other if one.type in GENERAL else one
    return ONLY_NULL if ONLY_NULL in (one, other) else ANYTHING


def _narrower_number(one: PayloadSchema, other: PayloadSchema) -> PayloadSchema:
    if (one.type in WHOLE) != (other.type in WHOLE):
        return one if one.type in WHOLE else other
    return other if one.type in (INTEGER, NUMBER) else one


def _are(one: PayloadSchema, other: PayloadSchema, names: frozenset[str]) -> bool:
    return one.type in names and other.type in names


def _plain(schema: PayloadSchema) -> bool:
    """Not a decimal, whose JSON may be a number or a string, and not a date or time that is a number."""
    return schema == leaf(schema.type)
