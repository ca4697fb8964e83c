"""`spec.transform.steps`, whole columns at a time. Each does what the transformation of Kafka Connect does.

A record without a value is left as it is. A field that no record has changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec.transform_steps import Cast, Drop, Extract, Flatten, Hoist, Insert, Mask, Rename, Step
from s3sink_job.columns.text import text_of
from s3sink_job.columns.types import TEXT, Column, Path
from s3sink_job.decode.bad_records import Fault, ValueFault, faults_at
from s3sink_job.shape.value_columns import ValueColumns, children, one_of, true_rows

WHOLE = "value"
"""The column of a value without fields."""
CAST_TYPES = {
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Boolean": pa.bool_(),
    "String": TEXT,
}
Meta = Callable[[Path], Column]
"""The column of a field beside the value, such as `_topic`."""
META_OF = {"Topic": "_topic", "Partition": "_partition", "Offset": "_offset", "Timestamp": "_timestamp"}


def stepped(values: ValueColumns, step: Step, meta: Meta) -> ValueColumns:
    match step:
        case Drop():
            return values.with_columns({n: c for n, c in values.columns.items() if n not in step.fields})
        case Rename():
            return _renamed(values, step)
        case Mask():
            return _each(values, step.fields, lambda column: _masked(column, step.replacement))
        case Insert():
            return _inserted(values, step, meta)
        case Cast():
            return _each(values, step.fields, lambda column: _cast(column, step.to))
        case Flatten():
            return _flattened(values, step.separator or ".")
        case Hoist():
            return values.with_columns({step.field: values.struct()})
        case Extract():
            return _extracted(values, step.field)


def source_paths(path: Path, step: Step) -> list[Path]:
    """The fields before the step that a field after it comes from. No name at all is the whole value."""
    if not path:
        return [path]
    match step:
        case Rename() if path[0] == step.as_:
            return [(step.field, *path[1:]), path]
        case Insert() if path[0] == step.field:
            return []
        case Flatten():
            separator = step.separator or "."
            names = path[0].split(separator)
            return [(separator.join(names[:end]),) for end in range(1, len(names) + 1)]
        case Hoist():
            return [path[1:]] if path[0] == step.field else []
        case Extract():
            return [(step.field, *path), *([(step.field,)] if path[0] == WHOLE else [])]
    return [path]


def _each(
    values: ValueColumns, names: tuple[str, ...], change: Callable[[Column], tuple[Column, dict[int, str]]]
) -> ValueColumns:
    columns = dict(values.columns)
    for name in names:
        if name in columns:
            columns[name], faults = change(columns[name])
            values = values.with_faults({row: _fault(f"field {name}:", why) for row, why in faults.items()})
    return values.with_columns(columns)


def _fault(what: str, why: str) -> Fault:
    """A value that cannot be cast is quoted."""
    return ValueFault(
        "StepFailed", re.sub(r"^['\"].*['\"](?= cannot be cast)", "a value", why, flags=re.DOTALL), why
    ).prefixed(what)


def _renamed(values: ValueColumns, step: Rename) -> ValueColumns:
    if step.field not in values.columns:
        return values
    renamed, taken = values.columns[step.field], values.columns.get(step.as_)
    if taken is not None and step.field != step.as_:
        renamed, both = one_of(renamed, taken)
        why = f"value already has the field {step.as_!r}, which {step.field!r} is to be renamed to"
        values = values.with_faults(faults_at(both, "FieldTaken", why))
    columns = {name: column for name, column in values.columns.items() if name != step.as_ or name == step.field}
    pairs = ((step.as_, renamed) if name == step.field else (name, column) for name, column in columns.items())
    return values.with_columns(dict(pairs))


def _inserted(values: ValueColumns, step: Insert, meta: Meta) -> ValueColumns:
    if step.source is None:
        column = pa.repeat(pa.scalar(step.value, TEXT), values.count)
    else:
        column = meta((META_OF[step.source],))
    column = pc.if_else(values.null, pa.scalar(None, column.type), column)
    return values.with_columns({**values.columns, step.field: column})


def _extracted(values: ValueColumns, field: str) -> ValueColumns:
    column = values.columns.get(field, pa.nulls(values.count))
    columns = children(column) if pa.types.is_struct(column.type) else {WHOLE: column}
    return values.with_columns(columns).with_null(column.is_null())


def _flattened(values: ValueColumns, separator: str) -> ValueColumns:
    columns: dict[str, Column] = {}
    for name, column in _leaves(values.columns, separator):
        if name not in columns:
            columns[name] = column
            continue
        columns[name], both = one_of(columns[name], column)
        why = f"two fields have the name {name!r} after Flatten: use another separator"
        values = values.with_faults(faults_at(both, "FieldTaken", why))
    return values.with_columns(columns)


def _leaves(columns: Mapping[str, Column], separator: str, before: str = "") -> Iterator[tuple[str, Column]]:
    for name, column in columns.items():
        if pa.types.is_struct(column.type):
            yield from _leaves(children(column), separator, f"{before}{name}{separator}")
        else:
            yield before + name, column


def _masked(column: Column, replacement: str | None) -> tuple[Column, dict[int, str]]:
    """What is null stays null."""
    kind = column.type
    if pa.types.is_null(kind):
        return column, {}
    if pa.types.is_struct(kind):
        return column, dict.fromkeys(true_rows(column.is_valid()), "a record cannot be masked: use Flatten before")
    try:
        blank = _blank(kind) if replacement is None else _replacement(kind, replacement)
    except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        why = f"{kind} cannot be masked" + ("" if replacement is None else f" with {replacement!r}")
        return pa.nulls(len(column), kind), dict.fromkeys(true_rows(column.is_valid()), why)
    return pc.if_else(column.is_valid(), blank, pa.scalar(None, kind)), {}


def _blank(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return pa.scalar([], kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.scalar(bytes(kind.byte_width), kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar("" if pa.types.is_string(kind) else b"", kind)
    return _zero(kind)


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(0), kind) if pa.types.is_decimal(kind) else pa.scalar(0, pa.int32()).cast(kind)


def _replacement(kind: pa.DataType, text: str) -> pa.Scalar:
    if not (
        pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    ):
        raise ValueError(kind)
    return pa.scalar(text).cast(kind)


def _cast(column: Column, to: str) -> tuple[Column, dict[int, str]]:
    wanted = CAST_TYPES[to]
    if pa.types.is_null(column.type):
        return column, {}  # the same as without the field
    if column.null_count == len(column):
        return pa.nulls(len(column), wanted), {}
    if pa.types.is_nested(column.type) and not wanted.equals(TEXT):
        why = f"{column.type} cannot be cast to {to}"
        return pa.nulls(len(column), wanted), dict.fromkeys(true_rows(column.is_valid()), why)
    try:
        return _cast_all(column, wanted), {}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _cast_some(column, wanted, to)


def _cast_some(column: Column, wanted: pa.DataType, to: str) -> tuple[Column, dict[int, str]]:
    """By halves, down to the values that cannot be cast."""
    if len(column) == 1:
        return pa.nulls(1, wanted), {0: f"{str(column[0].as_py())[:100]!r} cannot be cast to {to}"}
    half = len(column) // 2
    first, faults = _cast(column.slice(0, half), to)
    second, more = _cast(column.slice(half), to)
    return pa.concat_arrays([first, second]), faults | {half + row: why for row, why in more.items()}


def _cast_all(column: Column, wanted: pa.DataType) -> Column:
    kind = column.type
    if wanted.equals(TEXT):
        return text_of(column)
    if pa.types.is_temporal(kind):
        return _cast_all(column.cast(pa.int64() if kind.bit_width == 64 else pa.int32()), wanted)
    if pa.types.is_boolean(wanted):
        if pa.types.is_string(kind):
            # As Java reads it: any other text is false.
            return pc.equal(pc.utf8_lower(column), "true")
        return column if pa.types.is_boolean(kind) else pc.not_equal(column, _zero(kind))
    if pa.types.is_string(kind):
        column = pc.utf8_trim_whitespace(column)
    if pa.types.is_integer(wanted) and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        # Towards zero, as Java does.
        column = pc.trunc(column) if pa.types.is_floating(kind) else pc.round(column, 0, "towards_zero")
    return pc.cast(column, wanted, safe=pa.types.is_integer(wanted))
