"""Folders and names of objects as plain data: what a task needs of `spec.layout`, and what a manifest remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_job.spec import Layout as LayoutSpec
from s3sink_job.spec import PartitionItem

TOMBSTONES = "_tombstones"
"""The folder, first of all, of what `nullValues: Separate` keeps apart. Readers of tables pass such names over."""


@dataclass(frozen=True)
class Item:
    """One level of folders. Without a name its value stands alone; a time is named by its format."""

    kind: str
    name: str = ""
    path: tuple[str, ...] = ()
    """Where in value or key the field is; for a header its name."""
    source: str = ""
    format: str = ""
    timezone: str = "UTC"
    locale: str = "en"
    every: float | None = None

    @property
    def constant(self) -> bool:
        """Whether all records of a slice share it."""
        return self.kind in {"Topic", "Partition"} or self.source == "Wallclock"


TOPIC, PARTITION = Item("Topic"), Item("Partition")


@dataclass(frozen=True)
class Layout:
    items: tuple[Item, ...] = (TOPIC, PARTITION)
    missing: str = "Default"
    style: str = "Offset"
    offset_digits: int = 19
    partition_digits: int = 0
    suffix: str = ""
    extension: str = ""
    """Instead of the format's own, with its dot."""
    stamp: int = 0
    """Milliseconds: the time of the flush, which the wall clock's folders and the names of style Upload go by.

    It rises from flush to flush, so that no two share one.
    """

    @property
    def constant(self) -> bool:
        return all(item.constant for item in self.items)

    @property
    def columns(self) -> frozenset[str]:
        """The Kafka columns it needs beside topic, partition and offset."""
        return frozenset(filter(None, (_column(item) for item in self.items)))


DEFAULT_LAYOUT = Layout()


def layout_of(layout: LayoutSpec) -> Layout:
    return Layout(
        items=tuple(_item(item, hive=layout.hive_style) for item in layout.partition_by),
        missing=layout.on_missing_value,
        style=layout.object_name,
        offset_digits=layout.offset_digits,
        partition_digits=layout.padding.partition,
        suffix=layout.suffix,
        extension=layout.extension,
    )


def layout_from_doc(doc: Mapping[str, Any]) -> Layout:
    items = tuple(Item(**{**item, "path": tuple(item["path"])}) for item in doc["items"])
    return Layout(**{**doc, "items": items})


def _item(item: PartitionItem, *, hive: bool) -> Item:
    name = item.folder if hive else ""
    match item.type:
        case "Field":
            return Item("Field", name, item.path)
        case "Key":
            return Item("Key", name, item.path or ())
        case "Header":
            return Item("Header", name, (item.name,))
        case "Time":
            zone, locale = item.timezone or "UTC", item.locale or "en"
            return Item("Time", "", item.path or (), item.source, item.format, zone, locale, item.every)
        case kind:
            return Item(kind, name)


def _column(item: Item) -> str:
    if item.kind == "Time":
        return {"Record": "timestamp", "Field": "value"}.get(item.source, "")
    return {"Field": "value", "Key": "key", "Header": "headers"}.get(item.kind, "")
