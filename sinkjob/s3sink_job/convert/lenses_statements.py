"""KCQL statements as sections of a manifest: the first is the sink's own, each further one is a route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3sink_job.convert.date_formats import checked, quoted
from s3sink_job.convert.draft import Draft
from s3sink_job.convert.kcql import Statement, read_kcql
from s3sink_job.convert.report import Outcome
from s3sink_job.convert.rules import count, flag, positive, seconds, size
from s3sink_job.convert.smts import Headers

KCQL = "connect.s3.kcql"
_DEFAULT_RECORDS, _DEFAULT_BYTES, _DEFAULT_INTERVAL = 50_000, "500M", "1h"
_FORMATS: Mapping[str, tuple[str, str]] = {
    "JSON": ("Json", ".json"),
    "AVRO": ("Avro", ""),
    "PARQUET": ("Parquet", ""),
    "TEXT": ("Text", ".text"),
    "CSV": ("Csv", ""),
    "BYTES": ("Bytes", ".bytes"),
}
_CODECS = {
    "UNCOMPRESSED": "None",
    "SNAPPY": "Snappy",
    "GZIP": "Gzip",
    "LZ4": "Lz4",
    "BROTLI": "Brotli",
    "BZIP2": "Bzip2",
    "ZSTD": "Zstd",
    "DEFLATE": "Deflate",
    "XZ": "Xz",
}
_CODECS_OF = {
    "Parquet": ("Snappy", "Gzip", "Lz4", "Brotli", "Zstd"),
    "Avro": ("Snappy", "Bzip2", "Zstd", "Deflate", "Xz"),
    "Json": ("Gzip",),
}
"""What the connector's writers have."""
_OLD_CLAUSES = {
    "WITH_FLUSH_COUNT": "flush.count",
    "WITH_FLUSH_SIZE": "flush.size",
    "WITH_FLUSH_INTERVAL": "flush.interval",
}
_KNOWN_LOST = {
    "object.key.template": "S3Sink has styles of names, no templates: see spec.layout.objectName",
    "padding.length": "write padding.length.offset and padding.length.partition, and convert again",
}
_LAST_OFFSET = "a name has the first offset of its object; Lenses' has the last"


@dataclass
class _Sections:
    """What one statement says, with the account of its parts."""

    statement: Statement
    label: str
    headers: Headers
    destination: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)
    format: dict[str, Any] = field(default_factory=dict)
    flush: dict[str, Any] = field(default_factory=dict)
    entries: list[tuple[str, Outcome, str]] = field(default_factory=list)
    clauses: dict[str, str] = field(default_factory=dict)
    """Clauses of old releases that say what is a property today."""

    def enter(self, part: str, outcome: Outcome, text: str) -> None:
        self.entries.append((f"{self.label} {self.clauses.get(part, part)}", outcome, text))


def statements_of(draft: Draft) -> tuple[Statement, ...]:
    return read_kcql(draft.text(KCQL), KCQL) if draft.has(KCQL) else ()


def headers_of(statements: tuple[Statement, ...]) -> set[str]:
    """Headers that folders use."""
    paths = [path for statement in statements for path in statement.partition_by or ()]
    return {path[1] for path in paths if path[0].lower() in {"_header", "_headers"} and len(path) > 1}


def convert_statements(draft: Draft, statements: tuple[Statement, ...], headers: Headers) -> None:
    if not statements:
        draft.note(f"{KCQL} is not in the configuration: it names bucket, prefix and topics.")
        return
    whole: list[_Sections] = []
    topics: set[str] = set()
    for number, statement in enumerate(statements, start=1):
        sections = _Sections(statement, f"{KCQL}[{number}]", headers)
        if statement.topic in topics:
            sections.enter(
                f"FROM {statement.topic}", "Lost", "another statement reads this topic; a sink writes a topic once."
                " Convert this statement by itself, into a second sink",
            )  # fmt: skip
        else:
            topics.add(statement.topic)
            _convert(sections, draft)
            whole.append(sections)
        for key, outcome, text in sections.entries:
            draft.enter(key, outcome, text)
    draft.enter(
        KCQL, draft.worst(f"{KCQL}["), f"{len(statements)} statement{'s' * (len(statements) > 1)}: see the parts"
    )
    _compression(draft, whole)
    _into_spec(draft, whole)


