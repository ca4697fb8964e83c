"""`spec.routes`: topics that go elsewhere. Nothing here has a default: what is absent is inherited."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_job.spec.flush import Records
from s3sink_job.spec.format import (
    Compression,
    CsvQuote,
    Delimiter,
    EvolutionMode,
    FormatType,
    MetaColumns,
    OnSchemaChange,
)
from s3sink_job.spec.layout import Digits, ObjectNameStyle, OnMissingValue, PartitionBy
from s3sink_job.spec.model import CONFIG
from s3sink_job.spec.quantities import Duration, Size
from s3sink_job.spec.source import Topics, topics_or_pattern
from s3sink_job.spec.texts import Bucket, FileNamePart, Prefix, Regex

T = TypeVar("T")


def over(base: T, own: Any) -> T:
    """The base with every field that is set replaced, section by section."""
    if own is None:
        return base
    changes = {}
    for field in fields(own):
        value, before = getattr(own, field.name), getattr(base, field.name)
        if value is not None:
            inherits = is_dataclass(before) and type(before) is not type(value)
            changes[field.name] = over(before, value) if inherits else value
    return replace(base, **changes)  # type: ignore[type-var]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteDestination:
    bucket: Bucket | None = None
    prefix: Prefix | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RoutePadding:
    offset: Digits | None = None
    partition: Digits | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteLayout:
    partition_by: PartitionBy | None = None
    hive_style: bool | None = None
    on_missing_value: OnMissingValue | None = None
    object_name: ObjectNameStyle | None = None
    padding: RoutePadding | None = None
    suffix: FileNamePart | None = None
    extension: FileNamePart | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteCsv:
    header: bool | None = None
    delimiter: Delimiter | None = None
    quote: CsvQuote | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteParquet:
    row_group_bytes: Size | None = None
    dictionary: bool | None = None
    statistics: bool | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteColumns:
    meta: MetaColumns | None = None
    flatten: bool | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteEnvelope:
    enabled: bool | None = None
    key: bool | None = None
    value: bool | None = None
    headers: bool | None = None
    metadata: bool | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteSchemaEvolution:
    mode: EvolutionMode | None = None
    on_change: OnSchemaChange | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteFormat:
    type: FormatType | None = None
    compression: Compression | None = None
    csv: RouteCsv | None = None
    parquet: RouteParquet | None = None
    columns: RouteColumns | None = None
    envelope: RouteEnvelope | None = None
    schema_evolution: RouteSchemaEvolution | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class RouteFlush:
    records: Records | None = None
    bytes: Size | None = None
    interval: Duration | None = None
    aligned: Duration | None = None
    record_window: Duration | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Route:
    topic_pattern: Regex | None = None
    topics: Annotated[Topics, Field(max_length=250, validate_default=True)] = ()
    destination: RouteDestination | None = None
    layout: RouteLayout | None = None
    format: RouteFormat | None = None
    flush: RouteFlush | None = None

    @field_validator("topics")
    @classmethod
    def _topics_or_pattern(cls, topics: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return topics_or_pattern(topics, info)
