"""Payloads of Connect's JSON by their schema, one by one.

This is slow and exact. It is used for few rows, and for those among which some do not fit their schema.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa

from s3sink_job.decode.connect_schema import ConnectSchema
from s3sink_job.decode.json_inference import Number, Real, described

LIMITS: Mapping[str, int] = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63}
NOT_FINITE: Mapping[str, float] = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Connect writes these doubles as strings, since JSON has no numbers for them."""
DAY = 24 * 60 * 60 * 1000
ENOUGH_DIGITS = 100
MAX_BYTES = 32
"""Of a decimal: more than any has that fits into a column."""


class Misfit(ValueError):
    """Why a payload does not fit its schema, with the path to the value."""


def connect_value(value: Any, schema: ConnectSchema, where: str = "$") -> Any:
    """A JSON value as Arrow takes it for the column of the schema. Raises `Misfit`."""
    if value is None:
        if schema.optional:
            return None
        if schema.default is None:
            raise Misfit(f"{where} is null or missing, and is not optional")
        value = schema.default
    match schema.type, value:
        case "struct", dict():
            return _struct(value, schema, where)
        case "array", list():
            items = _part(schema.items)
            return [connect_value(item, items, f"{where}[{i}]") for i, item in enumerate(value)]
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
        case (("float" | "double"), int() | float()) if not isinstance(value, bool):
            return float(value)
        case (("int8" | "int16" | "int32" | "int64"), int()) if not isinstance(value, bool):
            return _whole(value, schema, where)
    raise Misfit(f"{where} is {described(value)}, and should be {schema.type}")


def _struct(value: dict[str, Any], schema: ConnectSchema, where: str) -> dict[str, Any]:
    names = {name for name, _ in schema.fields}
    if more := next((name for name in value if name not in names), None):
        raise Misfit(f"{where} has the field {more!r}, which the schema does not have")
    return {name: connect_value(value.get(name), inner, f"{where}.{name}") for name, inner in schema.fields}


def _map(value: dict[str, Any] | list[Any], schema: ConnectSchema, where: str) -> list[tuple[Any, Any]]:
    keys, items = _part(schema.keys), _part(schema.items)
    if keys.type == "string":
        if isinstance(value, list):
            raise Misfit(f"{where} is an array, and should be an object: a map with strings as keys")
        return [(key, connect_value(item, items, f"{where}.{key}")) for key, item in value.items()]
    if isinstance(value, dict):
        raise Misfit(f"{where} is an object, and should be an array of keys and values")
    pairs = []
    for number, pair in enumerate(value):
        place = f"{where}[{number}]"
        if not isinstance(pair, list) or len(pair) != 2:
            raise Misfit(f"{place} is {described(pair)}, and should be an array of a key and a value")
        if pair[0] is None:
            raise Misfit(f"{place} has no key")
        pairs.append((connect_value(pair[0], keys, f"{place}[0]"), connect_value(pair[1], items, f"{place}[1]")))
    return pairs


def _whole(value: int, schema: ConnectSchema, where: str) -> int:
    limit = LIMITS[schema.type]
    if not -limit <= value < limit:
        raise Misfit(f"{where} is {value}, which does not fit into {schema.type}")
    if pa.types.is_time(schema.kind) and not 0 <= value < DAY:
        raise Misfit(f"{where} is {value}, which is not a time of day in milliseconds")
    return value


def _bytes(value: str, where: str) -> bytes:
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise Misfit(f"{where} is a string that is not base64, and should be bytes") from None


def _decimal(value: Any, schema: ConnectSchema, where: str) -> Decimal:
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


def _part(schema: ConnectSchema | None) -> ConnectSchema:
    assert schema is not None  # arrays and maps have these parts
    return schema
