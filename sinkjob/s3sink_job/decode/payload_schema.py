"""The schema of JSON payloads: what each value is in JSON, and the Arrow type of its column.

Connect's schemas and JSON Schema are both read into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from s3sink_job.columns.types import TEXT

VALUE = "value"
"""The column of a record that is not a struct."""
PLAIN: Mapping[str, pa.DataType] = {
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": TEXT,
    "bytes": pa.binary(),
}
"""Connect's types, by its names. A plain `bytes` is base64 in JSON."""
NULL, INTEGER, NUMBER, DATE, DATE_TIME, JSON = "null", "integer", "number", "date", "date-time", "json"
"""Types that only JSON Schema has. `json` is any value, as text. An `integer` may be written as 1.0."""
OF_JSON_SCHEMA: Mapping[str, pa.DataType] = {
    NULL: pa.null(),
    INTEGER: pa.int64(),
    NUMBER: pa.float64(),
    DATE: pa.date32(),
    DATE_TIME: pa.timestamp("us", "UTC"),
    JSON: TEXT,
}


@dataclass(frozen=True)
class PayloadSchema:
    type: str
    """`struct`, `array`, `map`, or one of the names above."""
    kind: pa.DataType
    """Of its column."""
    optional: bool = False
    default: Any = None
    """As JSON. It stands for a value that is missing though it is not optional."""
    fields: tuple[tuple[str, PayloadSchema], ...] = ()
    """Of a struct."""
    rest: str = ""
    """Of a struct: the last field, for all members that no other field is for. Without it they are refused."""
    keys: PayloadSchema | None = None
    items: PayloadSchema | None = None
    """The items of an array, or the values of a map."""
    scale: int = 0
    """Of a decimal, as the schema has it: the column's is never negative."""
    name: str = ""
    """Of a struct."""

    @property
    def record(self) -> pa.StructType:
        """The columns of records with this schema."""
        return self.kind if self.type == "struct" else pa.struct([pa.field(VALUE, self.kind)])

    @cached_property
    def parts(self) -> tuple[PayloadSchema, ...]:
        """The schemas directly below this one."""
        return (*(schema for _, schema in self.fields), *(s for s in (self.keys, self.items) if s is not None))

    @cached_property
    def types(self) -> frozenset[str]:
        """Its type, and those of all that it contains."""
        return frozenset({self.type}.union(*(part.types for part in self.parts)))

    def holds(self, *kinds: str) -> bool:
        """Whether it is or contains one of these types."""
        return not self.types.isdisjoint(kinds)

    @cached_property
    def has_open_parts(self) -> bool:
        """Whether it contains what Arrow's reader cannot read: maps, text with JSON, members without a field."""
        return self.type in ("map", JSON) or bool(self.rest) or any(part.has_open_parts for part in self.parts)


def struct(fields: tuple[tuple[str, PayloadSchema], ...], rest: str = "") -> PayloadSchema:
    kinds = [pa.field(name, inner.kind) for name, inner in fields]
    if rest:
        kinds.append(pa.field(rest, TEXT))
    return PayloadSchema("struct", pa.struct(kinds), optional=True, fields=fields, rest=rest)
