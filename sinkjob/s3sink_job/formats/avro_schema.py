"""Avro schemas of Arrow columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from s3sink_job.columns.types import TEXT, UNITS, decimal
from s3sink_job.formats.avro_names import avro_name

NAMESPACE = "s3sink"
SOURCE_NAME = "sourceName"
"""The property of a field with its name, where Avro does not allow that name."""
SIMPLE = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}
FROM_AVRO = {name: kind for kind, name in SIMPLE.items()}
AVRO_UNITS = dict(zip(UNITS, ("millis", "micros", "nanos"), strict=True))
LOGICAL = {
    pa.date32(): ("int", "date"),
    pa.time32("ms"): ("int", "time-millis"),
    pa.time64("us"): ("long", "time-micros"),
    **{pa.timestamp(unit, "UTC"): ("long", f"timestamp-{name}") for unit, name in AVRO_UNITS.items()},
    **{pa.timestamp(unit): ("long", f"local-timestamp-{name}") for unit, name in AVRO_UNITS.items()},
}
FROM_LOGICAL = {name: kind for kind, (_, name) in LOGICAL.items()}
MOST_FIXED_BYTES = 64


def avro_schema(record: pa.StructType) -> dict[str, Any]:
    return _record_schema(record, (NAMESPACE,))


def _record_schema(record: pa.StructType, path: tuple[str, ...]) -> dict[str, Any]:
    """The path to a nested record is its namespace, so that no two have the same name."""
    return {
        "type": "record",
        "name": "Row",
        "namespace": ".".join(path),
        "fields": [_field_schema(field, path) for field in record],
    }


def _field_schema(field: pa.Field, path: tuple[str, ...]) -> dict[str, Any]:
    name = avro_name(field.name)
    known = {} if name == field.name else {SOURCE_NAME: field.name}
    return {"name": name, "type": _nullable(field.type, (*path, name)), "default": None, **known}


def _nullable(kind: pa.DataType, path: tuple[str, ...]) -> list[Any]:
    return ["null", _schema_of(kind, path)]


def _schema_of(kind: pa.DataType, path: tuple[str, ...]) -> Any:
    if pa.types.is_struct(kind):
        return _record_schema(kind, path)
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_type, path)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _nullable(kind.item_type, path)}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return _fixed_schema(kind.byte_width, path)
    if kind in LOGICAL:
        simple, logical = LOGICAL[kind]
        return {"type": simple, "logicalType": logical}
    return SIMPLE[kind]


def _fixed_schema(size: int, path: tuple[str, ...]) -> dict[str, Any]:
    """The size is a property of bytes, too: without it the type would not be known to a reader."""
    if not words(size):
        return {"type": "bytes", "size": size}
    return {"type": "fixed", "name": "Fixed", "namespace": ".".join(path), "size": size}


def words(size: int) -> list[int]:
    """The sizes of the doubles and floats that have the bytes of a `fixed`; none if it is written as bytes."""
    if size % 4 or size > MOST_FIXED_BYTES:
        return []
    return [8] * (size // 8) + [4] * (size % 8 // 4)


def encodable_schema(schema: Any) -> Any:
    """The schema of the columns that the library takes: see `avro_columns.py`."""
    match schema:
        case list():
            return [encodable_schema(part) for part in schema]
        case "bytes" | {"type": "bytes"}:
            return "string"
        case {"type": "fixed", "size": size}:
            kinds = ["double" if width == 8 else "float" for width in words(size)]
            fields = [{"name": f"w{number}", "type": kind} for number, kind in enumerate(kinds)]
            return {"type": "record", "name": schema["name"], "namespace": schema["namespace"], "fields": fields}
        case {"logicalType": _}:
            return schema["type"]
    return _within(schema, encodable_schema)


def plain_schema(schema: Any) -> Any:
    """The schema without logical types: Python has no years beyond 9999."""
    if isinstance(schema, list):
        return [plain_schema(part) for part in schema]
    if isinstance(schema, dict) and "logicalType" in schema:
        return schema["type"]
    return _within(schema, plain_schema)


def _within(schema: Any, change: Callable[[Any], Any]) -> Any:
    """The schema with the types within it changed."""
    match schema:
        case {"fields": fields}:
            return {**schema, "fields": [{**field, "type": change(field["type"])} for field in fields]}
        case {"items": items}:
            return {**schema, "items": change(items)}
        case {"values": values}:
            return {**schema, "values": change(values)}
    return schema


def arrow_type(schema: Any, *, plain: bool = False) -> pa.DataType:
    """The type of a schema that was written here; `plain` with the names in the file, without logical types."""
    if isinstance(schema, list):
        return arrow_type(schema[1], plain=plain)
    match schema:
        case str():
            return FROM_AVRO[schema]
        case {"logicalType": "decimal"} if not plain:
            return decimal(schema["precision"], schema["scale"])
        case {"logicalType": name} if not plain:
            return FROM_LOGICAL[name]
        case {"type": "array"}:
            return pa.list_(arrow_type(schema["items"], plain=plain))
        case {"type": "map"}:
            return pa.map_(TEXT, arrow_type(schema["values"], plain=plain))
        case {"type": "fixed" | "bytes", "size": size} if not plain:
            return pa.binary(size)
        case {"type": "fixed"}:
            return pa.binary()
        case {"type": "record"}:
            key = "name" if plain else SOURCE_NAME
            return pa.struct([(f.get(key, f["name"]), arrow_type(f["type"], plain=plain)) for f in schema["fields"]])
    return arrow_type(schema["type"], plain=plain)
