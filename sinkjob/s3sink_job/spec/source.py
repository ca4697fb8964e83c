"""`spec.source`: which topics, from where on, and how keys and values are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_job.spec.jsonschema import NotASchema, columns_of
from s3sink_job.spec.model import CONFIG
from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.properties import PropertyName, PropertyValue, https_only
from s3sink_job.spec.quantities import Instant, Size
from s3sink_job.spec.secretrefs import SecretSource
from s3sink_job.spec.texts import Regex, Servers, ShortText, TopicName, Url, no_repeats

RecordFormat = Literal["String", "Bytes", "Json", "Avro", "Protobuf", "JsonSchema"]
OnDataLoss = Literal["Fail", "Skip"]
Isolation = Literal["ReadCommitted", "ReadUncommitted"]
Topics = Annotated[tuple[TopicName, ...], AfterValidator(no_repeats("topic"))]
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


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class FromOffsets:
    offsets: Annotated[tuple[TopicOffset, ...], Field(min_length=1, max_length=10_000)]
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


StartingOffsets = Annotated[FromEarliest | FromLatest | FromTimestamp | FromOffsets, Field(discriminator="position")]


def check_start(start: StartingOffsets, topics: tuple[str, ...], at: tuple[str | int, ...] = ()) -> None:
    if isinstance(start, FromOffsets) and topics:
        for index, item in enumerate(start.offsets):
            if item.topic not in topics:
                place = (*at, "offsets", index, "topic")
                raise Refusal(f"{item.topic} is not among spec.source.topics", at=place, show=False)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SchemaRegistry:
    url: Url
    credentials_from: SecretSource | None = None
    ca_from: SecretSource | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Decoding:
    format: RecordFormat
    schema_registry: SchemaRegistry | None = None
    schema: Schema = ""

    @field_validator("schema_registry")
    @classmethod
    def _registry_has_a_reader(cls, value: SchemaRegistry | None, info: ValidationInfo) -> SchemaRegistry | None:
        kind = info.data.get("format")
        if value is not None and kind in {"String", "Bytes", "Json"}:
            raise Refusal(f"is only for Avro, Protobuf and JsonSchema, and format is {kind}", show=False)
        return value

    @field_validator("schema")
    @classmethod
    def _one_schema(cls, schema: str, info: ValidationInfo) -> str:
        if "format" not in info.data or "schema_registry" not in info.data:
            return schema
        kind, registry = info.data["format"], info.data["schema_registry"]
        if schema and kind not in {"Json", "Avro"}:
            raise Refusal(f"is only for Json and Avro, and format is {kind}", show=False)
        if schema and registry:
            raise Refusal("must not be set beside schemaRegistry, which gives the schema", show=False)
        if schema and kind == "Json":
            try:
                columns_of(schema)
            except NotASchema as error:
                raise Refusal(str(error), show=False) from None
        if kind in {"Protobuf", "JsonSchema"} and not registry:
            raise Refusal(f"{kind} needs schemaRegistry, which is not set", at=("..", "schemaRegistry"), show=False)
        if kind == "Avro" and not registry and not schema:
            raise Refusal("Avro needs schemaRegistry or an inline schema, and neither is set", show=False)
        return schema


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Key(_Decoding):
    format: RecordFormat = "String"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Value(_Decoding):
    format: RecordFormat = "Json"


def topics_or_pattern(topics: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    if "topic_pattern" not in info.data:
        return topics
    if topics and info.data["topic_pattern"] is not None:
        raise Refusal("must not be set beside topicPattern; keep one of them", show=False)
    if not topics and info.data["topic_pattern"] is None:
        raise Refusal("must name at least one topic, unless topicPattern is set", show=False)
    return topics


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Source:
    bootstrap_servers: Servers
    topic_pattern: Regex | None = None
    topics: Annotated[Topics, Field(max_length=5000, validate_default=True)] = ()
    starting_offsets: StartingOffsets = FromEarliest()
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
        check_start(start, info.data.get("topics", ()))
        return start
