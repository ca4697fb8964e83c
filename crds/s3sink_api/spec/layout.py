"""`spec.layout`: the folders and names of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.partition_items import (
    NO_ITEM_TWICE_CEL,
    ByPartition,
    ByTime,
    ByTopic,
    PartitionBy,
    PartitionItem,
)
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.text_types import FileNamePart
from s3sink_api.spec.topic_names import TopicNames, TopicReplacement

OnMissingValue = Literal["Default", "Fail", "DeadLetter"]
ObjectNameStyle = Literal["Offset", "Confluent", "Lenses", "Upload"]
Digits = Annotated[int, Field(ge=0, le=19)]

_OFFSET_DIGITS: dict[ObjectNameStyle, int] = {"Offset": 19, "Lenses": 12, "Confluent": 10, "Upload": 0}


def _folder_names(items: tuple[PartitionItem, ...]) -> Iterator[tuple[str, tuple[str | int, ...], str]]:
    """For each name: the field that sets it, the path to the field with the error, and the name."""
    for index, item in enumerate(items):
        if item.folder:
            yield "as", (index,), item.folder
    for index, item in enumerate(items):
        if isinstance(item, ByTime):
            for name in item.folders:
                yield "format", (index, "format"), name


_FOLDER = (
    "(has({0}.__as__) ? {0}.__as__ : {0}.type == 'Partition' ? 'partition' : {0}.type in ['Topic', 'Time'] ? ''"
    " : has({0}.path) ? {0}.path[size({0}.path) - 1] : {0}.type == 'Key' ? 'key' : has({0}.name) ? {0}.name : '')"
)
"""CEL for the name of an item's folder; empty if the item sets none."""
_ONE, _OTHER = _FOLDER.format("i"), _FOLDER.format("j")


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
    topic_names: TopicNames = ()
    topic_replacement: TopicReplacement | None = None
    suffix: FileNamePart = ""
    extension: FileNamePart = ""

    OF_ROUTES: ClassVar[tuple[str, ...]] = (
        *("partition_by", "hive_style", "on_missing_value", "object_name", "padding", "suffix", "extension"),
    )
    """Fields that a route may set. Names of topics are those of all topics of the sink."""

    @property
    def offset_digits(self) -> int:
        digits = self.padding.offset
        return _OFFSET_DIGITS[self.object_name] if digits is None else digits

    @field_validator("hive_style")
    @classmethod
    def _no_folder_name_twice(cls, hive_style: bool, info: ValidationInfo) -> bool:
        """Readers make a column of each name."""
        seen: set[str] = set()
        for field, at, name in _folder_names(info.data.get("partition_by", ()) if hive_style else ()):
            if name in seen:
                message = f"{name}= is already the name of another folder; set a different one with {field}"
                raise Refusal(message, at=("..", "partitionBy", *at), show=False)
            seen.add(name)
        return hive_style

    CEL: ClassVar[tuple[Rule, ...]] = (
        NO_ITEM_TWICE_CEL,
        Rule(
            "!has(self.hiveStyle) || !self.hiveStyle || !has(self.partitionBy)"
            f" || self.partitionBy.all(i, {_ONE} == '' || self.partitionBy.filter(j, {_OTHER} == {_ONE}).size() < 2)",
            "must not give two folders the same name; set a different one with as",
            at=".partitionBy",
        ),
    )
