"""Folders and names of objects, and which records may share one, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from s3sink_api.spec import Layout as LayoutSpec
from s3sink_api.spec import PartitionItem, Spec
from s3sink_job.layout.topic_names import SAME_NAMES, TopicNames, topic_names_of

TOMBSTONES = "_tombstones"
"""The first folder of tombstones with `nullValues: Separate`. Readers of tables ignore names with `_` in front."""


@dataclass(frozen=True)
class LayoutItem:
    """One level of folders: `name=value`, or only the value without a name. A time has its names in its format."""

    kind: str
    name: str = ""
    path: tuple[str, ...] = ()
    """The path to the field in value or key; for a header its name."""
    source: str = ""
    format: str = ""
    timezone: str = "UTC"
    locale: str = "en"
    every: float | None = None

    @property
    def constant(self) -> bool:
        """Whether all records of a slice share it."""
        return self.kind in {"Topic", "Partition"} or self.source == "Wallclock"


TOPIC, PARTITION = LayoutItem("Topic"), LayoutItem("Partition")


@dataclass(frozen=True)
class ObjectLayout:
    items: tuple[LayoutItem, ...] = (TOPIC, PARTITION)
    missing: str = "Default"
    style: str = "Offset"
    offset_digits: int = 19
    partition_digits: int = 0
    suffix: str = ""
    extension: str = ""
    """Instead of the format's own extension, with its dot."""
    stamp: int = 0
    """Milliseconds: the time of the flush, for folders by wall clock and for names of style Upload.

    It rises from flush to flush: no two flushes have the same one.
    """
    topics: TopicNames = SAME_NAMES
    """The folders of topics. Names of objects have the topics themselves."""

    @property
    def constant(self) -> bool:
        return all(item.constant for item in self.items)

    @property
    def kafka_columns(self) -> frozenset[str]:
        """The Kafka columns it needs beside topic, partition and offset."""
        return frozenset(filter(None, (_column(item) for item in self.items)))


DEFAULT_LAYOUT = ObjectLayout()


@dataclass(frozen=True)
class Grouping:
    """Which records may share an object, and what that object is called."""

    layout: ObjectLayout = DEFAULT_LAYOUT
    window: float | None = None
    """Seconds of record time that an object may span; it does not cross a multiple of them."""
    tombstones_apart: bool = False
    """Whether tombstones have a folder of their own."""

    @property
    def kafka_columns(self) -> frozenset[str]:
        """The Kafka columns it needs beside topic, partition and offset."""
        columns = self.layout.kafka_columns
        return columns if self.window is None else columns | {"timestamp"}

    @property
    def folders_vary(self) -> bool:
        """Whether records of one slice may go to different folders."""
        return not self.layout.constant or self.tombstones_apart

    @property
    def varies(self) -> bool:
        """Whether records of one slice may go to different objects at the same time."""
        return self.folders_vary or self.window is not None

    @property
    def rules(self) -> Grouping:
        """Only what decides on the group of a record: two groupings with the same rules give the same groups."""
        if not self.folders_vary:
            return Grouping(window=self.window)
        by_clock = any(item.source == "Wallclock" for item in self.layout.items)
        layout = ObjectLayout(self.layout.items, self.layout.missing, stamp=self.layout.stamp if by_clock else 0)
        layout = replace(layout, topics=self.layout.topics)
        return replace(self, layout=layout)


def grouping_of(spec: Spec) -> Grouping:
    return Grouping(layout_of(spec.layout), spec.flush.record_window, spec.null_values == "Separate")


def layout_of(layout: LayoutSpec) -> ObjectLayout:
    return ObjectLayout(
        items=tuple(_item(item, hive=layout.hive_style) for item in layout.partition_by),
        missing=layout.on_missing_value,
        style=layout.object_name,
        offset_digits=layout.offset_digits,
        partition_digits=layout.padding.partition,
        suffix=layout.suffix,
        extension=layout.extension,
        topics=topic_names_of(layout),
    )


def _item(item: PartitionItem, *, hive: bool) -> LayoutItem:
    name = item.folder if hive else ""
    match item.type:
        case "Field":
            return LayoutItem("Field", name, item.path)
        case "Key":
            return LayoutItem("Key", name, item.path or ())
        case "Header":
            return LayoutItem("Header", name, (item.name,))
        case "Time":
            zone, locale = item.timezone or "UTC", item.locale or "en"
            return LayoutItem("Time", "", item.path or (), item.source, item.format, zone, locale, item.every)
        case kind:
            return LayoutItem(kind, name)


def _column(item: LayoutItem) -> str:
    if item.kind == "Time":
        return {"Record": "timestamp", "Field": "value"}.get(item.source, "")
    return {"Field": "value", "Key": "key", "Header": "headers"}.get(item.kind, "")
