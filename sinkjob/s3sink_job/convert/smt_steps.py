"""Transforms of Kafka Connect that change records, as `spec.transform`: Debezium's events, steps, filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3sink_job.convert.rules import flag, words

Values = Mapping[str, str]
"""The options of a transform by their names."""
_CONNECT = "org.apache.kafka.connect.transforms."
_CASTS = {
    "int8": "Int32",
    "int16": "Int32",
    "int32": "Int32",
    "int64": "Int64",
    "float32": "Float32",
    "float64": "Float64",
    "boolean": "Boolean",
    "string": "String",
}
_INSERTED = {"topic": "Topic", "partition": "Partition", "offset": "Offset", "timestamp": "Timestamp"}
_DELETES = {"drop": "Drop", "rewrite": "Rows", "none": "Tombstones"}
_NEW_DELETES = {
    "drop": "Drop",
    "tombstone": "Tombstones",
    "rewrite": "Rows",
    "rewrite-with-tombstone": "Rows",
    "delete-to-tombstone": "Tombstones",
}
_EVENT = ("op", "ts_ms", "ts_us", "ts_ns", "before", "after", "transaction", "source")
"""Fields of a change event itself. Debezium finds all others in its source."""


@dataclass
class Effect:
    """What one transform does here. `used` are the options that are carried over."""

    used: set[str]
    transform: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    difference: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    """Fields elsewhere in the spec, by their paths."""


class NotCarriedOver(ValueError):
    """Why a transform is lost as a whole."""


def _unwrap(values: Values) -> Effect:
    deletes = "Drop"
    if "delete.handling.mode" in values:
        deletes = _known(_DELETES, values["delete.handling.mode"], "delete.handling.mode")
    if "delete.tombstone.handling.mode" in values:
        deletes = _known(_NEW_DELETES, values["delete.tombstone.handling.mode"], "delete.tombstone.handling.mode")
    given = words(values.get("add.fields", ""))
    names = [name if name.split(".")[0] in _EVENT else f"source.{name}" for name in given]
    found = Effect({"drop.tombstones", "delete.handling.mode", "delete.tombstone.handling.mode", "add.fields"})
    found.transform = {"unwrap": "Debezium", "debezium": {"deletes": deletes, "addFields": names}}
    if values.get("drop.tombstones", "true").lower() == "true":
        found.spec["nullValues"] = "Skip"
    told = [f"{name} has the column __{name.replace('.', '_')}" for name in names if name not in given]
    if deletes == "Rows":
        told.append("__deleted is a boolean, not text")
    found.difference = "; ".join(told)
    return found


def _replace_field(values: Values) -> Effect:
    found = Effect({"exclude", "blacklist", "renames", "include", "whitelist"})
    if dropped := words(values.get("exclude") or values.get("blacklist", "")):
        found.steps.append({"type": "Drop", "fields": dropped})
    for pair in words(values.get("renames", "")):
        old, _, new = pair.partition(":")
        found.steps.append({"type": "Rename", "field": old, "as": new})
    if kept := words(values.get("include") or values.get("whitelist", "")):
        found.transform["select"] = [f'"{name}"' for name in kept]
    return found


def _mask(values: Values) -> Effect:
    step: dict[str, Any] = {"type": "Mask", "fields": words(values.get("fields", ""))}
    if values.get("replacement"):
        step["replacement"] = values["replacement"]
    return Effect({"fields", "replacement"}, steps=[step])


def _insert(values: Values) -> Effect:
    found = Effect({f"{name}.field" for name in (*_INSERTED, "static")} | {"static.value"})
    for name, source in _INSERTED.items():
        if values.get(f"{name}.field"):
            column = values[f"{name}.field"].rstrip("!?")
            found.steps.append({"type": "Insert", "field": column, "source": source})
    if values.get("static.field"):
        column = values["static.field"].rstrip("!?")
        found.steps.append({"type": "Insert", "field": column, "value": values.get("static.value", "")})
    return found


def _cast(values: Values) -> Effect:
    by_type: dict[str, list[str]] = {}
    small = ""
    for pair in words(values.get("spec", "")):
        name, found, kind = pair.partition(":")
        if not found:
            raise NotCarriedOver("it casts the whole value, and S3Sink casts fields")
        by_type.setdefault(_known(_CASTS, kind, "spec"), []).append(name)
        small = "int8 and int16 become Int32" if kind.lower() in {"int8", "int16"} else small
    steps = [{"type": "Cast", "fields": names, "to": kind} for kind, names in by_type.items()]
    return Effect({"spec"}, steps=steps, difference=small)


def _flatten(values: Values) -> Effect:
    return Effect({"delimiter"}, steps=[{"type": "Flatten", "separator": values.get("delimiter") or "."}])


def _of_field(kind: str) -> Callable[[Values], Effect]:
    return lambda values: Effect({"field"}, steps=[{"type": kind, "field": values.get("field", "")}])


def _route(values: Values) -> Effect:
    replaced = {"pattern": values.get("regex", ""), "replacement": values.get("replacement", "")}
    text = "the folder has the new name, the object's own name the topic's"
    return Effect({"regex", "replacement"}, difference=text, spec={"layout.topicReplacement": replaced})


def _known(table: Mapping[str, str], value: str, option: str) -> str:
    if value.strip().lower() not in table:
        raise NotCarriedOver(f"{option} is none of {', '.join(table)}")
    return table[value.strip().lower()]


CHANGES: Mapping[str, Callable[[Values], Effect]] = {
    "io.debezium.transforms.ExtractNewRecordState": _unwrap,
    f"{_CONNECT}ReplaceField$Value": _replace_field,
    f"{_CONNECT}MaskField$Value": _mask,
    f"{_CONNECT}InsertField$Value": _insert,
    f"{_CONNECT}Cast$Value": _cast,
    f"{_CONNECT}Flatten$Value": _flatten,
    f"{_CONNECT}HoistField$Value": _of_field("Hoist"),
    f"{_CONNECT}ExtractField$Value": _of_field("Extract"),
    f"{_CONNECT}RegexRouter": _route,
}
"""By the class of the transform. A new one is a line here."""


def filtered(values: Values, predicate: Values) -> Effect:
    """`Filter` leaves out the records for which its predicate holds, or does not."""
    negated = flag(values.get("negate", "false") or "false")
    kind = predicate.get("type", "").rsplit(".", 1)[-1]
    used = {"predicate", "negate"}
    if kind == "RecordIsTombstone" and not negated:
        return Effect(used, spec={"nullValues": "Skip"})
    if kind == "HasHeaderKey":
        name = predicate.get("name", "").replace("'", "''")
        text = "a header that is not UTF-8 counts as none"
        return Effect(used, {"where": f"_headers['{name}'] IS {'NOT ' * negated}NULL"}, difference=text)
    raise NotCarriedOver("its predicate has no like in SQL here; write it as spec.transform.where")
