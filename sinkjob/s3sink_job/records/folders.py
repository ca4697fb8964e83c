"""The folder of each record: the values of the layout's items, put into words and escaped."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.duck import base64
from s3sink_job.encoding import Encoding
from s3sink_job.flush.clocks import clock_of
from s3sink_job.flush.escaping import MISSING, SPECIAL, TAKEN, escape, missing_segment, value_segment
from s3sink_job.flush.keys import MAX_KEY_BYTES, constant_segment
from s3sink_job.layout import TOMBSTONES, Item
from s3sink_job.records.decoded import decoded_fields
from s3sink_job.records.fields import Path, Values, json_fields, name_of, values_of
from s3sink_job.records.tables import takes_apart
from s3sink_job.records.text import NONE_BAD, Bad, Column, utf8
from s3sink_job.records.times import calendar_of, times_of

NO_TIMESTAMP = -1000
"""Kafka's -1 ms, of a record that has none."""
ODD = f"{SPECIAL}|^(?:{'|'.join(re.escape(name) for name in (*TAKEN, MISSING))})$|^[._]"
Level = Values
"""An item's folders instead of its values: each row has one."""


def folders_of(
    batch: pa.RecordBatch, encoding: Encoding, topic: str, partition: int, room: int, rows: pa.RecordBatch | None = None
) -> tuple[Column | None, Bad]:
    """The folder of each record, None where all share one, and the records that have none.

    A folder may take `room` bytes. The rows that the records were decoded to spare a second look at their values.
    """
    layout, apart = encoding.layout, encoding.nulls == "Separate"
    if layout.constant and not apart:
        return None, NONE_BAD
    levels = _levels(batch, encoding, rows)
    parts = [levels.get(item) or constant_segment(item, layout, topic, partition) for item in layout.items]
    folders = _joined(parts, batch.num_rows)
    if apart and batch.column("value").null_count:
        below = pc.binary_join_element_wise(TOMBSTONES, folders, "/") if parts else TOMBSTONES
        folders = pc.if_else(batch.column("value").is_null(), below, folders)
    bad = _too_long(folders, levels, room) if _longest(parts) > room else {}
    for level in reversed(levels.values()):
        bad |= level.bad
    return folders, Bad(bad)


def _levels(batch: pa.RecordBatch, encoding: Encoding, rows: pa.RecordBatch | None) -> dict[Item, Level]:
    """Of each item that depends on the record."""
    items = [item for item in encoding.layout.items if not item.constant]
    fields: dict[str, dict[Path, Values]] = {}
    for column, format in (("value", encoding.value), ("key", encoding.key)):
        wanted = _wanted([item for item in items if _is_field_of(column, item, format)])
        known = decoded_fields(rows, encoding, wanted) if rows is not None and column == "value" else {}
        if left := {path: verbatim for path, verbatim in wanted.items() if path not in known}:
            # Columns refuse a record that has a field twice: no need to look for it here as well.
            once = column == "value" and takes_apart(encoding)
            known |= _fields(batch.column(column), format, column, left, once=once)
        fields[column] = known
    return {item: _level(batch, encoding, item, _values(batch, encoding, item, fields)) for item in items}


def _wanted(items: list[Item]) -> dict[Path, bool]:
    """The paths to look at, and whether it matters how a number is written there. For a time it does not."""
    return {item.path: any(same.kind != "Time" for same in items if same.path == item.path) for item in items}


def _is_field_of(column: str, item: Item, format: str) -> bool:
    if column == "key":
        return item.kind == "Key" and (bool(item.path) or format == "Json")
    return item.kind == "Field" or item.source == "Field"


def _fields(column: Column, format: str, what: str, paths: dict[Path, bool], *, once: bool) -> dict[Path, Values]:
    if format == "Json":
        return json_fields(column, paths, what, once=once)
    nothing = pa.nulls(len(column), pa.int32())
    return {
        path: Values(
            pa.array([], pa.string()),
            nothing,
            dict.fromkeys(range(len(column)), f"{name_of(what, path)}: a {what} of format {format} has no fields"),
        )
        for path in paths
    }


