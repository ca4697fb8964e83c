"""The folder of each record: the values of the layout's items as escaped text."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Fault, Stage, faults_at, prefixed
from s3sink_job.decode.decoder import DecodedBatch
from s3sink_job.decode.field_values import FieldValues, field_name, field_values
from s3sink_job.decode.utf8 import utf8
from s3sink_job.layout.escaping import MISSING, SPECIAL, TAKEN, escape, missing_segment, value_segment
from s3sink_job.layout.keys import MAX_KEY_BYTES, constant_segment
from s3sink_job.layout.settings import TOMBSTONES, Grouping, LayoutItem
from s3sink_job.layout.time_folders import calendar_of, times_of
from s3sink_job.layout.time_patterns import clock_of

NO_TIMESTAMP = -1000
"""Kafka's -1 ms, for a record without a timestamp."""
NEEDS_ESCAPE = f"{SPECIAL}|^(?:{'|'.join(re.escape(name) for name in (*TAKEN, MISSING))})$|^[._]"
Level = FieldValues
"""The folders of one item, one for each row."""


def folders_of(decoded: DecodedBatch, grouping: Grouping, topic: str, partition: int, room: int) -> Column | None:
    """The folder of each record, of at most `room` bytes; None if all share one. Records without one are bad."""
    layout, batch = grouping.layout, decoded.batch
    if not grouping.folders_vary:
        return None
    levels = _levels(decoded, grouping)
    parts = [levels.get(item) or constant_segment(item, layout, topic, partition) for item in layout.items]
    folders = _joined(parts, batch.num_rows)
    if grouping.tombstones_apart and batch.column("value").null_count:
        below = pc.binary_join_element_wise(TOMBSTONES, folders, "/") if parts else TOMBSTONES
        folders = pc.if_else(batch.column("value").is_null(), below, folders)
    for level in levels.values():
        decoded.bad.add(Stage.LAYOUT, level.faults)
    if _longest(parts) > room:
        decoded.bad.add(Stage.LAYOUT, _too_long(folders, levels, room))
    return folders


def _levels(decoded: DecodedBatch, grouping: Grouping) -> dict[LayoutItem, Level]:
    """The folders of each item that depends on the record."""
    items = [item for item in grouping.layout.items if not item.constant]
    fields = {part: decoded.fields(part, _wanted(_of_part(part, items))) for part in ("value", "key")}
    return {item: _level(decoded.batch, grouping, item, _values(decoded.batch, item, fields)) for item in items}


def _of_part(part: str, items: list[LayoutItem]) -> list[LayoutItem]:
    """The items that are fields of the key, or of the value."""
    if part == "key":
        return [item for item in items if item.kind == "Key"]
    return [item for item in items if item.kind == "Field" or item.source == "Field"]


def _wanted(items: list[LayoutItem]) -> dict[Path, bool]:
    """The paths, and whether numbers there count exactly as they are written. For a time they do not."""
    return {item.path: any(same.kind != "Time" for same in items if same.path == item.path) for item in items}


def _values(batch: pa.RecordBatch, item: LayoutItem, fields: dict[str, dict[Path, FieldValues]]) -> FieldValues:
    match item:
        case LayoutItem(kind="Time", source="Record"):
            times = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            known = pc.not_equal(times, NO_TIMESTAMP)
            if not pc.all(known).as_py():
                times = pc.if_else(known, times, pa.scalar(None, pa.int64()))
            return calendar_of(item).folders(times, {}, item_name(item))
        case LayoutItem(kind="Time"):
            return calendar_of(item).folders(*times_of(fields["value"][item.path], item_name(item)), item_name(item))
        case LayoutItem(kind="Header"):
            return _text(_last_header(batch.column("headers"), item.path[0]), item_name(item))
        case LayoutItem(kind="Key"):
            return fields["key"][item.path]
        case _:
            return fields["value"][item.path]


def _text(column: Column, what: str) -> FieldValues:
    text, faults = utf8(column)
    return field_values(text, prefixed(faults, f"{what} is"))


