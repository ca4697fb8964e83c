"""PARTITIONBY, padding and suffix of KCQL statements, as folders and names."""

from __future__ import annotations

from typing import Any

from s3sink_job.convert.date_formats import checked, quoted
from s3sink_job.convert.kcql_sections import Sections, taken
from s3sink_job.convert.report import Outcome
from s3sink_job.convert.rules import count, flag

LAST_OFFSET = "a name has the first offset of its object; Lenses' has the last"


def convert_folders(sections: Sections, properties: dict[str, str]) -> None:
    statement = sections.statement
    named = taken(sections, properties, "partition.include.keys", flag)
    custom = statement.partition_by is not None
    if named is not None:
        sections.enter("PROPERTIES partition.include.keys", "Exact", f"spec.layout.hiveStyle: {str(named).lower()}")
    hive = named if named is not None else bool(statement.partition_by)
    if hive:
        sections.layout["hiveStyle"] = True
    if not custom:
        return
    sections.layout["objectName"] = "Lenses"
    if not statement.partition_by:
        sections.layout["partitionBy"] = []
        sections.enter("NOPARTITION", "Different", f"spec.layout.partitionBy: []; {LAST_OFFSET}")
        return
    items = [item for path in statement.partition_by if (item := _item(sections, path, hive)) is not None]
    if hive and {"type": "Topic"} not in [{"type": item["type"]} for item in items]:
        # The documents of the connector say so. Its releases differ.
        items = [{"type": "Topic"}, *items]
        sections.enter(
            "PARTITIONBY", "Different", "the topic's folder comes first, as the documents of the connector say."
            " If the objects in your bucket have no such folder, delete {type: Topic}."
            f" A missing value is __HIVE_DEFAULT_PARTITION__, not [missing]; {LAST_OFFSET}",
        )  # fmt: skip
    else:
        text = f"a missing value is __HIVE_DEFAULT_PARTITION__, not [missing]; {LAST_OFFSET}"
        sections.enter("PARTITIONBY", "Different", text)
    sections.layout["partitionBy"] = items


def _item(sections: Sections, path: tuple[str, ...], hive: bool) -> dict[str, Any] | None:
    part = f"PARTITIONBY {'.'.join(path)}"
    head, rest = path[0].lower(), list(path[1:])
    match head:
        case "_topic":
            item: dict[str, Any] = {"type": "Topic", **({"as": "topic"} if hive else {})}
        case "_partition":
            item = {"type": "Partition"}
        case "_key":
            item = {"type": "Key", **_at(rest)}
        case "_header" | "_headers" if rest and rest[0] in sections.headers:
            return _header_of_a_time(sections, part, rest[0], hive)
        case "_header" | "_headers" if len(rest) == 1:
            item = {"type": "Header", "name": rest[0]}
        case "_header" | "_headers":
            sections.enter(part, "Lost", "a header has one name here, and its value has no fields")
            return None
        case "_date":
            return _date(sections, part, ".".join(rest), hive)
        case "_value":
            item = {"type": "Field", **_at(rest)}
        case _:
            item = {"type": "Field", **_at(list(path))}
    sections.enter(part, "Exact", f"spec.layout.partitionBy has {item['type']}")
    return item


def _at(path: list[str]) -> dict[str, Any]:
    """A nested field's folder has the whole path as its name there."""
    return {"path": path, **({"as": ".".join(path)} if len(path) > 1 else {})} if path else {}


def _header_of_a_time(sections: Sections, part: str, name: str, hive: bool) -> dict[str, Any]:
    item = dict(sections.headers[name])
    item["format"] = _named(name, item["format"], hive)
    clock = "the clock is read once for a flush" if item["source"] == "Wallclock" else ""
    text = f"a Time item, {item['format']}, in place of the header that a transform makes"
    sections.enter(part, "Different" if clock else "Exact", f"{text}; {clock}" if clock else text)
    return item


def _date(sections: Sections, part: str, pattern: str, hive: bool) -> dict[str, Any] | None:
    try:
        checked(pattern)
    except ValueError as error:
        sections.enter(part, "Lost", f"the pattern {error}")
        return None
    item = {"type": "Time", "source": "Record", "format": _named("date", pattern, hive), "timezone": "UTC"}
    sections.enter(part, "Different", "in UTC; there it is the time zone of the Connect worker. Set timezone if needed")
    return item


def _named(name: str, pattern: str, hive: bool) -> str:
    return f"{quoted(name + '=')}{pattern}" if hive else pattern


def convert_names(sections: Sections, properties: dict[str, str]) -> None:
    kind = properties.pop("padding.type", None)
    char = properties.pop("padding.char", None)
    offset = taken(sections, properties, "padding.length.offset", count)
    partition = taken(sections, properties, "padding.length.partition", count)
    digits = 12 if offset is None else offset
    if kind is not None and kind.lower() == "noop":
        digits, partition = 0, 0
        sections.enter("PROPERTIES padding.type", "Exact", "spec.layout.padding: no zeros in front")
    elif kind is not None and kind.lower() == "rightpad":
        why = "padding on the right can give two offsets one name; S3Sink has zeros on the left"
        sections.enter("PROPERTIES padding.type", "Lost", why)
    elif kind is not None:
        sections.enter("PROPERTIES padding.type", "Exact", "zeros on the left")
    if char is not None:
        fine = char == "0"
        text = "zeros on the left" if fine else "S3Sink pads with zeros only: others can give two offsets one name"
        sections.enter("PROPERTIES padding.char", "Exact" if fine else "Lost", text)
    padding = {"offset": min(digits, 19), **({"partition": min(partition, 19)} if partition else {})}
    if sections.layout.get("objectName") != "Lenses" or padding != {"offset": 12}:
        sections.layout["padding"] = padding
    for name, value in (("offset", offset), ("partition", partition)):
        if value is not None and kind != "NoOp":
            outcome: Outcome = "Exact" if value <= 19 else "Different"
            sections.enter(
                f"PROPERTIES padding.length.{name}", outcome, f"spec.layout.padding.{name}: {min(value, 19)}"
            )
    if "key.suffix" in properties:
        sections.layout["suffix"] = properties.pop("key.suffix")
        sections.enter("PROPERTIES key.suffix", "Exact", "spec.layout.suffix")
    if sections.statement.partition_by is None:
        text = f"topic, partition and offset: {LAST_OFFSET}. New releases of it also put two times into the name"
        sections.enter("object names", "Different", text)
