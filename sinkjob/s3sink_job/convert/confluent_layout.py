"""Partitioners of Confluent's S3 sink, as folders."""

from __future__ import annotations

import re
from typing import Any

from s3sink_job.convert.date_formats import from_joda
from s3sink_job.convert.draft import Draft
from s3sink_job.convert.rules import milliseconds, words

_FIXED = {
    "DailyPartitioner": ("'year'=YYYY/'month'=MM/'day'=dd", "24h"),
    "HourlyPartitioner": ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "1h"),
}
_ISO_WEEKS = "en-GB"
_CLOUD = {"HOURLY": "HourlyPartitioner", "DAILY": "DailyPartitioner"}
_TIME_KEYS = ("path.format", "locale", "timezone", "partition.duration.ms", "timestamp.extractor", "timestamp.field")
_PACKAGES = ("io.confluent.connect.storage.partitioner.", "io.confluent.connect.s3.")


def convert_partitioner(draft: Draft) -> None:
    key = "partitioner.class"
    given = draft.text(key) or "io.confluent.connect.storage.partitioner.DefaultPartitioner"
    name = given.rsplit(".", 1)[-1]
    if draft.has("time.interval"):
        name = _CLOUD.get(draft.text("time.interval").upper(), "HourlyPartitioner")
        given = _PACKAGES[0] + name
        draft.exact("time.interval", f"folders of {name}")
    own = not given.startswith(_PACKAGES)
    fields = name == "FieldPartitioner" or (own and draft.has("partition.field.name"))
    times = name in {"TimeBasedPartitioner", *_FIXED} or (own and draft.has("path.format"))
    items: list[dict[str, Any]] = [{"type": "Topic"}]
    if fields:
        items += _fields(draft)
    if times and (item := _time(draft, name)) is not None:
        items.append(item)
    if not fields and not times:
        items.append({"type": "Partition"})
    draft.put("layout.partitionBy", items)
    draft.put("layout.hiveStyle", True)
    draft.put("layout.objectName", "Confluent")
    if key in draft.settings:
        _report_class(draft, key, name, own)
    _without_effect(draft, fields=fields, times=times)


def _report_class(draft: Draft, key: str, name: str, own: bool) -> None:
    if not own and name in {"DefaultPartitioner", "FieldPartitioner", "TimeBasedPartitioner", *_FIXED}:
        draft.exact(key, f"spec.layout.partitionBy: the folders of {name}")
    elif draft.has("partition.field.name") or draft.has("path.format"):
        text = (
            "is no class of Confluent's: the folders are made of its keys, fields first. Compare them with your bucket"
        )
        draft.different(key, text)
    else:
        draft.lost(
            key, "is no class of Confluent's; topic and partition are used. Set spec.layout.partitionBy yourself"
        )


def _fields(draft: Draft) -> list[dict[str, Any]]:
    key = "partition.field.name"
    names = words(draft.text(key))
    if not names:
        return []
    text = "a missing value is __HIVE_DEFAULT_PARTITION__; there it is null or an error"
    draft.different(key, f"spec.layout.partitionBy has {', '.join(names)}; {text}")
    draft.origins["layout.partitionBy"] = key
    return [_field(name) for name in names]


def _field(name: str) -> dict[str, Any]:
    path = name.split(".")
    return {"type": "Field", "path": path, **({"as": name} if len(path) > 1 else {})}


def _time(draft: Draft, name: str) -> dict[str, Any] | None:
    pattern, every = _FIXED.get(name, (draft.text("path.format"), ""))
    if not pattern:
        draft.note("path.format is not set, and the connector needs it: the folders have no time; add a Time item.")
        return None
    item: dict[str, Any] = {"type": "Time", **_source(draft)}
    try:
        item["format"] = from_joda(pattern)
    except ValueError as error:
        draft.lost("path.format", f"the pattern {error}; set spec.layout.partitionBy yourself")
        return None
    weeks = re.search(r"[Ywe]", re.sub(r"'[^']*'", "", item["format"])) is not None
    if name not in _FIXED and draft.has("path.format"):
        changed = item["format"] != pattern
        text = f"a Time item with {item['format']}"
        text += ": Joda's YYYY is the year, yyyy here" if changed else ""
        text += f"; locale: {_ISO_WEEKS} for weeks as ISO's" if weeks and not draft.has("locale") else ""
        draft.exact("path.format", text)
    zone = draft.text("timezone")
    if zone:
        item["timezone"] = zone
        draft.exact("timezone", f"timezone: {zone} of the Time item")
        draft.origins["layout.partitionBy"] = "timezone"
    locale = draft.text("locale")
    if weeks:
        item["locale"] = _ISO_WEEKS
        if draft.has("locale"):
            text = f"locale: {_ISO_WEEKS} of the Time item, whose weeks are ISO's, as Joda's always are"
            draft.different("locale", text)
    elif locale:
        item["locale"] = locale
        draft.exact("locale", f"locale: {locale} of the Time item")
    duration = "partition.duration.ms"
    if name in _FIXED:
        for key in (duration, "path.format"):
            if key in draft.settings:
                draft.exact(key, f"has no effect there with {name}")
    elif draft.has(duration) and draft.text(duration) != "-1":
        try:
            every = milliseconds(draft.text(duration))
            draft.exact(duration, f"every: {every} of the Time item")
        except ValueError as error:
            draft.lost(duration, f"the value {error}; set every of the Time item")
    if every:
        item["every"] = every
    return item


def _source(draft: Draft) -> dict[str, Any]:
    key, field = "timestamp.extractor", "timestamp.field"
    given = draft.text(key) or "Wallclock"
    kind = given.rsplit(".", 1)[-1].split("$")[-1].removesuffix("TimestampExtractor")
    if draft.has("time.interval") and not draft.has(key):
        kind = "Record"
    match kind.lower():
        case "wallclock":
            text = "the clock is read once for a flush, not for each record"
            if key in draft.settings:
                draft.different(key, f"source: Wallclock of the Time item; {text}")
            else:
                draft.note(
                    f"timestamp.extractor is Wallclock there by default, so that folders are by the clock; {text}."
                )
            return {"source": "Wallclock"}
        case "record":
            draft.exact(key, "source: Record of the Time item") if key in draft.settings else None
            return {"source": "Record"}
        case "recordfield":
            name = draft.text(field) or "timestamp"
            text = "numbers are taken by their size as seconds, milliseconds or microseconds; texts as ISO 8601"
            draft.exact(key, "source: Field of the Time item")
            if field in draft.settings:
                draft.exact(field, f"path: [{', '.join(name.split('.'))}] of the Time item; {text}")
            return {"source": "Field", "path": name.split(".")}
        case _:
            if draft.has(field):
                draft.different(key, "is a class of your own; the field in timestamp.field is used")
                draft.exact(field, "path of the Time item")
                return {"source": "Field", "path": draft.text(field).split(".")}
            draft.lost(key, "is a class of your own, and S3Sink loads none; the time of the record is used")
            return {"source": "Record"}


def _without_effect(draft: Draft, *, fields: bool, times: bool) -> None:
    """Keys of other partitioners. They are common: people copy them along."""
    for key in ("partition.field.name", "partition.field.format.path"):
        if key in draft.settings and not fields:
            draft.exact(key, "has no effect there with this partitioner")
    for key in _TIME_KEYS:
        if key in draft.settings and not draft.reported(key):
            draft.exact(
                key, "has no effect there with this partitioner" if not times else "is empty or the default there"
            )
