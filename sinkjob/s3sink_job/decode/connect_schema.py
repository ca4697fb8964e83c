"""Schemas of Kafka Connect, as its JsonConverter writes them beside each record, and the Arrow types of their values.

Logical types are those of Connect itself. Any other name, such as `io.debezium.time.MicroTimestamp`, leaves a value as
the plain type that is written: a column never depends on names that only some connectors use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from s3sink_job.columns.sources import short
from s3sink_job.decode.json_inference import NotARow, json_value
from s3sink_job.decode.payload_schema import PLAIN, PayloadSchema

DIGITS = 38
"""Of a decimal whose schema does not say how many it has: as many as Arrow, Parquet and Avro readers take."""
MAX_DEPTH = 64
DATA = "org.apache.kafka.connect.data."
DECIMAL = f"{DATA}Decimal"
LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int32", f"{DATA}Date"): pa.date32(),
    ("int32", f"{DATA}Time"): pa.time32("ms"),
    ("int64", f"{DATA}Timestamp"): pa.timestamp("ms", "UTC"),
}


class BadSchema(ValueError):
    """A document that is not a schema of Connect, with the path to the place in it."""


def connect_schema(text: str) -> PayloadSchema:
    """The schema that a JSON text describes. Raises `BadSchema`."""
    try:
        return _schema(json_value(text), "$", 0)
    except NotARow as error:
        raise BadSchema(error.fault.message) from None


def _schema(doc: Any, where: str, depth: int) -> PayloadSchema:
    if depth > MAX_DEPTH:
        raise BadSchema(f"{where} is nested more than {MAX_DEPTH} levels deep")
    kind = doc.get("type") if isinstance(doc, dict) else None
    if not isinstance(kind, str):
        raise BadSchema(f"{where} has no type")
    optional, default = doc.get("optional") is True, doc.get("default")
    match kind:
        case "struct":
            fields = _fields(doc.get("fields"), where, depth)
            of = pa.struct([pa.field(name, inner.kind) for name, inner in fields])
            return PayloadSchema(kind, of, optional, default, fields=fields, name=short(doc.get("name")))
        case "array":
            items = _schema(doc.get("items"), f"{where}.items", depth + 1)
            return PayloadSchema(kind, pa.list_(items.kind), optional, default, items=items)
        case "map":
            keys = _schema(doc.get("keys"), f"{where}.keys", depth + 1)
            items = _schema(doc.get("values"), f"{where}.values", depth + 1)
            return PayloadSchema(kind, pa.map_(keys.kind, items.kind), optional, default, keys=keys, items=items)
    if kind not in PLAIN:
        raise BadSchema(f"{where} has the unknown type {kind!r}")
    name = doc.get("name")
    if (kind, name) == ("bytes", DECIMAL):
        scale, digits = scale_and_digits(doc.get("parameters"), where)
        # Parquet has no negative scale: such a decimal is a whole number.
        return PayloadSchema(kind, pa.decimal128(digits, max(0, scale)), optional, default, scale=scale)
    logical = LOGICAL.get((kind, name)) if isinstance(name, str) else None
    return PayloadSchema(kind, logical or PLAIN[kind], optional, default)


def _fields(docs: Any, where: str, depth: int) -> tuple[tuple[str, PayloadSchema], ...]:
    if not isinstance(docs, list):
        raise BadSchema(f"{where} is a struct without fields")
    fields: dict[str, PayloadSchema] = {}
    for number, doc in enumerate(docs):
        name = doc.get("field") if isinstance(doc, dict) else None
        if not isinstance(name, str):
            raise BadSchema(f"{where}.fields[{number}] has no name: it needs a string as its field")
        if name in fields:
            raise BadSchema(f"{where} has the field {name!r} twice")
        fields[name] = _schema(doc, f"{where}.{name}", depth + 1)
    return tuple(fields.items())


def scale_and_digits(parameters: Any, where: str) -> tuple[int, int]:
    given = parameters if isinstance(parameters, dict) else {}
    try:
        scale, digits = int(given["scale"]), int(given.get("connect.decimal.precision", DIGITS))
    except (KeyError, TypeError, ValueError):
        raise BadSchema(f"{where} is a Decimal without a whole number as parameters.scale") from None
    if not -DIGITS <= scale <= DIGITS:
        raise BadSchema(f"{where} is a Decimal of scale {scale}: more than {DIGITS} digits are not supported")
    # Digits are those of the unscaled number.
    return scale, min(DIGITS, max(digits - min(scale, 0), scale, 1))
