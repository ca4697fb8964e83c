"""Change events of Debezium as the rows that they tell of: `spec.transform.unwrap`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec.transform_steps import Debezium
from s3sink_job.columns.types import EMPTY, TEXT, Column, Path
from s3sink_job.decode.bad_records import Fault, faults_at
from s3sink_job.shape.record_fields import NoSuchField, field_at, odd_value
from s3sink_job.shape.value_columns import ValueColumns, children, chosen, of_one_type, true_rows

DELETED = "__deleted"
DELETE, READABLE = "d", ("c", "u", "r", "d")
WITHOUT_ROW = ("t", "m")
"""Truncated tables and messages of the log."""
REASON = "NotAnEvent"


def unwrapped(values: ValueColumns, options: Debezium) -> ValueColumns:
    """Creates, updates and snapshots give the row after them, deletes what the options say."""
    op = values.columns.get("op")
    if op is None or not op.type.equals(TEXT):
        op = pa.nulls(values.count, TEXT)
    known = pc.is_in(op, value_set=pa.array([*READABLE, *WITHOUT_ROW]))
    foreign = true_rows(pc.and_(pc.invert(values.null), pc.invert(known)))
    why = "value is no change event of Debezium: its field op is none of c, u, r, d, t and m"
    values = values.with_faults(faults_at(foreign, REASON, why))
    deleted = pc.fill_null(pc.equal(op, DELETE), False)
    after, before, faults = _states(values)
    row = chosen(deleted, before, after)
    lost = pc.and_(pc.is_in(op, value_set=pa.array(["c", "u", "r"])), row.is_null())
    faults = faults_at(true_rows(lost), REASON, "value is a change event without the row in its field after") | faults
    added, more = _added(values, options)
    columns = children(row) | added
    found = values.with_faults(faults).with_faults(more).with_columns(columns)
    found = found.without(pc.fill_null(pc.is_in(op, value_set=pa.array(WITHOUT_ROW)), False))
    match options.deletes:
        case "Rows":
            shown = pc.if_else(values.null, pa.scalar(None, pa.bool_()), deleted)
            return found.with_columns({**columns, DELETED: shown})
        case "Drop":
            return found.without(deleted)
        case "Tombstones":
            return found.with_null(deleted)


def added_paths(options: Debezium) -> dict[str, Path]:
    """The fields of events that become columns, by the name of the column."""
    return {f"__{name.replace('.', '_')}": tuple(name.split(".")) for name in options.add_fields}


def event_paths(path: Path, options: Debezium) -> list[Path]:
    """The fields of events that a field of the row comes from. No name at all is the whole row."""
    if not path:
        return [path]
    added = added_paths(options)
    if path[0] in added:
        return [added[path[0]] + path[1:]]
    return [("op",)] if path[0] == DELETED else [("after", *path), ("before", *path)]


def _added(values: ValueColumns, options: Debezium) -> tuple[dict[str, Column], dict[int, Fault]]:
    columns: dict[str, Column] = {}
    faults: dict[int, Fault] = {}
    for name, path in added_paths(options).items():
        try:
            columns[name] = field_at(values.columns, path, values.count)
        except NoSuchField as error:
            columns[name] = pa.nulls(values.count)
            rows = [] if error.column is None else true_rows(error.column.is_valid())
            faults |= faults_at(rows, REASON, f"value is a change event without the field {'.'.join(path)}: {error}")
    return columns, faults


def _states(values: ValueColumns) -> tuple[Column, Column, dict[int, Fault]]:
    """The rows after and before, with the same columns."""
    states: list[Column] = []
    faults: dict[int, Fault] = {}
    for name in ("after", "before"):
        column = values.columns.get(name, pa.nulls(values.count))
        if not pa.types.is_struct(column.type):
            why = f"value is a change event whose field {name} is {column.type} and no record{odd_value(column.type)}"
            faults |= faults_at(true_rows(column.is_valid()), REASON, why)
            column = pa.nulls(values.count, EMPTY)
        states.append(column)
    after, before = of_one_type(*states)
    return after, before, faults
