"""Payloads of Connect's JSON by their schema, one by one.

This is slow and exact. It is used for few rows, and for those among which some do not fit their schema.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.decode.json_columns import written
from s3sink_job.decode.json_inference import Number, Real, Repeated, described
from s3sink_job.decode.payload_schema import OF_JSON_SCHEMA, PayloadSchema

LIMITS: Mapping[str, int] = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63}
NOT_FINITE: Mapping[str, float] = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Connect writes these doubles as strings, since JSON has no numbers for them."""
DAY = 24 * 60 * 60 * 1000
ENOUGH_DIGITS = 100
MAX_INT_DIGITS = 19
MAX_BYTES = 32
"""Of a decimal: more than any has that fits into a column."""


class Misfit(ValueError):
    """Why a payload does not fit its schema, with the path to the value."""


def payload_value(value: Any, schema: PayloadSchema, where: str = "$") -> Any:
    """A JSON value as Arrow takes it for the column of the schema. Raises `Misfit`."""
    if value is None:
        if schema.optional:
            return None
        if schema.default is None:
            raise Misfit(f"{where} is null or missing, and is not optional")
        value = schema.default
    if schema.type in OF_JSON_SCHEMA:
        return _of_json_schema(value, schema, where)
    if isinstance(value, Repeated):
        raise value.error
    match schema.type, value:
        case "struct", dict():
            return _struct(value, schema, where)
        case "array", list():
            items = _part(schema.items)
            return [payload_value(item, items, f"{where}[{i}]") for i, item in enumerate(value)]
        case "map", dict() | list():
            return _map(value, schema, where)
        case "bytes", _ if pa.types.is_decimal(schema.kind):
            return _decimal(value, schema, where)
        case "bytes", str() if not isinstance(value, Number):
            return _bytes(value, where)
        case ("boolean", bool()) | ("string", str()) if not isinstance(value, Number):
            return value
        case (("float" | "double"), str()) if value in NOT_FINITE:
            return NOT_FINITE[value]
        case "float", int() | Real() | Number() if not isinstance(value, bool):
            return _float(value, where)
        case "double", int() | Real() | Number() if not isinstance(value, bool):
            return _double(value, where)
        case (("int8" | "int16" | "int32" | "int64"), int()) if not isinstance(value, bool):
            return _whole(value, schema, where)
    raise Misfit(f"{where} is {described(value)}, and should be {schema.type}")


def _struct(value: dict[str, Any], schema: PayloadSchema, where: str) -> dict[str, Any]:
    names = {name for name, _ in schema.fields}
    more = {name: inner for name, inner in value.items() if name not in names}
    if more and not schema.rest:
        raise Misfit(f"{where} has the field {next(iter(more))!r}, which the schema does not have")
    found = {name: payload_value(value.get(name), inner, f"{where}.{name}") for name, inner in schema.fields}
    return {**found, schema.rest: written(more, as_written=True) if more else None} if schema.rest else found


def _of_json_schema(value: Any, schema: PayloadSchema, where: str) -> Any:
    match schema.type, value:
        case "json", _:
            return written(value, as_written=True)
        case "integer", int() | Real() | Number() if not isinstance(value, bool):
            return _integer(value, where)
        case "number", int() | Real() | Number() if not isinstance(value, bool):
            return _double(value, where)
        case (("date" | "date-time"), str()) if not isinstance(value, Number):
            return _time(value, schema, where)
    raise Misfit(f"{where} is {described(value)}, and should be {schema.type}")


def _integer(value: int | Real | Number, where: str) -> int:
    """Also 1.0 and 1e3, which JSON Schema counts as integers."""
    if isinstance(value, int):
        return value
    number = _exact(value)
    if not number.is_finite() or number.adjusted() > MAX_INT_DIGITS or not -(2**63) <= number < 2**63:
        raise Misfit(f"{where} is a number that does not fit into int64")
    if number != (whole := int(number)):
        raise Misfit(f"{where} is a number with a fraction, and should be integer")
    return whole


def _double(value: int | Real | Number, where: str) -> float:
    """A fraction may be rounded, a whole number may not."""
    try:
        found = float(value)
    except OverflowError:
        found = float("inf")
    if not math.isfinite(found):
        raise Misfit(f"{where} is a number that does not fit into double")
    if not isinstance(value, Real) and Decimal(found) != _exact(value):
        raise Misfit(f"{where} is a whole number that no double holds")
    return found


