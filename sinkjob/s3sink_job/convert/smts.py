"""Single message transforms of Kafka Connect, in their order.

Those that only make a time for a folder become Time items, those that change records steps of `spec.transform`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from s3sink_job.convert.date_formats import checked
from s3sink_job.convert.draft import Draft
from s3sink_job.convert.rules import words
from s3sink_job.convert.smt_steps import CHANGES, Effect, filtered

TimeItem = dict[str, Any]
Headers = dict[str, TimeItem]
"""Headers that transforms make of a time, as items of `partitionBy` without a name."""
_LENSES = "io.lenses.connect.smt.header."
_CONNECT = "org.apache.kafka.connect.transforms."
_UNKNOWN = "S3Sink has no step like this class; see docs/transform.md, or transform the records before"
_UNITS = {"hours": "h", "minutes": "m", "seconds": "s"}
_PARTS = {"year": "yyyy", "month": "MM", "day": "dd", "hour": "HH", "minute": "mm", "second": "ss"}


def convert_transforms(draft: Draft, used: Collection[str] = ()) -> Headers:
    """Reports every key of a transform. Returns those headers, of the ones that folders use, that are times."""
    headers: Headers = {}
    if not draft.has("transforms"):
        for key in [key for key in draft.settings if key.startswith("transforms")]:
            draft.exact(key, "has no effect there, since transforms names none")
        return headers
    names = words(draft.text("transforms"))
    for name in names:
        headers |= _convert_one(draft, _options(draft, f"transforms.{name}."), used)
    outcome = draft.worst("transforms.")
    draft.enter("transforms", outcome, f"{', '.join(names)}: see their keys")
    for key in [key for key in draft.settings if key.startswith("transforms.")]:
        if not draft.reported(key):
            draft.exact(key, "has no effect there, since transforms does not name it")
    return headers


def _options(draft: Draft, before: str) -> dict[str, str]:
    """Keys by the names of their options."""
    return {key[len(before) :]: key for key in draft.settings if key.startswith(before)}


def _convert_one(draft: Draft, options: Mapping[str, str], used: Collection[str]) -> Headers:
    kind = draft.text(options["type"]) if "type" in options else ""
    values = {option: draft.text(key) for option, key in options.items()}
    try:
        if kind == f"{_CONNECT}Filter":
            _filter(draft, options, values)
        elif "predicate" in options:
            _lost(draft, options, "it is for some records only, by a predicate; S3Sink's steps are for all of a route")
        elif kind in CHANGES:
            _change(draft, options, CHANGES[kind](values))
        elif kind in _TIMES:
            return _times(draft, options, _TIMES[kind](values), used)
        else:
            _lost(draft, options, _WHY.get(kind.removeprefix(_CONNECT).split("$")[0], _UNKNOWN))
    except ValueError as error:
        _lost(draft, options, str(error))
    return {}


def _times(draft: Draft, options: Mapping[str, str], found: Headers, used: Collection[str]) -> Headers:
    found = {header: item for header, item in found.items() if header in used}
    if not found:
        return _lost(draft, options, "no folder uses its header, and S3Sink adds no headers to records")
    for key in options.values():
        draft.exact(key, f"becomes the Time item of {', '.join(found)}")
    return found


def _filter(draft: Draft, options: Mapping[str, str], values: Mapping[str, str]) -> None:
    name = values.get("predicate", "")
    predicate = _options(draft, f"predicates.{name}.")
    effect = filtered(values, {option: draft.text(key) for option, key in predicate.items()})
    _change(draft, options, effect)
    for key in ("predicates", *predicate.values()):
        if key in draft.settings:
            draft.exact(key, "belongs to the filter that spec has")


def _change(draft: Draft, options: Mapping[str, str], effect: Effect) -> None:
    """Adds to `spec.transform`, whose parts have an order: unwrap, steps, where, select."""
    transform: dict[str, Any] = draft.value_at("transform") or {}
    late = "select" in transform or ("unwrap" in effect.transform and transform)
    if late or effect.transform.keys() & transform.keys():
        _lost(draft, options, "it comes after one that S3Sink applies later: unwrap, steps, where, select is the order")
        return
    draft.put("transform", {**transform, **effect.transform})
    if effect.steps:
        draft.put("transform.steps", [*transform.get("steps", ()), *effect.steps])
    if not draft.value_at("transform"):
        del draft.spec["transform"]
    for path, value in effect.spec.items():
        draft.put(path, value)
    parts = [*(f"spec.{path}" for path in effect.spec), *(f"spec.transform.{part}" for part in effect.transform)]
    shown = " and ".join([*parts, *(["spec.transform.steps"] if effect.steps else [])])
    for option, key in options.items():
        if option not in {"type", *effect.used}:
            draft.lost(key, "S3Sink's step has no such option")
        elif effect.difference:
            draft.different(key, f"{shown}; {effect.difference}")
        else:
            draft.exact(key, shown)
    draft.origins["transform"] = options["type"]
    draft.origins["layout.topicReplacement"] = options["type"]


def _lost(draft: Draft, options: Mapping[str, str], why: str) -> Headers:
    for option, key in options.items():
        draft.lost(key, why if option == "type" else "belongs to a transform that was not carried over")
    return {}


_WHY = {
    "TimestampRouter": "it adds a time to the topic's name in the folders; add a Time item to spec.layout.partitionBy",
}


def _time(source: str, values: Mapping[str, str], pattern: str) -> TimeItem:
    item: TimeItem = {"type": "Time", "source": source, "format": checked(pattern)}
    if values.get("timezone") or values.get("target.timezone"):
        item["timezone"] = values.get("timezone") or values["target.timezone"]
    if values.get("locale"):
        item["locale"] = values["locale"]
    if "rolling.window.type" in values or "rolling.window.size" in values:
        unit = values.get("rolling.window.type", "hours").lower()
        if unit not in _UNITS:
            raise ValueError(f"rolling.window.type is none of {', '.join(_UNITS)}")
        item["every"] = f"{values.get('rolling.window.size', '1')}{_UNITS[unit]}"
    return item


def _with_path(item: TimeItem, field: str) -> TimeItem:
    names = field.split(".")
    if names[0] in {"_key", "_header", "_topic", "_partition"}:
        raise ValueError("the time is not in the value")
    if names[0] == "_timestamp":
        return {**item, "source": "Record"}
    return {**item, "path": names[1:] if names[0] == "_value" else names}


def _timestamp_converter(values: Mapping[str, str]) -> Headers:
    if values.get("target.type", "string") != "string":
        raise ValueError("target.type is not string")
    if values.get("format.from.pattern"):
        raise ValueError("format.from.pattern reads a text, and S3Sink reads numbers and ISO 8601")
    item = _time("Field", values, values.get("format.to.pattern", ""))
    return {values.get("header.name", ""): _with_path(item, values.get("field", ""))}


def _wallclock(values: Mapping[str, str]) -> Headers:
    if values.get("value.type", "format") != "format":
        raise ValueError("value.type is not format")
    pattern = values.get("format") or values.get("date.format", "")
    return {values.get("header.name", ""): _time("Wallclock", values, pattern)}


def _wallclock_part(values: Mapping[str, str]) -> Headers:
    part = values.get("date.time.part", "").lower()
    if part not in _PARTS:
        raise ValueError(f"date.time.part is none of {', '.join(_PARTS)}")
    return {values.get("header.name", ""): _time("Wallclock", values, _PARTS[part])}


def _parts_of(source: str) -> Callable[[Mapping[str, str]], Headers]:
    """Headers for the whole time and each part of it, behind a prefix."""

    def make(values: Mapping[str, str]) -> Headers:
        before = values.get("header.prefix.name", "_")
        patterns = {"date": values.get("date.format", "yyyy-MM-dd"), **_PARTS}
        found = {f"{before}{part}": _time(source, values, pattern) for part, pattern in patterns.items()}
        if source != "Field":
            return found
        return {name: _with_path(item, values.get("field", "")) for name, item in found.items()}

    return make


_TIMES: Mapping[str, Callable[[Mapping[str, str]], Headers]] = {
    f"{_LENSES}TimestampConverter": _timestamp_converter,
    f"{_LENSES}InsertWallclock": _wallclock,
    f"{_LENSES}InsertRollingWallclock": _wallclock,
    f"{_LENSES}InsertWallclockDateTimePart": _wallclock_part,
    f"{_LENSES}InsertWallclockHeaders": _parts_of("Wallclock"),
    f"{_LENSES}InsertRollingWallclockHeaders": _parts_of("Wallclock"),
    f"{_LENSES}InsertRecordTimestampHeaders": _parts_of("Record"),
    f"{_LENSES}InsertRollingRecordTimestampHeaders": _parts_of("Record"),
    f"{_LENSES}InsertFieldTimestampHeaders": _parts_of("Field"),
    f"{_LENSES}InsertRollingFieldTimestampHeaders": _parts_of("Field"),
}
