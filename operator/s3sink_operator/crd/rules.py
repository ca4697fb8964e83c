"""What fields mean together, as CEL: the API server refuses it at once, and says what the parser would say.

A section that is absent is judged before its fields get their defaults, hence `has` even for those that have one.
Only rules that cost the same whatever the document holds; everything else is the parser's, and shows as
`Accepted=False`.
"""

from __future__ import annotations

from typing import Any

from s3sink_job.spec import CODECS, LEVELS

Rule = dict[str, Any]


def rule(expression: str, message: str) -> Rule:
    return {"rule": expression, "message": message}


def _listed(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{v}'" for v in values) + "]"


def _codecs() -> list[Rule]:
    return [
        rule(
            f"!has(self.type) || self.type != '{kind}' || !has(self.compression)"
            f" || self.compression.codec in {_listed(codecs)}",
            f"compression.codec: {kind} takes {', '.join(codecs)}",
        )
        for kind, codecs in CODECS.items()
    ]


def _levels() -> list[Rule]:
    without = tuple(codec for codec in ("None", "Snappy") if codec not in LEVELS)
    rules = [
        rule(
            f"!has(self.level) || !(self.codec in {_listed(without)})", f"level: {' and '.join(without)} have no levels"
        )
    ]
    for codec, (low, high) in LEVELS.items():
        rules.append(
            rule(
                f"!has(self.level) || self.codec != '{codec}' || (self.level >= {low} && self.level <= {high})",
                f"level: must lie between {low} and {high} for {codec}",
            )
        )
    return rules


_DECODING = [
    rule(
        "!has(self.schemaRegistry) || self.format in ['Avro', 'Protobuf', 'JsonSchema']",
        "schemaRegistry: is only for Avro, Protobuf and JsonSchema",
    ),
    rule(
        "!has(self.schema) || self.schema == '' || self.format in ['Json', 'Avro']",
        "schema: is only for Json and Avro",
    ),
    rule(
        "!has(self.schema) || self.schema == '' || !has(self.schemaRegistry)",
        "schema: must not be set beside schemaRegistry, which gives the schema",
    ),
    rule(
        "!has(self.format) || !(self.format in ['Protobuf', 'JsonSchema']) || has(self.schemaRegistry)",
        "schemaRegistry: must be set with Protobuf and JsonSchema",
    ),
    rule(
        "!has(self.format) || self.format != 'Avro' || has(self.schemaRegistry)"
        " || (has(self.schema) && self.schema != '')",
        "schema: Avro needs schemaRegistry or an inline schema",
    ),
]

RULES: dict[str, list[Rule]] = {
    "Spec": [
        rule(
            "(has(self.schedule) ? 1 : 0) == (self.run == 'Scheduled' ? 1 : 0)",
            "schedule: must be set with run: Scheduled, and only there",
        ),
        rule(
            "self.mode != 'FullRefresh' || self.run != 'Continuous'",
            "mode: FullRefresh needs run: Once or Scheduled",
        ),
        rule(
            "self.layout.onMissingValue != 'DeadLetter' || has(self.errors.deadLetter)",
            "errors.deadLetter: must be set, since layout.onMissingValue is DeadLetter",
        ),
    ],
    "Source": [
        rule(
            "(has(self.topics) && size(self.topics) > 0) != has(self.topicPattern)",
            "topics: exactly one of topics and topicPattern must be set",
        ),
    ],
    "Key": _DECODING,
    "Value": _DECODING,
    "Transform": [rule("has(self.where) || has(self.select)", "select: must be set, unless where is")],
    "Format": [
        *_codecs(),
        rule(
            "!has(self.type) || !(self.type in ['Text', 'Bytes']) || self.columns.meta == 'None'",
            "columns.meta: must be None, since Text and Bytes write values alone",
        ),
    ],
    "RouteFormat": _codecs(),
    "Compression": _levels(),
    "Errors": [
        rule(
            "!has(self.records) || self.records != 'DeadLetter' || has(self.deadLetter)",
            "deadLetter: must be set, since records is DeadLetter: {topic: …} or {prefix: …}",
        ),
    ],
    "DeadLetter": [
        rule("has(self.topic) != has(self.prefix)", "topic: exactly one of topic and prefix must be set"),
        rule("!has(self.replicationFactor) || has(self.topic)", "replicationFactor: is only for topic"),
    ],
    "PartitionItem": [
        rule(
            "self.type != 'Time' || !has(self.source) || (self.source == 'Field') == has(self.path)",
            "path: must be set with source: Field, and only there",
        ),
    ],
}
