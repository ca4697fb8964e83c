"""The Arrow types of Avro schemas: plain ones as the bytes have them, and the columns that logical types give.

A union of null and one type is that type. A union of several types is a struct with a field for each, of which one is
not null. All columns are nullable.
"""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.decode.avro_schema import (
    Array,
    AvroType,
    Decimal,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Recursive,
    Union,
    branch_names,
)

PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
    "duration": pa.struct([("months", pa.int64()), ("days", pa.int64()), ("milliseconds", pa.int64())]),
}
MOST_DIGITS_128, MOST_DIGITS = 38, 76
"""Of decimal128, and of decimal256. A decimal with more digits is text."""


def plain_type(kind: AvroType) -> pa.DataType:
    return _type(kind, logical=False)


def column_type(kind: AvroType) -> pa.DataType:
    return _type(kind, logical=True)


def _type(kind: AvroType, *, logical: bool) -> pa.DataType:
    match kind:
        case Primitive(name, meaning):
            return logical_type(meaning) if logical and meaning else PLAIN[name]
        case Fixed(_, size, meaning):
            return logical_type(meaning) if logical and meaning else pa.binary(size)
        case Enum() | Recursive():
            return pa.string()
        case Array(items):
            return pa.list_(_type(items, logical=logical))
        case Map(values):
            return pa.map_(pa.string(), _type(values, logical=logical))
        case Record(_, fields):
            return pa.struct([pa.field(field.name, _type(field.type, logical=logical)) for field in fields])
        case Union():
            return _union_type(kind, logical=logical)


def _union_type(union: Union, *, logical: bool) -> pa.DataType:
    match union.values:
        case ():
            return pa.null()
        case ((_, only),):
            return _type(only, logical=logical)
        case several:
            names = branch_names(union)
            branches = zip(names, several, strict=True)
            return pa.struct([pa.field(name, _type(branch, logical=logical)) for name, (_, branch) in branches])


def logical_type(logical: Logical) -> pa.DataType:
    if not isinstance(logical, Decimal):
        return LOGICAL[logical]
    if logical.precision > MOST_DIGITS:
        return pa.string()
    wide = logical.precision > MOST_DIGITS_128
    return (pa.decimal256 if wide else pa.decimal128)(logical.precision, logical.scale)