def _float(value: int | Real | Number, where: str) -> float:
    """By the parser that reads whole columns: the nearest float of a text is not always that of its double."""
    found: float = pa.scalar(_text(value)).cast(pa.float32()).as_py()
    if not math.isfinite(found):
        raise Misfit(f"{where} is a number that does not fit into float")
    if not isinstance(value, Real) and Decimal(found) != _exact(value):
        raise Misfit(f"{where} is a whole number that no float holds")
    return found


def _exact(value: int | Real | Number) -> Decimal:
    return _number(_text(value))


def _text(value: int | Real | Number) -> str:
    return value.written if isinstance(value, Real) else str(value)


def _time(value: str, schema: PayloadSchema, where: str) -> int:
    """By the parser that reads whole columns."""
    try:
        found: int = pc.ascii_upper(pa.scalar(value)).cast(schema.kind).value
    except pa.ArrowInvalid:
        example = "2026-01-31T12:00:00.123456Z" if schema.type == "date-time" else "2026-01-31"
        raise Misfit(f"{where} is a string that is no {schema.type} like {example}") from None
    return found


def _map(value: dict[str, Any] | list[Any], schema: PayloadSchema, where: str) -> list[tuple[Any, Any]]:
    keys, items = _part(schema.keys), _part(schema.items)
    if keys.type == "string":
        if isinstance(value, list):
            raise Misfit(f"{where} is an array, and should be an object: a map with strings as keys")
        return [(key, payload_value(item, items, f"{where}.{key}")) for key, item in value.items()]
    if isinstance(value, dict):
        raise Misfit(f"{where} is an object, and should be an array of keys and values")
    pairs = []
    for number, pair in enumerate(value):
        place = f"{where}[{number}]"
        if not isinstance(pair, list) or len(pair) != 2:
            raise Misfit(f"{place} is {described(pair)}, and should be an array of a key and a value")
        if pair[0] is None:
            raise Misfit(f"{place} has no key")
        pairs.append((payload_value(pair[0], keys, f"{place}[0]"), payload_value(pair[1], items, f"{place}[1]")))
    return pairs


def _whole(value: int, schema: PayloadSchema, where: str) -> int:
    limit = LIMITS[schema.type]
    if not -limit <= value < limit:
        raise Misfit(f"{where} is a number that does not fit into {schema.type}")
    if pa.types.is_time(schema.kind) and not 0 <= value < DAY:
        raise Misfit(f"{where} is a number that is not a time of day in milliseconds")
    return value


def _bytes(value: str, where: str) -> bytes:
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise Misfit(f"{where} is a string that is not base64, and should be bytes") from None


def _decimal(value: Any, schema: PayloadSchema, where: str) -> Decimal:
    """A number, or the unscaled number as bytes. A string is always bytes: `"1250"` is valid base64."""
    with localcontext(prec=ENOUGH_DIGITS):
        match value:
            case Number() | Real():
                number = _number(value.text if isinstance(value, Real) else value)
            case int() if not isinstance(value, bool):
                number = Decimal(value)
            case str():
                unscaled = _bytes(value, where)
                if not 0 < len(unscaled) <= MAX_BYTES:
                    raise Misfit(f"{where} has {len(unscaled)} bytes, and should be {schema.kind}")
                number = Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-schema.scale)
            case _:
                raise Misfit(f"{where} is {described(value)}, and should be {schema.kind}")
        return _fitted(number, schema.kind, where)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:  # the exponent is too large, or too small, for a decimal
        return Decimal("Infinity")


def _fitted(number: Decimal, kind: pa.Decimal128Type, where: str) -> Decimal:
    if not number:
        return Decimal(0)
    if not number.is_finite() or number.adjusted() >= kind.precision - kind.scale:
        raise Misfit(f"{where} has too many digits for {kind}")
    scaled = number.quantize(Decimal(1).scaleb(-kind.scale))
    if scaled != number:
        raise Misfit(f"{where} has more than {kind.scale} digits behind the point")
    return scaled


def _part(schema: PayloadSchema | None) -> PayloadSchema:
    assert schema is not None  # arrays and maps have these parts
    return schema
