"""What became of one offset, by state and flush manifests alone. No object and no record is read.

A manifest is read at a time, from the newest on, until one covers the offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from s3sink_job.base.times import iso
from s3sink_job.flush.ending_offsets import fixed_ends
from s3sink_job.flush.manifest import STAGED, Gap, GapReason, Manifest, ObjectEntry, SliceEntry
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import PartitionGeneration, WrittenObject, with_types
from s3sink_job.task.encoding_documents import encoding_from_doc
from s3sink_job.task.letter_objects import letter_encoding

NO_RECORD = "no record to write: a transaction marker, an aborted or compacted record, or a skipped tombstone"


class Outcome(StrEnum):
    """What a record can become."""

    IN_OBJECT = "InObject"
    SKIPPED = "Skipped"
    DEAD_LETTER = "DeadLetter"
    GAP = "Gap"
    NO_RECORD = "NoRecord"
    FILTERED = "Filtered"
    """The transform left it out."""
    NOT_WRITTEN = "NotWritten"
    BEFORE_START = "BeforeStart"
    NOT_READ = "NotRead"
    """The sink does not read this topic, partition or generation."""
    REMOVED = "Removed"
    """It was in an object that a full refresh replaced."""
    UNDECIDED = "Undecided"
    """In one of several objects, and neither they nor Kafka tell in which."""


@dataclass(frozen=True)
class Location:
    outcome: Outcome
    text: str
    flush: Manifest | None = None
    """The flush that covers the offset."""
    part: SliceEntry | None = None
    objects: tuple[WrittenObject, ...] = ()
    """Those whose offsets span it. Only one of them holds the record."""


def locate(state: SinkState, manifests: Iterable[Manifest], place: PartitionGeneration, offset: int) -> Location:
    """`manifests` come from the newest to the oldest."""
    return _outside(state, place, offset) or _Search(state, place, offset).run(manifests)


def _outside(state: SinkState, place: PartitionGeneration, offset: int) -> Location | None:
    """Before the start or after the committed offset, or nothing that the sink reads."""
    topic = state.topics.get(place.topic)
    if topic is None:
        return Location(Outcome.NOT_READ, f"the sink has not read a topic {place.topic}")
    if place.generation > topic.generation:
        return Location(Outcome.NOT_READ, f"{place.topic} is at generation {topic.generation}")
    if place.generation < topic.generation:
        return None
    known = topic.partitions.get(place.partition)
    if known is None:
        return Location(Outcome.NOT_READ, f"the sink has not found a partition {place.partition} of {place.topic}")
    if offset < known.start:
        return Location(Outcome.BEFORE_START, f"the sink began at offset {known.start}, by startingOffsets or reset")
    if offset < known.offset:
        return None
    text = f"not written yet: the sink is at offset {known.offset}, which is {offset - known.offset} before it"
    end = (fixed_ends(state) or {}).get((place.topic, place.partition))
    if end is not None and offset >= end:
        text += f". The run ends at offset {end}, by endingOffsets"
    return Location(Outcome.NOT_WRITTEN, text)


class _Search:
    def __init__(self, state: SinkState, place: PartitionGeneration, offset: int) -> None:
        self._state, self._place, self._offset = state, place, offset
        self._replaced: set[str] = set()
        """Keys that a later flush wrote again or gave up."""
        self._objects: list[WrittenObject] = []
        self._letters: list[WrittenObject] = []
        """Objects of dead letters."""
        self._lost: tuple[Gap, Manifest] | None = None
        """The gap of a lost upload, which may have held the record."""

    def run(self, manifests: Iterable[Manifest]) -> Location:
        for manifest in manifests:
            if gap := next((g for g in manifest.gaps if self._covers(g, g.start, g.end)), None):
                if gap.reason != GapReason.UPLOAD_LOST:
                    return _gap(gap, manifest)
                self._lost = (gap, manifest)
            encoding = encoding_from_doc(manifest.encoding_of(self._place.topic))
            for entry in manifest.objects:
                if self._covers(entry, entry.first, entry.last + 1) and entry.key not in self._replaced:
                    if entry.letters == STAGED:
                        continue  # sent to the topic, and deleted
                    if entry.letters:
                        self._letters.append(WrittenObject(entry, letter_encoding(entry.letters)))
                    else:
                        self._objects.append(WrittenObject(entry, encoding))
            self._replaced |= set(manifest.replaces)
            if part := next((s for s in manifest.slices if self._covers(s, s.start, s.end)), None):
                return self._written(manifest, part)
        if self._lost:
            return _gap(*self._lost)
        if self._place.generation == self._generation_now:
            return Location(Outcome.UNDECIDED, "no flush covers it, though it is committed: run s3sink verify")
        return Location(Outcome.NOT_READ, f"generation {self._place.generation} ended before the sink read this offset")

    def _written(self, manifest: Manifest, part: SliceEntry) -> Location:
        if self._offset in part.skipped:
            text = f"a bad record, skipped by errors.records: Skip at {iso(manifest.committed_at)}"
            return Location(Outcome.SKIPPED, text, manifest, part)
        if self._offset in part.letters:
            where = f"to the topic {manifest.letter_topic.name}" if manifest.letter_topic else "to this object"
            text = f"a bad record, sent {where} as a dead letter: committed at {iso(manifest.committed_at)}"
            return Location(Outcome.DEAD_LETTER, text, manifest, part, tuple(self._letters))
        if self._objects:
            text = self._waiting(manifest) or f"committed at {iso(manifest.committed_at)}"
            objects = tuple(with_types(one, [part]) for one in self._objects)
            return Location(Outcome.IN_OBJECT, text, manifest, part, objects)
        if self._lost:
            return _gap(*self._lost)
        return Location(Outcome.NO_RECORD, NO_RECORD, manifest, part)

    def _waiting(self, manifest: Manifest) -> str:
        """Why the object may not be visible yet."""
        if self._state.publishing == manifest.name:
            return "committed and being published: the object becomes visible in a moment, or when the sink runs again"
        lost = {manifest.objects[number].key for number in self._state.lost.get(manifest.name, ())}
        if any(written.entry.key in lost for written in self._objects):
            return "committed, but an upload was lost: the sink writes the object again from Kafka"
        return ""

    @property
    def _generation_now(self) -> int:
        return self._state.topics[self._place.topic].generation

    def _covers(self, one: Gap | ObjectEntry | SliceEntry, start: int, end: int) -> bool:
        same = (one.topic, one.generation, one.partition) == self._place
        return same and start <= self._offset < end


def _gap(gap: Gap, manifest: Manifest) -> Location:
    text = f"in no object: recorded gap of the offsets {gap.start} to {gap.end - 1}, {gap.reason}, at {iso(gap.at)}"
    return Location(Outcome.GAP, text, manifest)
