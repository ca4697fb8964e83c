"""`spec.source`: which topics, where to start, and how keys and values are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, forbidden, is_in, is_not_in, required
from s3sink_api.formats import INPUT_FORMATS, InputFormat, InputTraits, inputs_where
from s3sink_api.spec.avro_schema_check import NotAvro, check_avro_schema
from s3sink_api.spec.checked_types import in_schema
from s3sink_api.spec.field_errors import Refusal, alternatives
from s3sink_api.spec.json_schema_check import check_json_schema
from s3sink_api.spec.json_schema_columns import NotASchema, columns_of
from s3sink_api.spec.kafka_properties import HTTPS_ONLY_CEL, PropertyName, PropertyValue, https_only
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Instant, Size
from s3sink_api.spec.schema_registry import SchemaRegistry
from s3sink_api.spec.secret_refs import SecretSource
from s3sink_api.spec.text_types import Regex, Servers, ShortText, TopicName, no_repeats

OnDataLoss = Literal["Fail", "Skip"]
OnUnroutedTopic = Literal["Default", "Fail"]
Isolation = Literal["ReadCommitted", "ReadUncommitted"]
Topics = Annotated[tuple[TopicName, ...], no_repeats("topic")]
WITH_REGISTRY = inputs_where(lambda traits: traits.registry)
BY_JSON_SCHEMA = inputs_where(lambda traits: traits.json_schema)
WITH_INLINE_SCHEMA = inputs_where(lambda traits: bool(traits.inline_schema))
_NEED_SCHEMA = inputs_where(lambda traits: traits.needs_schema)
_ONLY_BY_JSON_SCHEMA = f"is only for {alternatives(BY_JSON_SCHEMA, 'and')}"
Times = Literal["Typed", "AsWritten"]
Schema = Annotated[str, Field(max_length=262_144, validate_default=True)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class TopicOffset:
    topic: TopicName
    partition: Annotated[int, Field(ge=0, le=2**31 - 1)]
    offset: Annotated[int, Field(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FromEarliest:
    position: Literal["Earliest"] = "Earliest"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FromLatest:
    position: Literal["Latest"] = "Latest"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FromTimestamp:
    timestamp: Instant
    position: Literal["Timestamp"] = "Timestamp"


_ONCE_EACH = in_schema(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topic", "partition"]})


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FromOffsets:
    offsets: Annotated[tuple[TopicOffset, ...], Field(min_length=1, max_length=10_000), _ONCE_EACH]
    position: Literal["Offsets"] = "Offsets"

    @field_validator("offsets")
    @classmethod
    def _once_each(cls, offsets: tuple[TopicOffset, ...]) -> tuple[TopicOffset, ...]:
        seen = set()
        for index, item in enumerate(offsets):
            if (item.topic, item.partition) in seen:
                message = f"names partition {item.partition} of {item.topic} a second time"
                raise Refusal(message, at=(index,), show=False)
            seen.add((item.topic, item.partition))
        return offsets


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ToLatest:
    position: Literal["Latest"] = "Latest"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ToTimestamp:
    timestamp: Instant
    position: Literal["Timestamp"] = "Timestamp"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ToOffsets(FromOffsets):
    """The first offset of each partition that is not written."""


StartingOffsets = Annotated[FromEarliest | FromLatest | FromTimestamp | FromOffsets, Field(discriminator="position")]

EndingOffsets = Annotated[ToLatest | ToTimestamp | ToOffsets, Field(discriminator="position")]


def check_topics(
    wanted: StartingOffsets | EndingOffsets, topics: tuple[str, ...], at: tuple[str | int, ...] = ()
) -> None:
    if isinstance(wanted, FromOffsets) and topics:
        for index, item in enumerate(wanted.offsets):
            if item.topic not in topics:
                place = (*at, "offsets", index, "topic")
                raise Refusal(f"{item.topic} is not among spec.source.topics", at=place, show=False)


def check_order(start: StartingOffsets, end: EndingOffsets) -> None:
    """Only what the manifest alone shows. Not in CEL: see `not_in_cel.py`."""
    if isinstance(start, FromTimestamp) and isinstance(end, ToTimestamp) and end.timestamp <= start.timestamp:
        raise Refusal("must be later than startingOffsets.timestamp", at=("timestamp",), show=False)
    if isinstance(start, FromOffsets) and isinstance(end, ToOffsets):
        starts = {(item.topic, item.partition): item.offset for item in start.offsets}
        for index, item in enumerate(end.offsets):
            if item.offset < starts.get((item.topic, item.partition), 0):
                message = f"must not be below {starts[item.topic, item.partition]}, where startingOffsets begins"
                raise Refusal(message, at=("offsets", index, "offset"), show=False)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Decoding:
    """How keys or values are decoded."""

    format: InputFormat
    schema_registry: SchemaRegistry | None = None
    schema: Schema = ""
    validate: bool = False
    times: Times = "Typed"

    @field_validator("schema_registry")
    @classmethod
    def _registry_has_a_reader(cls, value: SchemaRegistry | None, info: ValidationInfo) -> SchemaRegistry | None:
        kind: InputFormat | None = info.data.get("format")
        if value is not None and kind is not None and not INPUT_FORMATS[kind].registry:
            raise Refusal(f"is only for {alternatives(WITH_REGISTRY, 'and')}, and format is {kind}", show=False)
        return value

    @field_validator("schema")
    @classmethod
    def _one_schema(cls, schema: str, info: ValidationInfo) -> str:
        if "format" not in info.data or "schema_registry" not in info.data:
            return schema
        kind, registry = info.data["format"], info.data["schema_registry"]
        traits = INPUT_FORMATS[kind]
        if schema and not traits.inline_schema:
            raise Refusal(f"is only for {alternatives(WITH_INLINE_SCHEMA, 'and')}, and format is {kind}", show=False)
        if schema and registry:
            raise Refusal("must not be set together with schemaRegistry, which gives the schema", show=False)
        if schema:
            try:
                _check_schema(schema, traits)
            except (NotASchema, NotAvro) as error:
                raise Refusal(str(error), show=False) from None
        if traits.needs_schema and not registry and not schema:
            raise Refusal(f"{kind} needs schemaRegistry or an inline schema, and neither is set", show=False)
        return schema

    @field_validator("validate")
    @classmethod
    def _validated_by_json_schema(cls, value: bool, info: ValidationInfo) -> bool:
        if value:
            _only_by_json_schema(info)
        return value

    @field_validator("times")
    @classmethod
    def _times_of_json_schema(cls, value: Times, info: ValidationInfo) -> Times:
        if value != "Typed":
            _only_by_json_schema(info)
        return value

    CEL: ClassVar[tuple[Rule, ...]] = (
        forbidden(
            f"!has(self.validate) || !self.validate || {is_in('self.format', BY_JSON_SCHEMA)}",
            _ONLY_BY_JSON_SCHEMA,
            at=".validate",
        ),
        forbidden(
            f"!has(self.times) || self.times == 'Typed' || {is_in('self.format', BY_JSON_SCHEMA)}",
            _ONLY_BY_JSON_SCHEMA,
            at=".times",
        ),
        forbidden(
            f"!has(self.schemaRegistry) || {is_in('self.format', WITH_REGISTRY)}",
            f"is only for {alternatives(WITH_REGISTRY, 'and')}",
            at=".schemaRegistry",
        ),
        forbidden(
            f"!has(self.schema) || self.schema == '' || {is_in('self.format', WITH_INLINE_SCHEMA)}",
            f"is only for {alternatives(WITH_INLINE_SCHEMA, 'and')}",
            at=".schema",
        ),
        forbidden(
            "!has(self.schema) || self.schema == '' || !has(self.schemaRegistry)",
            "must not be set together with schemaRegistry, which gives the schema",
            at=".schema",
        ),
        required(
            f"!has(self.format) || {is_not_in('self.format', _NEED_SCHEMA)} || has(self.schemaRegistry)"
            " || (has(self.schema) && self.schema != '')",
            f"{alternatives(_NEED_SCHEMA, 'and')} need schemaRegistry or an inline schema",
            at=".schema",
        ),
    )


def _check_schema(schema: str, traits: InputTraits) -> None:
    """Raises `NotASchema` or `NotAvro`."""
    if traits.inline_schema == "JSON Schema":
        (check_json_schema if traits.typed else columns_of)(schema)
    elif not traits.schema_read_by_job:
        check_avro_schema(schema)


def _only_by_json_schema(info: ValidationInfo) -> None:
    kind: InputFormat | None = info.data.get("format")
    if kind is not None and not INPUT_FORMATS[kind].json_schema:
        raise Refusal(f"{_ONLY_BY_JSON_SCHEMA}, and format is {kind}", show=False)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Key(Decoding):
    format: InputFormat = "String"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Value(Decoding):
    format: InputFormat = "Json"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteSource:
    """How a route decodes its topics. What it sets of key or value is taken whole."""

    key: Decoding | None = None
    value: Decoding | None = None

    def over(self, base: Source) -> Source:
        key = base.key if self.key is None else Key(**vars(self.key))
        value = base.value if self.value is None else Value(**vars(self.value))
        return replace(base, key=key, value=value)


def topics_or_pattern(topics: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    if "topic_pattern" not in info.data:
        return topics
    if topics and info.data["topic_pattern"] is not None:
        raise Refusal("must not be set together with topicPattern; keep one of them", show=False)
    if not topics and info.data["topic_pattern"] is None:
        raise Refusal("must name at least one topic, unless topicPattern is set", show=False)
    return topics


TOPICS_OR_PATTERN_CEL: tuple[Rule, ...] = (
    forbidden(
        "!has(self.topics) || size(self.topics) == 0 || !has(self.topicPattern)",
        "must not be set together with topicPattern; keep one of them",
        at=".topics",
    ),
    required(
        "(has(self.topics) && size(self.topics) > 0) || has(self.topicPattern)",
        "must name at least one topic, unless topicPattern is set",
        at=".topics",
    ),
)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Source:
    bootstrap_servers: Servers
    topic_pattern: Regex | None = None
    topics: Annotated[Topics, Field(max_length=5000, validate_default=True)] = ()
    starting_offsets: StartingOffsets = FromEarliest()
    ending_offsets: EndingOffsets | None = None
    on_unrouted_topic: OnUnroutedTopic = "Default"
    on_data_loss: OnDataLoss = "Fail"
    isolation: Isolation = "ReadCommitted"
    max_bytes_per_second: Size | None = None
    properties: Annotated[Mapping[PropertyName, PropertyValue], Field(max_length=128)] = field(default_factory=dict)
    properties_from: Annotated[tuple[SecretSource, ...], Field(max_length=32)] = ()
    publish_offsets_to: ShortText | None = None
    key: Key = Key()
    value: Value = Value()

    @field_validator("topics")
    @classmethod
    def _topics_or_pattern(cls, topics: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return topics_or_pattern(topics, info)

    @field_validator("properties")
    @classmethod
    def _https_only(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        return https_only(properties)

    @field_validator("starting_offsets")
    @classmethod
    def _offsets_of_our_topics(cls, start: StartingOffsets, info: ValidationInfo) -> StartingOffsets:
        check_topics(start, info.data.get("topics", ()))
        return start

    @field_validator("ending_offsets")
    @classmethod
    def _end_after_start(cls, end: EndingOffsets | None, info: ValidationInfo) -> EndingOffsets | None:
        if end is not None:
            check_topics(end, info.data.get("topics", ()))
            check_order(info.data.get("starting_offsets", FromEarliest()), end)
        return end

    CEL: ClassVar[tuple[Rule, ...]] = TOPICS_OR_PATTERN_CEL + HTTPS_ONLY_CEL