def _compression(draft: Draft, statements: list[_Sections]) -> None:
    """There the codec is set once, and each format takes those that it has. Without one nothing is compressed."""
    key, level = "connect.s3.compression.codec", "connect.s3.compression.level"
    codec = _CODECS.get(draft.text(key).upper(), "None")
    number = draft.text(level)
    used = False
    for sections in statements:
        kind = sections.format["type"]
        fits = codec in _CODECS_OF.get(kind, ())
        used = used or fits
        if fits:
            leveled = number.isdecimal() and kind == "Avro" and codec in {"Deflate", "Xz", "Zstd"}
            sections.format["compression"] = {"codec": codec, **({"level": int(number)} if leveled else {})}
            if kind == "Json" and codec == "Gzip":
                sections.layout["extension"] = ".json.gz"
        elif kind in {"Avro", "Parquet"}:
            sections.format["compression"] = {"codec": "None"}
    if key in draft.settings:
        _report_codec(draft, key, codec, used)
    if level in draft.settings:
        set_somewhere = any("level" in sections.format.get("compression", {}) for sections in statements)
        draft.exact(level, "spec.format.compression.level" if set_somewhere else "has no effect there with this codec")


def _report_codec(draft: Draft, key: str, codec: str, used: bool) -> None:
    if draft.text(key).upper() not in _CODECS:
        draft.lost(key, f"is none of {', '.join(_CODECS)}; nothing is compressed")
    elif used or codec == "None":
        draft.exact(key, f"spec.format.compression.codec: {codec}")
    else:
        draft.lost(key, "the format has no such codec there; nothing is compressed")


def _into_spec(draft: Draft, whole: list[_Sections]) -> None:
    first, *others = whole
    for name in ("destination", "layout", "format", "flush"):
        for key, value in getattr(first, name).items():
            draft.put(f"{name}.{key}", value)
    draft.origins["destination"] = f"{first.label} INSERT INTO"
    draft.origins["layout.partitionBy"] = f"{first.label} PARTITIONBY"
    draft.origins["layout.suffix"] = f"{first.label} PROPERTIES key.suffix"
    routes = []
    for place, sections in enumerate(others):
        draft.origins[f"routes[{place}]"] = sections.label
        topics = {"topicPattern": ".*"} if sections.statement.topic == "*" else {"topics": [sections.statement.topic]}
        own = {name: _unlike(getattr(sections, name), getattr(first, name)) for name in _OVERRIDABLE}
        routes.append({**topics, **{name: section for name, section in own.items() if section}})
    if routes:
        draft.put("routes", routes)


_OVERRIDABLE = ("destination", "layout", "format", "flush")
_RESET: Mapping[str, Any] = {
    "extension": "",
    "prefix": "",
    "objectName": "Offset",
    "hiveStyle": False,
    "suffix": "",
    "padding": {"offset": 12, "partition": 0},
    "envelope": {"enabled": False},
    "compression": {"codec": "None"},
    "partitionBy": [{"type": "Topic"}, {"type": "Partition"}],
}
"""What a route sets if the first statement sets a thing and its own does not."""


def _unlike(own: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in own.items() if base.get(name) != value}
    missing = [name for name in base if name not in own and name in _RESET]
    return {**found, **{name: _RESET[name] for name in missing}}


