"""Object keys: prefix, folder, name. Two objects of a sink can never get one key.

An object is told from all others by topic, generation, partition and first offset: ranges of one generation never
overlap, and a generation is never used again. Folders are as many for each record of a layout, none holds a slash
of its own, and escaping keeps values apart, so a topic or partition in the folders cannot be taken for anything else;
where one of them is not there, the name has both. No topic's name holds a `+` or a `(`. Names of style Upload have
the flush's stamp, which no other flush has, and a number within the flush instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from s3sink_job.errors import FinalError
from s3sink_job.flush.clocks import clock_of
from s3sink_job.flush.escaping import escape, topic_segment, value_segment
from s3sink_job.layout import Item, Layout

MAX_KEY_BYTES = 1024
MARKED = re.compile(r"-\d{12,}-[0-9a-f]{12}(?![0-9a-f])(?=[^/]*$)")
LARGEST_OFFSET = 2**63 - 1
LARGEST_PARTITION = LARGEST_GENERATION = LARGEST_PART = 2**31 - 1


@dataclass(frozen=True)
class At:
    """Where an object's records come from. `part` is its number within the flush."""

    topic: str
    generation: int
    partition: int
    first: int
    part: int = 0


def object_key(prefix: str, layout: Layout, at: At, folder: str, extension: str, mark: str = "") -> str:
    """`mark` tells apart what two drivers may both write where the store cannot fence one of them.

    It begins with a digit, as a generation does not.
    """
    name = _name(layout, at)
    if at.generation > 1:
        name += f"-g{at.generation}"
    if mark:
        name += f"-{mark}"
    key = "/".join(part for part in (prefix, folder, name + layout.suffix + extension) if part)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise _too_long(key)
    return key


def names_a_flush(key: str) -> bool:
    """Whether the key has the mark of a flush: then nobody else can have written the object."""
    return MARKED.search(key) is not None


def marked_anew(key: str, extension: str, mark: str) -> str:
    """The key of an object that is written again by another flush."""
    for found in [*MARKED.finditer(key)][-1:]:
        key = key[: found.start()] + key[found.end() :]
    return f"{key.removesuffix(extension)}-{mark}{extension}"


def room_for_folder(prefix: str, layout: Layout, topic: str, extension: str, mark: str = "") -> int:
    """How many bytes a folder may have, so that no object of the topic gets too long a key."""
    last = At(topic, LARGEST_GENERATION, LARGEST_PARTITION, LARGEST_OFFSET, LARGEST_PART)
    longest = object_key("", layout, last, "", extension, mark)
    room = MAX_KEY_BYTES - len("/".join((prefix, "", longest) if prefix else ("", longest)).encode())
    least = folder_hint(layout, topic, LARGEST_PARTITION)
    if len(least.encode()) > room:
        raise _too_long("/".join(part for part in (prefix, least, longest) if part))
    return room


def refused_for_length(key: str, longest_segment: int | None) -> str:
    """Why a store with such a limit would not take the key; empty if it would."""
    if longest_segment is None or len(key.encode()) <= longest_segment:
        return ""
    longest = max(key.split("/"), key=lambda part: len(part.encode()))
    if (size := len(longest.encode())) <= longest_segment:
        return ""
    return f"{longest!r} in its key has {size} bytes, and this store takes {longest_segment} between slashes"


def constant_folder(layout: Layout, topic: str, partition: int) -> str:
    """The folder of a slice whose records all share one."""
    return "/".join(constant_segment(item, layout, topic, partition) for item in layout.items)


def folder_hint(layout: Layout, topic: str, partition: int) -> str:
    """The folder, with `*` for what depends on the record."""
    return "/".join(
        constant_segment(item, layout, topic, partition) if item.constant else _open(item) for item in layout.items
    )


def constant_segment(item: Item, layout: Layout, topic: str, partition: int) -> str:
    match item.kind:
        case "Topic":
            return topic_segment(item.name, topic)
        case "Partition":
            return value_segment(item.name, str(partition))
        case _:
            return clock_of(item).folder_at(layout.stamp * 1000)


def keys_like(prefix: str, layout: Layout, topic: str) -> tuple[str, re.Pattern[str]]:
    """What all keys of the topic begin with, and what they look like, those of tombstones kept apart left out."""
    levels = [_like(item, topic) for item in layout.items]
    fixed = [re.escape(part) for part in prefix.split("/") if part]
    whole = re.compile("/".join([*fixed, *levels, f"{_name_like(layout, topic)}[^/]*"]))
    first = topic_segment(layout.items[0].name, topic) if layout.items and layout.items[0].kind == "Topic" else ""
    begin = "".join(f"{part}/" for part in (prefix, first) if part)
    return begin, whole


def _like(item: Item, topic: str) -> str:
    if item.kind == "Topic":
        return re.escape(topic_segment(item.name, topic))
    return re.escape(_open(item)).replace(re.escape("*"), "[^/]+")


def _name_like(layout: Layout, topic: str) -> str:
    match layout.style:
        case "Upload":
            return r"\d{4}_\d\d_\d\d_\d+_\d+"
        case "Lenses":
            return rf"{re.escape(topic)}\(\d+_\d+\)"
        case "Offset" if _folders_tell(layout):
            return r"\d+"
        case _:
            return rf"{re.escape(topic)}\+\d+\+\d+"


def may_clash(one: tuple[str, Layout], other: tuple[str, Layout]) -> bool:
    """Whether two routes of a sink, by prefix and layout, could give one key to objects of different topics.

    Only where neither has the topic in its names: then a value in the folders of one may look like the other's topic.
    """
    (prefix, layout), (beside, different) = one, other
    nested = f"{prefix}/".startswith(f"{beside}/") or f"{beside}/".startswith(f"{prefix}/") or not (prefix and beside)
    bare = all(each.style == "Offset" and _folders_tell(each) for each in (layout, different))
    return nested and bare and layout.items != different.items


def _folders_tell(layout: Layout) -> bool:
    """Whether topic and partition are in the folders."""
    return {"Topic", "Partition"} <= {item.kind for item in layout.items}


def _open(item: Item) -> str:
    if item.kind == "Time":
        return clock_of(item).hint
    return f"{escape(item.name)}=*" if item.name else "*"


def _name(layout: Layout, at: At) -> str:
    partition, offset = f"{at.partition:0{layout.partition_digits}d}", f"{at.first:0{layout.offset_digits}d}"
    match layout.style:
        case "Upload":
            day = datetime.fromtimestamp(layout.stamp // 1000, UTC)
            return f"{day:%Y_%m_%d}_{layout.stamp}_{at.part}"
        case "Lenses":
            return f"{at.topic}({partition}_{offset})"
        case "Offset" if _folders_tell(layout):
            return offset
        case _:
            return f"{at.topic}+{partition}+{offset}"


def _too_long(key: str) -> FinalError:
    return FinalError(
        f"object key {key!r} is longer than {MAX_KEY_BYTES} bytes: shorten spec.destination.prefix", reason="KeyTooLong"
    )
