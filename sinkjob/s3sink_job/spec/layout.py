"""`spec.layout`: the folders and names of objects."""

from __future__ import annotations

from itertools import takewhile
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_job.spec.datepatterns import Token, check_pattern, levels_of
from s3sink_job.spec.model import CONFIG
from s3sink_job.spec.problems import Refusal
from s3sink_job.spec.quantities import Duration
from s3sink_job.spec.source import RecordFormat
from s3sink_job.spec.texts import FileNamePart, ShortText, matching

OnMissingValue = Literal["Default", "Fail", "DeadLetter"]
ObjectNameStyle = Literal["Offset", "Confluent", "Lenses", "Upload"]
TimeSource = Literal["Record", "Wallclock", "Field"]
# A list, since field names may hold dots.
FieldPath = Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=8)]
Digits = Annotated[int, Field(ge=0, le=19)]

_OFFSET_DIGITS: dict[ObjectNameStyle, int] = {"Offset": 19, "Lenses": 12, "Confluent": 10, "Upload": 0}


def _date_pattern(pattern: str) -> str:
    if why := check_pattern(pattern):
        raise Refusal(why)
    return pattern


def _is_text(token: Token) -> bool:
    return not token.field


FolderName = Annotated[
    Annotated[str, matching(r"[^/=\x00-\x1f]+", "a folder name without / and =", longest=128)] | None,
    Field(alias="as"),
]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByTopic:
    as_: FolderName = None
    type: Literal["Topic"] = "Topic"

    @property
    def folder(self) -> str:
        """A table is of one topic: its folder holds the partitions, and is none of them unless it is named."""
        return self.as_ or ""


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByPartition:
    as_: FolderName = None
    type: Literal["Partition"] = "Partition"

    @property
    def folder(self) -> str:
        return self.as_ or "partition"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByField:
    path: FieldPath
    as_: FolderName = None
    type: Literal["Field"] = "Field"

    @property
    def folder(self) -> str:
        return self.as_ or self.path[-1]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByKey:
    path: FieldPath | None = None
    as_: FolderName = None
    type: Literal["Key"] = "Key"

    @property
    def folder(self) -> str:
        return self.as_ or (self.path[-1] if self.path else "key")


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByHeader:
    name: ShortText
    as_: FolderName = None
    type: Literal["Header"] = "Header"

    @property
    def folder(self) -> str:
        return self.as_ or self.name


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ByTime:
    source: TimeSource
    format: Annotated[ShortText, AfterValidator(_date_pattern)]
    path: Annotated[FieldPath | None, Field(validate_default=True)] = None
    timezone: Annotated[str, matching(r"[A-Za-z0-9_+/-]+", "a zone such as Europe/Berlin", longest=64)] | None = None
    locale: Annotated[str, matching(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]+)*", "a locale such as en", longest=64)] | None = (
        None
    )
    every: Duration | None = None
    type: Literal["Time"] = "Time"

    @property
    def folder(self) -> str:
        """Its format names it."""
        return ""

    @property
    def folders(self) -> tuple[str, ...]:
        """The names in its format, `year` of `'year='yyyy`."""
        fixed = ["".join(token.text for token in takewhile(_is_text, level)) for level in levels_of(self.format)]
        return tuple(text.partition("=")[0] for text in fixed if "=" in text)

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


def check_single(items: tuple[PartitionItem, ...], style: str, at: tuple[str | int, ...]) -> None:
    """Objects of one record are put before they are committed, so the record alone must tell their keys."""
    if style == "Upload":
        message = "must not be Upload, since Bytes names each object by its record"
        raise Refusal(message, at=(*at, "objectName"), show=False)
    for index, item in enumerate(items):
        if isinstance(item, ByTime) and item.source == "Wallclock":
            message = "must not be Wallclock, since Bytes names each object by its record"
            raise Refusal(message, at=(*at, "partitionBy", index, "source"), show=False)


def check_paths(
    items: tuple[PartitionItem, ...], key: RecordFormat, value: RecordFormat, at: tuple[str | int, ...]
) -> None:
    """Text and bytes have no fields."""
    for index, item in enumerate(items):
        of_key = isinstance(item, ByKey)
        if (path := getattr(item, "path", None)) and (kind := key if of_key else value) in {"String", "Bytes"}:
            field = "key" if of_key else "value"
            message = f"needs fields, and source.{field}.format is {kind}; use Json, got {'.'.join(path)}"
            raise Refusal(message, at=(*at, "partitionBy", index, "path"), show=False)


def check_folders(items: tuple[PartitionItem, ...], *, hive: bool, at: tuple[str | int, ...]) -> None:
    """A reader makes a column of each name."""
    if not hive:
        return
    named: list[tuple[str, tuple[str | int, ...], str]]
    named = [("as", (index,), item.folder) for index, item in enumerate(items) if item.folder]
    for index, item in enumerate(items):
        if isinstance(item, ByTime):
            named += [("format", (index, "format"), name) for name in item.folders]
    seen: set[str] = set()
    for what, place, name in named:
        if name in seen:
            message = f"{name}= is the name of another folder already; set another with {what}"
            raise Refusal(message, at=(*at, "partitionBy", *place), show=False)
        seen.add(name)


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