def _convert(sections: _Sections, draft: Draft) -> None:
    statement = sections.statement
    _target(sections)
    _topic(sections, draft)
    if statement.columns != ("*",):
        text = "Lenses' sink ignores the list and writes all fields, and so does this manifest"
        sections.enter("SELECT", "Exact", text)
    properties = dict(statement.properties)
    for clause, value in statement.others:
        _old_clause(sections, properties, clause, value)
    _format(sections, properties)
    _folders(sections, properties)
    _names(sections, properties)
    _flush(sections, properties)
    for name in properties:
        text = (
            _KNOWN_LOST.get(name)
            or "is no property of the S3 sink that s3sink convert knows; leave it out or see docs/manifest.md"
        )
        sections.enter(f"PROPERTIES {name}", "Lost", text)


def _target(sections: _Sections) -> None:
    statement = sections.statement
    sections.destination["bucket"] = statement.bucket
    if statement.prefix:
        sections.destination["prefix"] = statement.prefix
    shown = f"spec.destination.bucket: {statement.bucket}, prefix: {statement.prefix or 'none'}"
    sections.enter("INSERT INTO", "Exact", shown)


def _topic(sections: _Sections, draft: Draft) -> None:
    topic = sections.statement.topic
    known = draft.value_at("source.topics") or []
    if topic == "*":
        sections.enter("FROM *", "Exact", "every topic of spec.source")
    elif topic in known or draft.value_at("source.topicPattern"):
        sections.enter(f"FROM {topic}", "Exact", "spec.source")
    else:
        draft.put("source.topics", [*[one for one in known if one != "replace-me"], topic])
        text = "topics does not name it, so that Lenses' connector does not read it; added to spec.source.topics"
        sections.enter(f"FROM {topic}", "Different", text)


def _old_clause(sections: _Sections, properties: dict[str, str], clause: str, value: str) -> None:
    if clause in _OLD_CLAUSES and _OLD_CLAUSES[clause] not in properties:
        properties[_OLD_CLAUSES[clause]] = value
        sections.clauses[f"PROPERTIES {_OLD_CLAUSES[clause]}"] = clause
    elif clause in {"WITHPARTITIONER", "WITH_PARTITIONER"} and "partition.include.keys" not in properties:
        properties.setdefault("partition.include.keys", str(value.lower() == "keysandvalues").lower())
        sections.clauses["PROPERTIES partition.include.keys"] = clause
    else:
        sections.enter(clause, "Lost", "has no effect in the S3 sink; leave it out")


def _format(sections: _Sections, properties: dict[str, str]) -> None:
    given = sections.statement.store_as or "JSON"
    kind, _, option = given.upper().partition("_")
    if kind not in _FORMATS or (option and (kind, option) != ("CSV", "WITHHEADERS")):
        known = ", ".join([*_FORMATS, "CSV_WITHHEADERS"])
        sections.enter("STOREAS", "Lost", f"is none of {known}; Json is used. Set spec.format.type yourself")
        kind, option = "JSON", ""
    name, extension = _FORMATS[kind]
    sections.format["type"] = name
    if name == "Csv":
        sections.format["csv"] = {"header": bool(option)}
    if extension:
        sections.layout["extension"] = extension
    if sections.statement.store_as:
        sections.enter("STOREAS", "Exact", f"spec.format.type: {name}")
    _envelope(sections, properties, name)


def _envelope(sections: _Sections, properties: dict[str, str], kind: str) -> None:
    wrapped = _taken(sections, properties, "store.envelope", flag)
    parts = {
        part: value
        for part in ("key", "headers", "value", "metadata")
        if (value := _taken(sections, properties, f"store.envelope.fields.{part}", flag)) is not None
    }
    if wrapped is None and parts:
        for part in parts:
            text = "has no effect there without store.envelope"
            sections.enter(f"PROPERTIES store.envelope.fields.{part}", "Exact", text)
        return
    if wrapped:
        sections.format["envelope"] = {"enabled": True, **parts}
        text = "spec.format.envelope.enabled; headers are a list of key and value, since names may repeat"
        if kind in {"Json", "Avro", "Parquet"}:
            sections.enter("PROPERTIES store.envelope", "Different", text)
        else:
            del sections.format["envelope"]
            sections.enter("PROPERTIES store.envelope", "Lost", f"{kind} has no envelope; use JSON, AVRO or PARQUET")
    elif wrapped is not None:
        sections.enter("PROPERTIES store.envelope", "Exact", "spec.format.envelope is off")
    for part, value in parts.items():
        path = f"spec.format.envelope.{part}: {str(value).lower()}"
        sections.enter(f"PROPERTIES store.envelope.fields.{part}", "Exact", path)


