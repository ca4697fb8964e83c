"""`spec.errors`: what to do with records that cannot be written, and how to retry."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, fits, forbidden, required
from s3sink_api.formats import DEFAULT_LETTER_FORMAT, LetterFormat
from s3sink_api.spec import regexes
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Duration, format_duration
from s3sink_api.spec.text_types import Prefix, TopicName

RecordErrors = Literal["Fail", "Skip", "DeadLetter"]
_OF_TOPICS, _OF_PREFIXES = "is only for topic, and prefix is set", "is only for prefix, and topic is set"
Attempts = Annotated[int, Field(ge=0, le=1_000_000)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class DeadLetter:
    prefix: Prefix | None = None
    topic: Annotated[TopicName | None, Field(validate_default=True)] = None
    format: LetterFormat | None = None
    replication_factor: Annotated[int, Field(ge=1, le=32767)] | None = None
    headers: bool | None = None

    @property
    def object_format(self) -> LetterFormat:
        return self.format or DEFAULT_LETTER_FORMAT

    @property
    def with_context(self) -> bool:
        """Whether records in the topic have headers with the error."""
        return self.headers is not False

    @field_validator("prefix")
    @classmethod
    def _named(cls, prefix: str | None) -> str | None:
        if prefix == "":
            raise Refusal("must not be empty; write _dead_letter", show=False)
        return prefix

    @field_validator("topic")
    @classmethod
    def _topic_or_prefix(cls, topic: str | None, info: ValidationInfo) -> str | None:
        if "prefix" not in info.data:
            return topic
        if topic is None and info.data["prefix"] is None:
            raise Refusal("must be set, unless prefix is", show=False)
        if topic is not None and info.data["prefix"] is not None:
            raise Refusal("must not be set together with prefix; keep one of them", show=False)
        return topic

    @field_validator("format")
    @classmethod
    def _of_a_prefix(cls, format: str | None, info: ValidationInfo) -> str | None:
        if format is not None and info.data.get("topic") is not None:
            raise Refusal(_OF_PREFIXES, show=False)
        return format

    @field_validator("replication_factor", "headers")
    @classmethod
    def _of_a_topic(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("prefix") is not None:
            raise Refusal(_OF_TOPICS, show=False)
        return value

    CEL: ClassVar[tuple[Rule, ...]] = (
        required("has(self.topic) || has(self.prefix)", "must be set, unless prefix is", at=".topic"),
        forbidden(
            "!has(self.topic) || !has(self.prefix)", "must not be set together with prefix; keep one of them", ".topic"
        ),
        Rule("!has(self.prefix) || self.prefix != ''", "must not be empty; write _dead_letter", at=".prefix"),
        forbidden("!has(self.format) || !has(self.topic)", _OF_PREFIXES, at=".format"),
        *(
            forbidden(f"!has(self.{name}) || !has(self.prefix)", _OF_TOPICS, at=f".{name}")
            for name in ("replicationFactor", "headers")
        ),
    )


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Retries:
    max: Attempts = 20
    backoff: Duration = 1.0
    max_backoff: Duration = 60.0

    @model_validator(mode="after")
    def _longest_is_longest(self) -> Self:
        if self.max_backoff < self.backoff:
            least, got = format_duration(self.backoff), format_duration(self.max_backoff)
            message = f"must be at least backoff, {least}, got {got}"
            raise Refusal(message, at=("maxBackoff",), show=False)
        return self

    CEL: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.backoff) || !has(self.maxBackoff) || !{fits('self.backoff', regexes.DURATION)}"
            f" || !{fits('self.maxBackoff', regexes.DURATION)} || duration(self.maxBackoff) >= duration(self.backoff)",
            "must be at least backoff",
            at=".maxBackoff",
        ),
    )


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RequestRetries:
    max: Attempts = 5
    backoff: Duration = 0.05


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Errors:
    records: RecordErrors = "Fail"
    max_per_flush: Annotated[int, Field(ge=0, le=2**53)] = 1000
    max_percent: Annotated[int, Field(ge=0, le=100)] = 10
    dead_letter: Annotated[DeadLetter | None, Field(validate_default=True)] = None
    log_records: bool = False
    retries: Retries = Retries()
    request_retries: RequestRetries = RequestRetries()

    @field_validator("dead_letter")
    @classmethod
    def _somewhere_to_put_them(cls, value: DeadLetter | None, info: ValidationInfo) -> DeadLetter | None:
        if value is None and info.data.get("records") == "DeadLetter":
            raise Refusal("must be set, since records is DeadLetter: {topic: …} or {prefix: …}", show=False)
        return value

    CEL: ClassVar[tuple[Rule, ...]] = (
        required(
            "!has(self.records) || self.records != 'DeadLetter' || has(self.deadLetter)",
            "must be set, since records is DeadLetter: {topic: …} or {prefix: …}",
            at=".deadLetter",
        ),
    )
