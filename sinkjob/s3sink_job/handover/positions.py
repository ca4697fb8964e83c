"""From what the other sink left behind to the offset at which each partition begins. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_job.base.errors import FinalError
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition

SHOWN_OBJECTS = 1000


@dataclass(frozen=True)
class NamedObject:
    """An object of the other sink. Its name has the first or the last offset of its records."""

    key: str
    offset: int
    last: bool = False


@dataclass(frozen=True)
class Evidence:
    """What the other sink left behind of one partition."""

    committed: int | None = None
    """By the consumer group: the next offset to read."""
    indexed: int | None = None
    """By Lenses' index object: the offset after the last one that is written."""
    pending: bool = False
    """Whether Lenses' index object says that an upload is under way."""
    ahead: int | None = None
    """By the index objects of single folders: the offset after the last one that any of them has."""
    objects: tuple[NamedObject, ...] = ()


@dataclass(frozen=True)
class PartitionStart:
    topic: str
    partition: int
    offset: int
    by: str
    """What the offset is from."""
    repeated: tuple[int, int | None] | None = None
    """Offsets that the other sink may have written already and this one writes again. The end may be unknown."""
    missing: tuple[int, int] | None = None
    """Offsets that neither of both writes: Kafka has removed them."""
    objects: tuple[str, ...] = ()
    """Keys of the objects with repeated offsets."""
    deletable: bool = False
    """Whether these objects hold only offsets that this sink writes again."""
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return self.repeated is None and self.missing is None and not self.notes

    def to_doc(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "by": self.by,
            "repeated": None if self.repeated is None else {"from": self.repeated[0], "to": self.repeated[1]},
            "missing": None if self.missing is None else {"from": self.missing[0], "to": self.missing[1]},
            "objects": list(self.objects[:SHOWN_OBJECTS]),
            "deletable": self.deletable,
            "notes": list(self.notes),
        }


def starts(
    evidence: Mapping[TopicPartition, Evidence], kafka: Mapping[TopicPartition, Offsets]
) -> tuple[PartitionStart, ...]:
    return tuple(_start(at, evidence.get(at, Evidence()), kafka[at]) for at in sorted(kafka))


def _start(at: TopicPartition, found: Evidence, kafka: Offsets) -> PartitionStart:
    name = f"{at[0]}-{at[1]}"
    by = "index object" if found.indexed is not None else "consumer group"
    base = found.indexed if found.indexed is not None else found.committed
    if base is None:
        return _without_position(at, found, kafka)
    if base > kafka.end:
        raise FinalError(
            f"{name}: the {by} is at offset {base}, and the topic ends at {kafka.end}. It was recreated or cut: start"
            " this sink without takeover, with startingOffsets of your choice",
            reason="TakeoverPosition",
        )
    offset = max(base, kafka.earliest)
    missing = (base, kafka.earliest) if base < kafka.earliest else None
    beyond = [one for one in found.objects if one.offset >= base]
    ends = [one.offset + 1 if one.last else None for one in beyond]
    if found.ahead is not None and found.ahead > base:
        ends.append(found.ahead)
    repeated = None
    if ends:
        known = [end for end in ends if end is not None]
        repeated = (base, max(known) if len(known) == len(ends) else None)
    return PartitionStart(
        *(*at, offset, by, repeated, missing),
        objects=tuple(one.key for one in beyond),
        # An object that is named by its last offset may begin before.
        deletable=bool(beyond) and found.ahead is None and not any(one.last for one in beyond),
        notes=_notes(found, base),
    )


def _without_position(at: TopicPartition, found: Evidence, kafka: Offsets) -> PartitionStart:
    """The other sink never committed here. With objects it did write, and nobody knows up to where."""
    by = "nothing committed: the earliest offset"
    if not found.objects:
        return PartitionStart(*at, kafka.earliest, by)
    first = min(one.offset for one in found.objects)
    keys = tuple(one.key for one in found.objects)
    return PartitionStart(*at, kafka.earliest, by, (min(first, kafka.earliest), None), None, keys)


def _notes(found: Evidence, base: int) -> tuple[str, ...]:
    notes = []
    if found.pending:
        notes.append("its index object says that an upload is under way: start the connector once more and stop it")
    if found.indexed is not None and found.committed is not None and found.committed > found.indexed:
        notes.append(
            f"the consumer group is at {found.committed}, beyond the index object at {base}:"
            " the connector itself would go on by the index, and so does this sink"
        )
    return tuple(notes)