def _taken(sections: _Sections, properties: dict[str, str], name: str, read: Callable[[str], Any]) -> Any:
    """The value of a property, which counts as handled; None if it is not set or not right."""
    if name not in properties:
        return None
    try:
        return read(properties.pop(name))
    except ValueError as error:
        sections.enter(f"PROPERTIES {name}", "Lost", f"the value {error}; the default is used")
        return None


def _folders(sections: _Sections, properties: dict[str, str]) -> None:
    statement = sections.statement
    named = _taken(sections, properties, "partition.include.keys", flag)
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
        sections.enter("NOPARTITION", "Different", f"spec.layout.partitionBy: []; {_LAST_OFFSET}")
        return
    items = [item for path in statement.partition_by if (item := _item(sections, path, hive)) is not None]
    if hive and {"type": "Topic"} not in [{"type": item["type"]} for item in items]:
        # The documents of the connector say so. Its releases differ.
        items = [{"type": "Topic"}, *items]
        sections.enter(
            "PARTITIONBY", "Different", "the topic's folder comes first, as the documents of the connector say."
            " If the objects in your bucket have no such folder, delete {type: Topic}."
            f" A missing value is __HIVE_DEFAULT_PARTITION__, not [missing]; {_LAST_OFFSET}",
        )  # fmt: skip
    else:
        text = f"a missing value is __HIVE_DEFAULT_PARTITION__, not [missing]; {_LAST_OFFSET}"
        sections.enter("PARTITIONBY", "Different", text)
    sections.layout["partitionBy"] = items


def _item(sections: _Sections, path: tuple[str, ...], hive: bool) -> dict[str, Any] | None:
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


def _header_of_a_time(sections: _Sections, part: str, name: str, hive: bool) -> dict[str, Any]:
    item = dict(sections.headers[name])
    item["format"] = _named(name, item["format"], hive)
    clock = "the clock is read once for a flush" if item["source"] == "Wallclock" else ""
    text = f"a Time item, {item['format']}, in place of the header that a transform makes"
    sections.enter(part, "Different" if clock else "Exact", f"{text}; {clock}" if clock else text)
    return item


def _date(sections: _Sections, part: str, pattern: str, hive: bool) -> dict[str, Any] | None:
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


def _names(sections: _Sections, properties: dict[str, str]) -> None:
    kind = properties.pop("padding.type", None)
    char = properties.pop("padding.char", None)
    offset = _taken(sections, properties, "padding.length.offset", count)
    partition = _taken(sections, properties, "padding.length.partition", count)
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
        text = f"topic, partition and offset: {_LAST_OFFSET}. New releases of it also put two times into the name"
        sections.enter("object names", "Different", text)


def _flush(sections: _Sections, properties: dict[str, str]) -> None:
    rules: tuple[tuple[str, str, Callable[[str], Any], Any], ...] = (
        ("flush.count", "records", positive, _DEFAULT_RECORDS),
        ("flush.size", "bytes", size, _DEFAULT_BYTES),
        ("flush.interval", "interval", seconds, _DEFAULT_INTERVAL),
    )
    for name, path, read, default in rules:
        given = name in properties
        value = _taken(sections, properties, name, read)
        sections.flush[path] = default if value is None else value
        if given and value is not None:
            text = "each partition by itself; there a flush of one partition flushes all of the task"
            sections.enter(f"PROPERTIES {name}", "Exact", f"spec.flush.{path}: {value}; {text}")
