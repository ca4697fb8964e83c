"""KCQL statements as sections of a manifest: the first is the sink's own, each further one is a route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from s3sink_api.formats import INPUT_FORMATS
from s3sink_job.convert.draft import Draft, plain
from s3sink_job.convert.kcql import Statement, read_kcql
from s3sink_job.convert.kcql_format import convert_compression, convert_format
from s3sink_job.convert.kcql_layout import convert_folders, convert_names
from s3sink_job.convert.kcql_sections import Sections, taken
from s3sink_job.convert.rules import positive, seconds, size
from s3sink_job.convert.smts import Headers

KCQL = "connect.s3.kcql"
_DEFAULT_RECORDS, _DEFAULT_BYTES, _DEFAULT_INTERVAL = 50_000, "500M", "1h"
_OLD_CLAUSES = {
    "WITH_FLUSH_COUNT": "flush.count",
    "WITH_FLUSH_SIZE": "flush.size",
    "WITH_FLUSH_INTERVAL": "flush.interval",
}
_KNOWN_LOST = {
    "object.key.template": "S3Sink has styles of names, no templates: see spec.layout.objectName",
    "padding.length": "write padding.length.offset and padding.length.partition, and convert again",
}


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
    key_format = draft.value_at("source.key.format")
    key_has_fields = key_format is not None and INPUT_FORMATS[key_format].fields
    whole: list[Sections] = []
    topics: set[str] = set()
    for number, statement in enumerate(statements, start=1):
        sections = Sections(statement, f"{KCQL}[{number}]", headers, key_has_fields)
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
    _only_topics_of(draft, topics)
    convert_compression(draft, whole)
    _into_spec(draft, whole)


def _only_topics_of(draft: Draft, read: set[str]) -> None:
    """The connector fails at a topic that no statement reads. Here it would be written like the first statement's."""
    if "*" in read:
        return
    source = draft.spec["source"]
    listed = source.get("topics", [])
    if source.pop("topicPattern", None) is not None:
        source["topics"] = sorted(read)
        del draft.carried["source.topicPattern"]
        draft.amend("topics.regex", f"spec.source.topics: {plain(sorted(read))}, the topics that statements read")
    elif others := [topic for topic in listed if topic not in read]:
        source["topics"] = [topic for topic in listed if topic in read]
        text = f"without {', '.join(others)}: no statement reads it, and the connector fails at its records"
        draft.amend("topics", f"spec.source.topics: {plain(source['topics'])}, {text}")


def _into_spec(draft: Draft, whole: list[Sections]) -> None:
    # `*` is every topic that no other statement reads, as the sink's own settings are those of topics without a route.
    first, *others = sorted(whole, key=lambda sections: sections.statement.topic != "*")
    for name in ("destination", "layout", "format", "flush"):
        for key, value in getattr(first, name).items():
            draft.put(f"{name}.{key}", value)
    draft.origins["destination"] = f"{first.label} INSERT INTO"
    draft.origins["layout.partitionBy"] = f"{first.label} PARTITIONBY"
    draft.origins["layout.suffix"] = f"{first.label} PROPERTIES key.suffix"
    routes = []
    for place, sections in enumerate(others):
        draft.origins[f"routes[{place}]"] = sections.label
        topics = {"topics": [sections.statement.topic]}
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


def _convert(sections: Sections, draft: Draft) -> None:
    statement = sections.statement
    _target(sections)
    _topic(sections, draft)
    if statement.columns != ("*",):
        text = "Lenses' sink ignores the list and writes all fields, and so does this manifest"
        sections.enter("SELECT", "Exact", text)
    properties = dict(statement.properties)
    for clause, value in statement.others:
        _old_clause(sections, properties, clause, value)
    convert_format(sections, properties)
    convert_folders(sections, properties)
    convert_names(sections, properties)
    _flush(sections, properties)
    for name in properties:
        text = (
            _KNOWN_LOST.get(name)
            or "is no property of the S3 sink that s3sink convert knows; leave it out or see docs/manifest.md"
        )
        sections.enter(f"PROPERTIES {name}", "Lost", text)


def _target(sections: Sections) -> None:
    statement = sections.statement
    sections.destination["bucket"] = statement.bucket
    if statement.prefix:
        sections.destination["prefix"] = statement.prefix
    shown = f"spec.destination.bucket: {statement.bucket}, prefix: {statement.prefix or 'none'}"
    sections.enter("INSERT INTO", "Exact", shown)


def _topic(sections: Sections, draft: Draft) -> None:
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


def _old_clause(sections: Sections, properties: dict[str, str], clause: str, value: str) -> None:
    if clause in _OLD_CLAUSES and _OLD_CLAUSES[clause] not in properties:
        properties[_OLD_CLAUSES[clause]] = value
        sections.clauses[f"PROPERTIES {_OLD_CLAUSES[clause]}"] = clause
    elif clause in {"WITHPARTITIONER", "WITH_PARTITIONER"} and "partition.include.keys" not in properties:
        properties.setdefault("partition.include.keys", str(value.lower() == "keysandvalues").lower())
        sections.clauses["PROPERTIES partition.include.keys"] = clause
    else:
        sections.enter(clause, "Lost", "has no effect in the S3 sink; leave it out")


def _flush(sections: Sections, properties: dict[str, str]) -> None:
    rules: tuple[tuple[str, str, Callable[[str], Any], Any], ...] = (
        ("flush.count", "records", positive, _DEFAULT_RECORDS),
        ("flush.size", "bytes", size, _DEFAULT_BYTES),
        ("flush.interval", "interval", seconds, _DEFAULT_INTERVAL),
    )
    for name, path, read, default in rules:
        given = name in properties
        value = taken(sections, properties, name, read)
        sections.flush[path] = default if value is None else value
        if given and value is not None:
            text = "each partition by itself; there a flush of one partition flushes all of the task"
            sections.enter(f"PROPERTIES {name}", "Exact", f"spec.flush.{path}: {value}; {text}")