def _last_header(column: Column, name: str) -> Column:
    """The value of the last header with this name in each record."""
    plain = pa.concat_arrays([column])
    headers, rows = plain.flatten(), pc.list_parent_indices(plain)
    mine = pc.indices_nonzero(pc.equal(headers.field("key").cast(pa.string()), name)).to_numpy()
    last = np.full(len(plain), -1, np.int64)
    last[rows.to_numpy()[mine]] = mine  # the last of several in one row stays
    return headers.field("value").cast(pa.binary()).take(pa.array(last, mask=last < 0))


def _level(batch: pa.RecordBatch, grouping: Grouping, item: LayoutItem, values: FieldValues) -> Level:
    segments = values.distinct if item.kind == "Time" else _segments(item.name, values.distinct)
    if not values.codes.null_count:
        return Level(segments, values.codes, values.faults)
    missing = clock_of(item).missing if item.kind == "Time" else missing_segment(item.name)
    faults = values.faults
    if grouping.layout.missing != "Default":
        gone = values.codes.is_null()
        if grouping.tombstones_apart and "Field" in {item.kind, item.source}:
            # Tombstones have a folder of their own, and no value with fields.
            gone = pc.and_(gone, batch.column("value").is_valid())
        why = f"{item_name(item)} is missing, and spec.layout.onMissingValue is {grouping.layout.missing}"
        faults = {**faults_at(pc.indices_nonzero(gone).to_pylist(), "FieldMissing", why), **faults}
    codes = pc.fill_null(values.codes, len(segments))
    return Level(pa.concat_arrays([segments, pa.array([missing])]), codes, faults)


def _segments(name: str, distinct: Column) -> Column:
    if pc.any(pc.match_substring_regex(distinct, NEEDS_ESCAPE), min_count=0).as_py():
        return pa.array([value_segment(name, value or "") for value in distinct.to_pylist()], pa.string())
    return pc.binary_join_element_wise(escape(name), distinct, "=") if name else distinct


def _joined(parts: list[Level | str], count: int) -> Column:
    """The folders of all rows; if only one level varies, its distinct values are joined, not its rows."""
    levels = [part for part in parts if isinstance(part, FieldValues)]
    if len(levels) != 1:
        rows = [part.rows() if isinstance(part, FieldValues) else part for part in parts]
        return pc.binary_join_element_wise(*rows, "/") if levels else pa.repeat("/".join(map(str, parts)), count)
    texts = [part.distinct if isinstance(part, FieldValues) else part for part in parts]
    return pc.binary_join_element_wise(*texts, "/").take(levels[0].codes)


def _longest(parts: list[Level | str]) -> int:
    """An upper limit of the bytes of a folder."""
    sizes = [
        pc.max(pc.binary_length(part.distinct)).as_py() or 0 if isinstance(part, FieldValues) else len(part.encode())
        for part in parts
    ]
    return len(TOMBSTONES) + len(parts) + sum(sizes)


def _too_long(folders: Column, levels: dict[LayoutItem, Level], room: int) -> dict[int, Fault]:
    faults = {}
    for row in pc.indices_nonzero(pc.greater(pc.binary_length(folders), room)).to_pylist():
        sizes = {item: len(level.distinct[level.codes[row].as_py()].as_py().encode()) for item, level in levels.items()}
        why = f"key longer than {MAX_KEY_BYTES:,} bytes"
        if sizes:
            longest = max(sizes, key=lambda item: sizes[item])
            why += f": {item_name(longest)} makes a folder of {sizes[longest]}"
        faults[row] = Fault("KeyTooLong", why)
    return faults


def item_name(item: LayoutItem) -> str:
    """An item, for messages."""
    match item:
        case LayoutItem(kind="Time", source="Record"):
            return "record time"
        case LayoutItem(kind="Time"):
            return f"time in {field_name('value', item.path)}"
        case LayoutItem(kind="Header"):
            return f"header {item.path[0]}"
        case LayoutItem(kind="Key"):
            return field_name("key", item.path)
        case _:
            return field_name("value", item.path)
