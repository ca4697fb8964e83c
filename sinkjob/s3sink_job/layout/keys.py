"""Object keys: prefix, folder, name. Two objects of a sink never get the same key.

Topic, generation, partition and first offset identify an object: ranges of one generation never overlap, and a
generation is never used again. All records of a layout have the same number of folders, no folder holds a slash, and
escaping keeps values different. No two topics have folders of one name: `topic_folders.py` refuses them. So a topic or
partition in the folders is unambiguous; if one of them is not in the folders, the name has both. No topic's name has a
`+` or a `(`. Names of style Upload have the flush's stamp, which is unique, and a number within the flush.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from s3sink_job.base.errors import FinalError
from s3sink_job.layout.escaping import escape, topic_segment, value_segment
from s3sink_job.layout.settings import LayoutItem, ObjectLayout
from s3sink_job.layout.time_patterns import clock_of

MAX_KEY_BYTES = 1024
MARKED = re.compile(r"-\d{12,}-[0-9a-f]{12}(?=[^/]*$)")
LARGEST_OFFSET = 2**63 - 1
LARGEST_PARTITION = LARGEST_GENERATION = LARGEST_PART = 2**31 - 1


@dataclass(frozen=True)
class ObjectSource:
    """Where an object's records come from. `part` is its number within the flush."""

    topic: str
    generation: int
    partition: int
    first: int
    part: int = 0


def object_key(
    prefix: str, layout: ObjectLayout, source: ObjectSource, folder: str, extension: str, mark: str = ""
) -> str:
    """The key of an object. `mark` is the flush, where the store has no conditional writes to fence a second driver.

    It begins with a digit; a generation does not.
    """
    name = _name(layout, source)
    if source.generation > 1:
        name += f"-g{source.generation}"
    if mark:
        name += f"-{mark}"
    key = "/".join(part for part in (prefix, folder, name + layout.suffix + extension) if part)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise _too_long(key)
    return key


def names_a_flush(key: str) -> bool:
    """Whether the key has the mark of a flush: then no other flush can have written the object."""
    return MARKED.search(key) is not None


def key_with_mark(key: str, extension: str, mark: str) -> str:
    """The key of an object that another flush writes again."""
    for found in [*MARKED.finditer(key)][-1:]:
        key = key[: found.start()] + key[found.end() :]
    return f"{key.removesuffix(extension)}-{mark}{extension}"


def room_for_folder(prefix: str, layout: ObjectLayout, topic: str, extension: str, mark: str = "") -> int:
    """How many bytes a folder may have, so that the key of no object of the topic is too long."""
    last = ObjectSource(topic, LARGEST_GENERATION, LARGEST_PARTITION, LARGEST_OFFSET, LARGEST_PART)
    longest = object_key("", layout, last, "", extension, mark)
    room = MAX_KEY_BYTES - len("/".join((prefix, "", longest) if prefix else ("", longest)).encode())
    least = folder_hint(layout, topic, LARGEST_PARTITION)
    if len(least.encode()) > room:
        raise _too_long("/".join(part for part in (prefix, least, longest) if part))
    return room


def refused_for_length(key: str, longest_segment: int | None) -> str:
    """Why a store with this limit refuses the key; empty if it accepts it."""
    if longest_segment is None or len(key.encode()) <= longest_segment:
        return ""
    longest = max(key.split("/"), key=lambda part: len(part.encode()))
    if (size := len(longest.encode())) <= longest_segment:
        return ""
    return f"{longest!r} in its key has {size} bytes, and this store takes {longest_segment} between slashes"


def constant_folder(layout: ObjectLayout, topic: str, partition: int) -> str:
    """The folder of a slice, if all its records go to the same one."""
    return "/".join(constant_segment(item, layout, topic, partition) for item in layout.items)


def folder_hint(layout: ObjectLayout, topic: str, partition: int) -> str:
    """The folder, with `*` in place of what depends on the record."""
    return "/".join(
        constant_segment(item, layout, topic, partition) if item.constant else _open(item) for item in layout.items
    )


def constant_segment(item: LayoutItem, layout: ObjectLayout, topic: str, partition: int) -> str:
    match item.kind:
        case "Topic":
            return topic_segment(item.name, layout.topics.folder_of(topic))
        case "Partition":
            return value_segment(item.name, str(partition))
        case _:
            return clock_of(item).folder_at(layout.stamp * 1000)


def keys_like(prefix: str, layout: ObjectLayout, topic: str) -> tuple[str, re.Pattern[str]]:
    """The prefix of all keys of the topic, and a pattern for them. Keys in the folder of tombstones do not match."""
    folder = layout.topics.folder_of(topic)
    levels = [_like(item, folder) for item in layout.items]
    fixed = [re.escape(part) for part in prefix.split("/") if part]
    whole = re.compile("/".join([*fixed, *levels, f"{_name_like(layout, topic)}[^/]*"]))
    first = topic_segment(layout.items[0].name, folder) if layout.items and layout.items[0].kind == "Topic" else ""
    begin = "".join(f"{part}/" for part in (prefix, first) if part)
    return begin, whole


def _like(item: LayoutItem, topic_folder: str) -> str:
    if item.kind == "Topic":
        return re.escape(topic_segment(item.name, topic_folder))
    return re.escape(_open(item)).replace(re.escape("*"), "[^/]+")


def _name_like(layout: ObjectLayout, topic: str) -> str:
    match layout.style:
        case "Upload":
            return r"\d{4}_\d\d_\d\d_\d+_\d+"
        case "Lenses":
            return rf"{re.escape(topic)}\(\d+_\d+\)"
        case "Offset" if _identified_by_folders(layout):
            return r"\d+"
        case _:
            return rf"{re.escape(topic)}\+\d+\+\d+"


def may_clash(one: tuple[str, ObjectLayout], other: tuple[str, ObjectLayout]) -> bool:
    """Whether two routes of a sink, by prefix and layout, could give the same key to objects of different topics.

    Only if neither has the topic in its names: then a value in the folders of one may equal the other's topic. That
    two topics have folders of one name is found elsewhere.
    """
    (prefix, layout), (beside, different) = one, other
    nested = f"{prefix}/".startswith(f"{beside}/") or f"{beside}/".startswith(f"{prefix}/") or not (prefix and beside)
    bare = all(each.style == "Offset" and _identified_by_folders(each) for each in (layout, different))
    return nested and bare and layout.items != different.items


def _identified_by_folders(layout: ObjectLayout) -> bool:
    """Whether topic and partition are both in the folders."""
    return {"Topic", "Partition"} <= {item.kind for item in layout.items}


def _open(item: LayoutItem) -> str:
    if item.kind == "Time":
        return clock_of(item).hint
    return f"{escape(item.name)}=*" if item.name else "*"


def _name(layout: ObjectLayout, source: ObjectSource) -> str:
    partition, offset = f"{source.partition:0{layout.partition_digits}d}", f"{source.first:0{layout.offset_digits}d}"
    match layout.style:
        case "Upload":
            day = datetime.fromtimestamp(layout.stamp // 1000, UTC)
            return f"{day:%Y_%m_%d}_{layout.stamp}_{source.part}"
        case "Lenses":
            return f"{source.topic}({partition}_{offset})"
        case "Offset" if _identified_by_folders(layout):
            return offset
        case _:
            return f"{source.topic}+{partition}+{offset}"


def _too_long(key: str) -> FinalError:
    return FinalError(
        f"object key {key!r} is longer than {MAX_KEY_BYTES} bytes: shorten spec.destination.prefix", reason="KeyTooLong"
    )
