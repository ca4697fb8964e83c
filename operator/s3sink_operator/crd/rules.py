"""What the fields of a section mean together, as CEL: refused at once, in the words of the parser.

A default that is a section is judged before its fields get theirs, hence `has` even for those that have one. What
the API server cannot judge is listed in `unseen.py`.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from s3sink_job.spec import CODECS, LEVELS, Csv, Parquet, patterns
from s3sink_job.spec.format import WITHOUT_COLUMNS
from s3sink_operator.crd.across import ACROSS, VALUES_ALONE
from s3sink_operator.crd.checks import Rule, listed, rule, text


def _codecs() -> list[Rule]:
    return [
        rule(
            f"!has(self.type) || self.type != '{kind}' || !has(self.compression)"
            f" || self.compression.codec in {listed(codecs)}",
            f"{kind} takes {', '.join(codecs)}",
            at=".compression.codec",
        )
        for kind, codecs in CODECS.items()
    ]


def _levels() -> list[Rule]:
    without = tuple(codec for codec in ("None", "Snappy") if codec not in LEVELS)
    rules = [
        rule(
            f"!has(self.level) || !(self.codec in {listed(without)})",
            f"must be left out, since {' and '.join(without)} have no levels",
            at=".level",
        )
    ]
    for codec, (low, high) in LEVELS.items():
        rules.append(
            rule(
                f"!has(self.level) || self.codec != '{codec}' || (self.level >= {low} && self.level <= {high})",
                f"must lie between {low} and {high} for {codec}",
                at=".level",
            )
        )
    return rules


def _options(options: Csv | Parquet) -> Rule:
    """Options of a format beside another one are a mistake, unless they say what holds anyway."""
    kind = type(options).__name__
    section = kind.lower()
    written = TypeAdapter(type(options)).dump_python(options, by_alias=True)
    defaults = " && ".join(_is_or_absent(f"self.{section}.{name}", value) for name, value in written.items())
    return rule(
        f"!has(self.type) || self.type == '{kind}' || !has(self.{section}) || ({defaults})",
        f"is only for format.type {kind}",
        at=f".{section}",
        reason="FieldValueForbidden",
    )


def _is_or_absent(field: str, value: Any) -> str:
    match value:
        case bool():
            return f"(!has({field}) || {field} == {str(value).lower()})"
        case str():
            return f"(!has({field}) || {field} == {text(value)})"
        case _:
            return f"(!has({field}) || quantity(string({field})).compareTo(quantity('{value}')) == 0)"


_DECODING = [
    rule(
        "!has(self.schemaRegistry) || self.format in ['Avro', 'Protobuf', 'JsonSchema']",
        "is only for Avro, Protobuf and JsonSchema",
        at=".schemaRegistry",
        reason="FieldValueForbidden",
    ),
    rule(
        "!has(self.schema) || self.schema == '' || self.format in ['Json', 'Avro']",
        "is only for Json and Avro",
        at=".schema",
        reason="FieldValueForbidden",
    ),
    rule(
        "!has(self.schema) || self.schema == '' || !has(self.schemaRegistry)",
        "must not be set beside schemaRegistry, which gives the schema",
        at=".schema",
        reason="FieldValueForbidden",
    ),
    rule(
        "!has(self.format) || !(self.format in ['Protobuf', 'JsonSchema']) || has(self.schemaRegistry)",
        "must be set with Protobuf and JsonSchema",
        at=".schemaRegistry",
        reason="FieldValueRequired",
    ),
    rule(
        "!has(self.format) || self.format != 'Avro' || has(self.schemaRegistry)"
        " || (has(self.schema) && self.schema != '')",
        "Avro needs schemaRegistry or an inline schema",
        at=".schema",
        reason="FieldValueRequired",
    ),
]


def _same(one: str, other: str, field: str) -> str:
    """Both lack the field, or have it with the same value."""
    mine, other = f"{one}.{field}", f"{other}.{field}"
    return f"(has({mine}) ? has({other}) && {mine} == {other} : !has({other}))"


def _is_duration(field: str) -> str:
    return f"{field}.matches({text(f'^({patterns.DURATION})$')})"


_WITHOUT = listed(WITHOUT_COLUMNS)
_SAME_ITEM = " && ".join(
    [
        "i.type == j.type",
        *(_same("i", "j", name) for name in ("path", "__as__", "name", "source", "format", "timezone", "locale")),
        f"({_same('i', 'j', 'every')} || (has(i.every) && has(j.every) && {_is_duration('i.every')}"
        f" && {_is_duration('j.every')} && duration(i.every) == duration(j.every)))",
    ]
)
NO_ITEM_TWICE = rule(
    f"self.all(i, self.filter(j, {_SAME_ITEM}).size() == 1)",
    "must not repeat an item; keep one of them",
)

RULES: dict[str, list[Rule]] = {
    "Spec": ACROSS,
    "Source": [
        rule(
            "!has(self.topics) || size(self.topics) == 0 || !has(self.topicPattern)",
            "must not be set beside topicPattern; keep one of them",
            at=".topics",
            reason="FieldValueForbidden",
        ),
        rule(
            "(has(self.topics) && size(self.topics) > 0) || has(self.topicPattern)",
            "must name at least one topic, unless topicPattern is set",
            at=".topics",
            reason="FieldValueRequired",
        ),
    ],
    "Key": _DECODING,
    "Value": _DECODING,
    "Destination": [
        rule("self.statePrefix != ''", "must not be empty; write .s3sink", at=".statePrefix"),
        rule(
            "!has(self.prefix) || self.prefix == '' || !(self.statePrefix + '/').startsWith(self.prefix + '/')",
            "must lie outside of prefix, which belongs to the data; write .s3sink",
            at=".statePrefix",
        ),
        rule(
            "!has(self.prefix) || self.prefix == '' || self.prefix == self.statePrefix"
            " || !(self.prefix + '/').startsWith(self.statePrefix + '/')",
            "must lie outside of statePrefix, which belongs to the sink",
            at=".prefix",
        ),
    ],
    "Transform": [
        rule(
            "has(self.where) || has(self.select)",
            "must be set, unless where is",
            at=".select",
            reason="FieldValueRequired",
        )
    ],
    "Format": [
        *_codecs(),
        rule(
            "!has(self.type) || self.type != 'Orc' || !has(self.compression) || !has(self.compression.level)",
            "must be left out, since Orc has no levels",
            at=".compression.level",
            reason="FieldValueForbidden",
        ),
        _options(Csv()),
        _options(Parquet()),
        rule(
            f"!has(self.type) || !(self.type in {_WITHOUT}) || self.columns.meta == 'None'",
            VALUES_ALONE,
            at=".columns.meta",
        ),
    ],
    "Compression": _levels(),
    "Errors": [
        rule(
            "!has(self.records) || self.records != 'DeadLetter' || has(self.deadLetter)",
            "must be set, since records is DeadLetter: {topic: …} or {prefix: …}",
            at=".deadLetter",
            reason="FieldValueRequired",
        ),
    ],
    "DeadLetter": [
        rule(
            "has(self.topic) || has(self.prefix)",
            "must be set, unless prefix is",
            at=".topic",
            reason="FieldValueRequired",
        ),
        rule(
            "!has(self.topic) || !has(self.prefix)",
            "must not be set beside prefix; keep one of them",
            at=".topic",
            reason="FieldValueForbidden",
        ),
        rule("!has(self.prefix) || self.prefix != ''", "must not be empty; write _dead_letter", at=".prefix"),
        rule(
            "!has(self.replicationFactor) || !has(self.prefix)",
            "is only for topic, and prefix is set",
            at=".replicationFactor",
            reason="FieldValueForbidden",
        ),
    ],
    "Retries": [
        rule(
            f"!has(self.backoff) || !has(self.maxBackoff) || !{_is_duration('self.backoff')}"
            f" || !{_is_duration('self.maxBackoff')} || duration(self.maxBackoff) >= duration(self.backoff)",
            "must be at least backoff",
            at=".maxBackoff",
        )
    ],
    "PartitionItem": [
        rule(
            "self.type != 'Time' || !has(self.source) || self.source != 'Field' || has(self.path)",
            "must name the field that holds the time, since source is Field",
            at=".path",
            reason="FieldValueRequired",
        ),
        rule(
            "self.type != 'Time' || !has(self.source) || self.source == 'Field' || !has(self.path)",
            "is only for source: Field",
            at=".path",
            reason="FieldValueForbidden",
        ),
    ],
}
