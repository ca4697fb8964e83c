"""Avro schemas as types: names resolved, and logical types that hold by the specification.

A logical type that is not known, or that does not fit its type, is left out, as the specification asks: the value is
read by its plain type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from s3sink_job.columns.sources import SourceField, SourceRecord, default_text, short
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
LOGICAL = {
    "int": {"date", "time-millis"},
    "long": {
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    },
    "string": {"uuid"},
}
FIXED_LOGICAL = {"uuid": 16, "duration": 12}
"""Logical types of `fixed`, with its size."""
MAX_DEPTH = 100
"""Levels of a schema. Python's own limit would depend on the depth of the caller."""
MAX_TYPES = 100_000
"""Types of a schema, counted wherever they are used: a record that uses another one twice doubles it."""
MAX_PRECISION = 1_000
"""Digits of a decimal. With more it is read as plain bytes."""
MAX_SIZE = 2**31 - 1
"""Bytes of a `fixed`."""


@dataclass(frozen=True)
class Decimal:
    precision: int
    scale: int


Logical: TypeAlias = str | Decimal


@dataclass(frozen=True)
class Primitive:
    name: str
    logical: Logical = ""


@dataclass(frozen=True)
class Fixed:
    name: str
    size: int
    logical: Logical = ""


@dataclass(frozen=True)
class Enum:
    name: str
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Array:
    items: AvroType


@dataclass(frozen=True)
class Map:
    values: AvroType


@dataclass(frozen=True)
class Field:
    name: str
    type: AvroType


@dataclass(frozen=True)
class Record:
    name: str
    fields: tuple[Field, ...]
    source: SourceRecord = field(default=SourceRecord({}), compare=False)
    """Docs, aliases and defaults. They change nothing in how records are read."""


@dataclass(frozen=True)
class Union:
    branches: tuple[AvroType, ...]

    @property
    def values(self) -> tuple[tuple[int, AvroType], ...]:
        """The branches that are not null, each with its number."""
        return tuple((n, branch) for n, branch in enumerate(self.branches) if branch != NULL)


@dataclass(frozen=True)
class Recursive:
    """A record inside of itself. No column type is recursive: its column holds JSON."""

    name: str


AvroType: TypeAlias = Primitive | Fixed | Enum | Array | Map | Record | Union | Recursive
NULL = Primitive("null")


@dataclass(frozen=True)
class ParsedSchema:
    root: AvroType
    named: Mapping[str, Record]
    """The records that are inside of themselves, by name."""


def parse_schema(schema: WriterSchema) -> ParsedSchema:
    """Raises `InvalidSchema`."""
    named: dict[str, Any] = {}
    try:
        for text in dict.fromkeys(reference.text for reference in schema.references):
            fastavro.parse_schema(_document(text), named)
        parsed = fastavro.parse_schema(_document(schema.text), named)
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidSchema(f"not an Avro schema: {type(error).__name__}: {error}") from None
    except RecursionError:
        raise InvalidSchema("not an Avro schema: nested too deeply") from None
    resolver = _Resolver(named)
    try:
        root = resolver.resolve(parsed, ())
    except RecursionError:
        raise InvalidSchema("not an Avro schema that can be read: nested too deeply") from None
    return ParsedSchema(root, resolver.recursive)


def _document(text: str) -> Any:
    text = text.strip()
    # A registry may give a primitive type as its bare name.
    if text in PRIMITIVES:
        return text
    # A lone surrogate is JSON, but no text.
    json.dumps(document := json.loads(text), ensure_ascii=False).encode()
    return _without_wrong_logical_types(document)


