"""`spec.layout.partitionBy`: what folders are made of, one item for each."""

from __future__ import annotations

from itertools import takewhile
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, fits, forbidden, required
from s3sink_api.spec import date_patterns, regexes
from s3sink_api.spec.checked_types import after
from s3sink_api.spec.date_patterns import Token, check_pattern, levels_of
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Duration
from s3sink_api.spec.text_types import ShortText, TimeZone, matching

TimeSource = Literal["Record", "Wallclock", "Field"]
# A list, since field names may hold dots.
FieldPath = Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=8)]


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
        """A table has one topic, so the folder of the topic is no column of the table, unless it has a name."""
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
    format: Annotated[ShortText, after(_date_pattern, *date_patterns.CEL)]
    path: Annotated[FieldPath | None, Field(validate_default=True)] = None
    timezone: TimeZone | None = None
    locale: Annotated[str, matching(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]+)*", "a locale such as en", longest=64)] | None = (
        None
    )
    every: Duration | None = None
    type: Literal["Time"] = "Time"

    @property
    def folder(self) -> str:
        """The names are in its format."""
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

    CEL: ClassVar[tuple[Rule, ...]] = (
        required(
            "!has(self.source) || self.source != 'Field' || has(self.path)",
            "must name the field that holds the time, since source is Field",
            at=".path",
        ),
        forbidden(
            "!has(self.source) || self.source == 'Field' || !has(self.path)", "is only for source: Field", at=".path"
        ),
    )


PartitionItem = Annotated[ByTopic | ByPartition | ByField | ByKey | ByHeader | ByTime, Field(discriminator="type")]


def _no_item_twice(items: tuple[PartitionItem, ...]) -> tuple[PartitionItem, ...]:
    for index, item in enumerate(items):
        if item in items[:index]:
            raise Refusal(f"repeats item {items.index(item)}; keep one of them", at=(index,), show=False)
    return items


def _same(field: str) -> str:
    """CEL: both items have the field with the same value, or both do not have it."""
    return f"(has(i.{field}) ? has(j.{field}) && i.{field} == j.{field} : !has(j.{field}))"


_SAME_ITEM = " && ".join(
    [
        "i.type == j.type",
        *map(_same, ("path", "__as__", "name", "source", "format", "timezone", "locale")),
        f"({_same('every')} || (has(i.every) && has(j.every) && {fits('i.every', regexes.DURATION)}"
        f" && {fits('j.every', regexes.DURATION)} && duration(i.every) == duration(j.every)))",
    ]
)
PartitionBy = Annotated[tuple[PartitionItem, ...], Field(max_length=16), after(_no_item_twice)]
NO_ITEM_TWICE_CEL = Rule(
    f"!has(self.partitionBy) || self.partitionBy.all(i, self.partitionBy.filter(j, {_SAME_ITEM}).size() == 1)",
    "must not repeat an item; keep one of them",
    at=".partitionBy",
)
"""For the layout of the sink. Those of routes together would cost more than the API server allows."""