def _values(batch: pa.RecordBatch, encoding: Encoding, item: Item, fields: dict[str, dict[Path, Values]]) -> Values:
    match item:
        case Item(kind="Time", source="Record"):
            times = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            known = pc.not_equal(times, NO_TIMESTAMP)
            if not pc.all(known).as_py():
                times = pc.if_else(known, times, pa.scalar(None, pa.int64()))
            return calendar_of(item).folders(times, {}, what_is(item))
        case Item(kind="Time"):
            return calendar_of(item).folders(*times_of(fields["value"][item.path], what_is(item)), what_is(item))
        case Item(kind="Header"):
            return _text(_last_header(batch.column("headers"), item.path[0]), what_is(item))
        case Item(kind="Key", path=()) if encoding.key != "Json":
            key = batch.column("key")
            return _text(key, what_is(item)) if encoding.key == "String" else values_of(base64(key), {})
        case Item(kind="Key"):
            return fields["key"][item.path]
        case _:
            return fields["value"][item.path]


def _text(column: Column, what: str) -> Values:
    text, bad = utf8(column)
    return values_of(text, {row: f"{what} is {why}" for row, why in bad.rows.items()})


def _last_header(column: Column, name: str) -> Column:
    """The value of each record's last header of a name."""
    plain = pa.concat_arrays([column])
    headers, rows = plain.flatten(), pc.list_parent_indices(plain)
    mine = pc.indices_nonzero(pc.equal(headers.field("key").cast(pa.string()), name)).to_numpy()
    last = np.full(len(plain), -1, np.int64)
    last[rows.to_numpy()[mine]] = mine  # of several for one row, the last one stays
    return headers.field("value").cast(pa.binary()).take(pa.array(last, mask=last < 0))


def _level(batch: pa.RecordBatch, encoding: Encoding, item: Item, values: Values) -> Level:
    segments = values.distinct if item.kind == "Time" else _segments(item.name, values.distinct)
    if not values.codes.null_count:
        return Level(segments, values.codes, values.bad)
    missing = clock_of(item).missing if item.kind == "Time" else missing_segment(item.name)
    bad = values.bad
    if encoding.layout.missing != "Default":
        gone = values.codes.is_null()
        if encoding.nulls == "Separate" and "Field" in {item.kind, item.source}:
            # Tombstones have a folder of their own, and no value to look into.
            gone = pc.and_(gone, batch.column("value").is_valid())
        why = f"{what_is(item)} is missing, and spec.layout.onMissingValue is {encoding.layout.missing}"
        bad = dict.fromkeys(pc.indices_nonzero(gone).to_pylist(), why) | bad
    codes = pc.fill_null(values.codes, len(segments))
    return Level(pa.concat_arrays([segments, pa.array([missing])]), codes, bad)


def _segments(name: str, distinct: Column) -> Column:
    if pc.any(pc.match_substring_regex(distinct, ODD), min_count=0).as_py():
        return pa.array([value_segment(name, value or "") for value in distinct.to_pylist()], pa.string())
    return pc.binary_join_element_wise(escape(name), distinct, "=") if name else distinct


def _joined(parts: list[Level | str], count: int) -> Column:
    """On the distinct values of the one level that varies, where there is but one."""
    levels = [part for part in parts if isinstance(part, Values)]
    if len(levels) != 1:
        rows = [part.rows() if isinstance(part, Values) else part for part in parts]
        return pc.binary_join_element_wise(*rows, "/") if levels else pa.repeat("/".join(map(str, parts)), count)
    texts = [part.distinct if isinstance(part, Values) else part for part in parts]
    return pc.binary_join_element_wise(*texts, "/").take(levels[0].codes)


def _longest(parts: list[Level | str]) -> int:
    """No folder has more bytes than this."""
    sizes = [
        pc.max(pc.binary_length(part.distinct)).as_py() or 0 if isinstance(part, Values) else len(part.encode())
        for part in parts
    ]
    return len(TOMBSTONES) + len(parts) + sum(sizes)


def _too_long(folders: Column, levels: dict[Item, Level], room: int) -> dict[int, str]:
    bad = {}
    for row in pc.indices_nonzero(pc.greater(pc.binary_length(folders), room)).to_pylist():
        sizes = {item: len(level.distinct[level.codes[row].as_py()].as_py().encode()) for item, level in levels.items()}
        bad[row] = f"key longer than {MAX_KEY_BYTES:,} bytes"
        if sizes:
            longest = max(sizes, key=lambda item: sizes[item])
            bad[row] += f": {what_is(longest)} makes a folder of {sizes[longest]}"
    return bad


def what_is(item: Item) -> str:
    """An item in words."""
    match item:
        case Item(kind="Time", source="Record"):
            return "record time"
        case Item(kind="Time"):
            return f"time in {name_of('value', item.path)}"
        case Item(kind="Header"):
            return f"header {item.path[0]}"
        case Item(kind="Key"):
            return name_of("key", item.path)
        case _:
            return name_of("value", item.path)