def _without_wrong_logical_types(schema: Any) -> Any:
    """Without logical types that fastavro refuses: by the specification such a value has its plain type."""
    if isinstance(schema, list):
        return [_without_wrong_logical_types(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    logical = schema.get("logicalType")
    wrong = not isinstance(logical, str) or (logical == "decimal" and _decimal(schema) == "")
    return {k: _without_wrong_logical_types(v) for k, v in schema.items() if not (wrong and k == "logicalType")}


class _Resolver:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._types = 0
        self.recursive: dict[str, Record] = {}

    def resolve(self, schema: Any, inside: tuple[str, ...]) -> AvroType:
        """`inside` are the names of the records around it."""
        self._types += 1
        if len(inside) > MAX_DEPTH or self._types > MAX_TYPES:
            most = f"more than {MAX_DEPTH} levels or {MAX_TYPES} types"
            raise InvalidSchema(f"not an Avro schema that can be read: it has {most}")
        if isinstance(schema, list):
            return _union(tuple(self.resolve(branch, inside) for branch in schema))
        if isinstance(schema, str):
            return Primitive(schema) if schema in PRIMITIVES else self._record_or_named(schema, inside)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.resolve(kind, inside)
        match kind:
            case "record" | "error":
                return self._record(schema, inside)
            case "enum":
                return Enum(schema["name"], _symbols(schema))
            case "fixed":
                return Fixed(schema["name"], _size(schema), _fixed_logical(schema))
            case "array":
                return Array(self.resolve(schema["items"], (*inside, "[]")))
            case "map":
                return Map(self.resolve(schema["values"], (*inside, "{}")))
            case _ if kind in PRIMITIVES:
                return Primitive(kind, _logical(schema))
        return self._record_or_named(kind, inside)

    def _record_or_named(self, name: str, inside: tuple[str, ...]) -> AvroType:
        return self.resolve(self._named[name], inside)

    def _record(self, schema: Any, inside: tuple[str, ...]) -> AvroType:
        name = schema["name"]
        if name in inside:
            if name not in self.recursive:
                self.recursive[name] = Record(name, ())  # so that it is resolved once
                self.recursive[name] = Record(name, self._fields(schema["fields"], (name,)))
            return Recursive(name)
        fields = self._fields(schema["fields"], (*inside, name))
        return Record(name, fields, source_record(schema, fields))

    def _fields(self, fields: Iterable[Any], inside: tuple[str, ...]) -> tuple[Field, ...]:
        found = tuple(Field(field["name"], self.resolve(field["type"], inside)) for field in fields)
        _refuse_repeated("field", [field.name for field in found])
        return found


def source_record(schema: Mapping[str, Any], fields: Iterable[Field]) -> SourceRecord:
    """`fields` are those of the schema, resolved."""
    found = {}
    for resolved, doc in zip(fields, schema["fields"], strict=True):
        kind = resolved.type
        nullable = kind == NULL or (isinstance(kind, Union) and NULL in kind.branches)
        default = default_text(doc["default"]) if "default" in doc and _means_the_same(kind) else ""
        required = not nullable and "default" not in doc
        found[resolved.name] = SourceField(required, nullable, short(doc.get("doc")), _aliases(doc), default)
    return SourceRecord(found, short(schema.get("doc")), _aliases(schema))


def _aliases(schema: Mapping[str, Any]) -> tuple[str, ...]:
    given = schema.get("aliases")
    return tuple(alias for alias in given if isinstance(alias, str)) if isinstance(given, list) else ()


def _means_the_same(kind: AvroType) -> bool:
    """Whether a default of the type is also one of its column. A UUID in bytes, for example, is text there."""
    match kind:
        case Union(branches):
            return len(kind.values) == 1 and _means_the_same(branches[0])
        case Fixed(_, _, logical):
            return not logical
    return True


def _symbols(schema: Mapping[str, Any]) -> tuple[str, ...]:
    symbols = schema["symbols"]
    if not symbols or not all(isinstance(symbol, str) for symbol in symbols):
        raise InvalidSchema(f"not an Avro schema: the enum {schema['name']} has no symbols, or some that are not text")
    return tuple(symbols)


def _size(schema: Mapping[str, Any]) -> int:
    size = schema["size"]
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MAX_SIZE:
        raise InvalidSchema(f"not an Avro schema: the fixed {schema['name']} has the size {size!r}")
    return size


def _union(branches: tuple[AvroType, ...]) -> Union:
    union = Union(branches)
    _refuse_repeated("branch", [_branch_name(branch) for branch in branches])
    return union


def _refuse_repeated(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidSchema(f"not an Avro schema: it has the {what} {repeated} twice")


def _logical(schema: Mapping[str, Any]) -> Logical:
    kind, logical = schema["type"], _logical_name(schema)
    if logical == "decimal" and kind == "bytes":
        return _decimal(schema)
    return logical if logical in LOGICAL.get(kind, ()) else ""


def _logical_name(schema: Mapping[str, Any]) -> str:
    found = schema.get("logicalType")
    return found if isinstance(found, str) else ""


def _fixed_logical(schema: Mapping[str, Any]) -> Logical:
    logical = _logical_name(schema)
    if logical == "decimal":
        return _decimal(schema)
    return logical if FIXED_LOGICAL.get(logical) == schema["size"] else ""


def _decimal(schema: Mapping[str, Any]) -> Logical:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return ""
    return Decimal(precision, scale) if 0 <= scale <= precision and 0 < precision <= MAX_PRECISION else ""


def branch_names(union: Union) -> tuple[str, ...]:
    """A name for each branch that is not null: of its type, or of its record, enum or fixed without the namespace."""
    full = [_branch_name(branch) for _, branch in union.values]
    short = [name.rpartition(".")[2] for name in full]
    return tuple(one if short.count(one) == 1 else whole for one, whole in zip(short, full, strict=True))


def _branch_name(branch: AvroType) -> str:
    match branch:
        case Array():
            return "array"
        case Map():
            return "map"
        case Union():
            return "union"
        case _:
            return branch.name
