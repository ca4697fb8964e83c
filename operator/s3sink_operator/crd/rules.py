"""What the fields of a section mean together, as CEL: refused at once, in the words of the parser.

A default that is a section is judged before its fields get theirs, hence `has` even for those that have one. What
the API server cannot judge is listed in `unseen.py`.
"""

from __future__ import annotations

from s3sink_job.spec import CODECS, LEVELS, Csv, Parquet, patterns
from s3sink_job.spec.format import FLATTEN_OF_WHAT, WITHOUT_COLUMNS, WITHOUT_ENVELOPE
from s3sink_job.spec.properties import OAUTH_URL, OAUTH_URLS
from s3sink_operator.crd.across import ACROSS, NO_ENVELOPE, VALUES_ALONE
from s3sink_operator.crd.checks import Rule, listed, rule, says_nothing, text


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
    return rule(
        f"!has(self.type) || self.type == '{kind}' || !has(self.{section}) || {says_nothing(options)}",
        f"is only for format.type {kind}",
        at=f".{section}",
        reason="FieldValueForbidden",
    )


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
_WRAPPED = "(has(self.envelope) && has(self.envelope.enabled) && self.envelope.enabled)"
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

_FOLDER = (
    "(has({0}.__as__) ? {0}.__as__ : {0}.type == 'Partition' ? 'partition' : {0}.type in ['Topic', 'Time'] ? ''"
    " : has({0}.path) ? {0}.path[size({0}.path) - 1] : {0}.type == 'Key' ? 'key' : has({0}.name) ? {0}.name : '')"
)
_ONE, _OTHER = _FOLDER.format("i"), _FOLDER.format("j")
_ALIKE = f"self.partitionBy.all(i, {_ONE} == '' || self.partitionBy.filter(j, {_OTHER} == {_ONE}).size() < 2)"

_TOPICS_OR_PATTERN = [
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
]
_HTTPS_ONLY = [
    rule(
        f"!has(self.properties) || !('{name}' in self.properties)"
        f" || self.properties['{name}'].matches({text(f'^({patterns.HTTPS_URL})$')})",
        f"{name} {OAUTH_URL}",
        at=".properties",
        reason="FieldValueForbidden",
    )
    for name in OAUTH_URLS
]
_NOT_EMPTY = " || ".join(f"(!has(self.{part}) || self.{part})" for part in ("key", "value", "headers", "metadata"))

RULES: dict[str, list[Rule]] = {
    "Spec": ACROSS,
    "Source": _TOPICS_OR_PATTERN + _HTTPS_ONLY,
    "Route": _TOPICS_OR_PATTERN,
    "Layout": [
        rule(
            f"!has(self.hiveStyle) || !self.hiveStyle || !has(self.partitionBy) || {_ALIKE}",
            "must not name two folders alike; set another name with as",
            at=".partitionBy",
        )
    ],
    "Columns": [
        rule(
            "!has(self.flatten) || !self.flatten || !has(self.meta) || self.meta == 'Airbyte'",
            FLATTEN_OF_WHAT,
            at=".flatten",
            reason="FieldValueForbidden",
        )
    ],
    "Envelope": [
        rule(
            f"!has(self.enabled) || !self.enabled || {_NOT_EMPTY}",
            "must keep one of key, value, headers and metadata",
            at=".value",
        )
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
        rule(
            f"!has(self.type) || !(self.type in {listed(WITHOUT_ENVELOPE)}) || !{_WRAPPED}",
            NO_ENVELOPE,
            at=".envelope.enabled",
        ),
        rule(
            f"!{_WRAPPED} || self.columns.meta == 'None'",
            "must be false beside columns.meta; keep one of them",
            at=".envelope.enabled",
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
