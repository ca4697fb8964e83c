"""`spec.layout`: the folders and names of objects."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_job.spec.model import CONFIG
from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.quantities import Duration
from s3sink_job.spec.texts import FileNamePart, ShortText, matching

OnMissingValue = Literal["Default", "Fail", "DeadLetter"]
ObjectNameStyle = Literal["Offset", "Confluent", "Lenses", "Upload"]
TimeSource = Literal["Record", "Wallclock", "Field"]
# A list, since field names may hold dots.
FieldPath = Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=8)]
Digits = Annotated[int, Field(ge=0, le=19)]

_OFFSET_DIGITS: dict[ObjectNameStyle, int] = {"Offset": 19, "Lenses": 12, "Confluent": 10, "Upload": 0}


def _even_quotes(pattern: str) -> str:
    if pattern.count("'") % 2:
        raise Refusal("must close every quote, as in 'year='yyyy")
    return pattern


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByTopic:
    type: Literal["Topic"] = "Topic"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByPartition:
    type: Literal["Partition"] = "Partition"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByField:
    path: FieldPath
    as_: Annotated[
        Annotated[str, matching(r"[^/=\x00-\x1f]+", "a folder name without / and =", longest=128)] | None,
        Field(alias="as"),
    ] = None
    type: Literal["Field"] = "Field"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByKey:
    path: FieldPath | None = None
    type: Literal["Key"] = "Key"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByHeader:
    name: ShortText
    type: Literal["Header"] = "Header"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByTime:
    source: TimeSource
    format: Annotated[ShortText, AfterValidator(_even_quotes)]
    path: Annotated[FieldPath | None, Field(validate_default=True)] = None
    timezone: Annotated[str, matching(r"[A-Za-z0-9_+/-]+", "a zone such as Europe/Berlin", longest=64)] | None = None
    locale: Annotated[str, matching(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]+)*", "a locale such as en", longest=64)] | None = (
        None
    )
    every: Duration | None = None
    type: Literal["Time"] = "Time"

    @field_validator("path")
    @classmethod
    def _path_of_a_field(cls, path: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        source = info.data.get("source", "")
        if source == "Field" and path is None:
            raise Refusal("must name the field that holds the time, since source is Field", show=False)
        if source in {"Record", "Wallclock"} and path is not None:
            raise Refusal(f"is only for source: Field, and source is {source}", show=False)
        return path


PartitionItem = Annotated[ByTopic | ByPartition | ByField | ByKey | ByHeader | ByTime, Field(discriminator="type")]


def _no_item_twice(items: tuple[PartitionItem, ...]) -> tuple[PartitionItem, ...]:
    for index, item in enumerate(items):
        if item in items[:index]:
            raise Refusal(f"repeats item {items.index(item)}; keep one of them", at=(index,), show=False)
    return items


PartitionBy = Annotated[tuple[PartitionItem, ...], Field(max_length=12), AfterValidator(_no_item_twice)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Padding:
    offset: Digits | None = None
    partition: Digits = 0


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Layout:
    partition_by: PartitionBy = (ByTopic(), ByPartition())
    hive_style: bool = False
    on_missing_value: OnMissingValue = "Default"
    object_name: ObjectNameStyle = "Offset"
    padding: Padding = Padding()
    suffix: FileNamePart = ""
    extension: FileNamePart = ""

    @property
    def offset_digits(self) -> int:
        digits = self.padding.offset
        return _OFFSET_DIGITS[self.object_name] if digits is None else digits
