"""Avro schemas of Arrow columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from s3sink_job.columns.sources import NO_SOURCES, SourceField, SourceRecord, Sources
from s3sink_job.columns.types import ITEM, TEXT, UNITS, Path, decimal
from s3sink_job.formats.avro_names import avro_name

NAMESPACE, ROW = "s3sink", "Row"
"""Of records whose source has no name for them."""
FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
UNKNOWN = SourceRecord({})
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


def avro_schema(record: pa.StructType, sources: Sources = NO_SOURCES) -> dict[str, Any]:
    """`sources` have the names, docs, aliases and defaults of the records' own schemas, by the path among the rows."""
    return _SchemaWriter(sources).record(record, ())


class _SchemaWriter:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._names: set[str] = set()
        """Full names of records so far: each may be defined once."""

    def record(self, record: pa.StructType, path: Path) -> dict[str, Any]:
        name, source = self._source(path)
        return {
            "type": "record",
            **self._unique(name or ROW, path),
            **_described(source),
            "fields": [self._field(field, record, source, path) for field in record],
        }

    def _unique(self, name: str, path: Path) -> dict[str, str]:
        """Name and namespace of a record. Readers compare the name alone, so it is kept where the namespace is not."""
        namespace, _, short = name.rpartition(".")
        if name in self._names or name == ROW:
            namespace = _namespace(path)
            while f"{namespace}.{short}" in self._names:
                short += "_"
        self._names.add(f"{namespace}.{short}" if namespace else short)
        return {"name": short, "namespace": namespace}

    def _source(self, path: Path) -> tuple[str, SourceRecord]:
        """The source's record, if there is only one at this path, and if Avro takes its name."""
        match list(self._sources.get(path, {}).items()):
            case [(name, record)]:
                return (name if FULL_NAME.fullmatch(name) else "", record)
        return "", UNKNOWN

    def _field(self, field: pa.Field, beside: pa.StructType, record: SourceRecord, path: Path) -> dict[str, Any]:
        name, source = avro_name(field.name), record.fields.get(field.name)
        known = {} if name == field.name else {SOURCE_NAME: field.name}
        kind = self._schema(field.type, (*path, field.name))
        default = None if source is None else source_default(source, kind)
        union = ["null", kind] if default is None else [kind, "null"]
        described = _described(source, without=beside.names)
        return {"name": name, "type": union, "default": default, **known, **described}

    def _nullable(self, kind: pa.DataType, path: Path) -> list[Any]:
        return ["null", self._schema(kind, path)]

    def _schema(self, kind: pa.DataType, path: Path) -> Any:
        if pa.types.is_struct(kind):
            return self.record(kind, path)
        if pa.types.is_list(kind):
            return {"type": "array", "items": self._nullable(kind.value_type, (*path, ITEM))}
        if pa.types.is_map(kind):
            return {"type": "map", "values": self._nullable(kind.item_type, (*path, ITEM))}
        if pa.types.is_decimal(kind):
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        if pa.types.is_fixed_size_binary(kind):
            return _fixed_schema(kind.byte_width, path)
        if kind in LOGICAL:
            simple, logical = LOGICAL[kind]
            return {"type": simple, "logicalType": logical}
        return SIMPLE[kind]


def _described(source: SourceRecord | SourceField | None, without: Sequence[str] = ()) -> dict[str, Any]:
    """`without` are fields of the same record: an older version may have one with the name of an alias."""
    if source is None:
        return {}
    aliases = [alias for alias in source.aliases if FULL_NAME.fullmatch(alias) and alias not in without]
    return {**({"doc": source.doc} if source.doc else {}), **({"aliases": aliases} if aliases else {})}


def source_default(source: SourceField, kind: Any) -> Any:
    """The default of the source, where the written type can have it; None is Avro's null."""
    value = json.loads(source.default or "null")
    simple = kind["type"] if isinstance(kind, dict) else kind
    match simple, value:
        case ("array", []) | ("map", {}) if not value:
            return value
        case ("boolean", bool()) | ("string", str()):
            return value
        case ("bytes", str()) if value.isascii() or max(value) <= "\xff":
            return value
        case ("int" | "long" | "float" | "double", int()) if not isinstance(value, bool):
            return value
        case ("float" | "double", float()):
            return value
    return None


def _namespace(path: Path) -> str:
    """The path is in it, so that no two records have the same full name."""
    return ".".join((NAMESPACE, *(avro_name(name) for name in path if name != ITEM)))


def _fixed_schema(size: int, path: Path) -> dict[str, Any]:
    """The size is a property of bytes, too: without it the type would not be known to a reader."""
    if not words(size):
        return {"type": "bytes", "size": size}
    return {"type": "fixed", "name": "Fixed", "namespace": _namespace(path), "size": size}


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
        return arrow_type(next(branch for branch in schema if branch != "null"), plain=plain)
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
