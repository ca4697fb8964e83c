"""Avro schemas of Arrow columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from s3sink_job.formats.avro_names import avro_name

NAMESPACE = "s3sink"
SOURCE_NAME = "sourceName"
"""The property of a field with its name, where Avro does not allow that name."""
SIMPLE = {pa.bool_(): "boolean", pa.int32(): "int", pa.int64(): "long", pa.float64(): "double", pa.string(): "string"}
TIME = pa.timestamp("ms", "UTC")
AVRO_TIME = {"type": "long", "logicalType": "timestamp-millis"}
FROM_AVRO = {name: kind for kind, name in SIMPLE.items()}


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
    if pa.types.is_binary(kind):
        return "bytes"
    return AVRO_TIME if kind.equals(TIME) else SIMPLE[kind]


def replaced(schema: Any, kind: Any, other: Any) -> Any:
    """The schema with one type replaced by another."""
    if schema == kind:
        return other
    if isinstance(schema, dict):
        inner = {key: replaced(schema[key], kind, other) for key in ("type", "items", "fields") if key in schema}
        return {**schema, **inner}
    return [replaced(part, kind, other) for part in schema] if isinstance(schema, list) else schema


def encodable(kind: pa.DataType, instead_of: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The columns with their Avro names, and one type replaced by another."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(avro_name(f.name), encodable(f.type, instead_of, other)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(encodable(kind.value_type, instead_of, other))
    return other if kind.equals(instead_of) else kind


def arrow_type(schema: Any, *, raw: bool = False) -> pa.DataType:
    """The type of a schema that was written here; `raw` with the names in the file, and with times as numbers."""
    if isinstance(schema, list):
        return arrow_type(schema[1], raw=raw)
    if schema == AVRO_TIME:
        return pa.int64() if raw else TIME
    if schema == "bytes":
        return pa.binary()
    if isinstance(schema, str):
        return FROM_AVRO[schema]
    if schema["type"] == "array":
        return pa.list_(arrow_type(schema["items"], raw=raw))
    key = "name" if raw else SOURCE_NAME
    return pa.struct([(f.get(key, f["name"]), arrow_type(f["type"], raw=raw)) for f in schema["fields"]])
