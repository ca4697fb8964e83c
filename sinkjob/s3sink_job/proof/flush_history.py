"""Everything that was ever committed: the chain of flush manifests, sorted by partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from s3sink_job.flush.manifest import STAGED, Gap, LetterTopicEntry, Manifest, ObjectEntry, SliceEntry
from s3sink_job.task.encoding import Encoding
from s3sink_job.task.encoding_documents import encoding_from_doc
from s3sink_job.task.letter_objects import letter_encoding


class PartitionGeneration(NamedTuple):
    """A partition of one generation of its topic. Offsets are unique only within it."""

    topic: str
    generation: int
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class WrittenObject:
    entry: ObjectEntry
    encoding: Encoding
    schema: str = ""
    """Name of the schema it was written by, where the object does not hold the types of its columns."""


class FilteredRange(NamedTuple):
    """A slice whose transform may have left records out."""

    start: int
    end: int
    filtered: int
    """How many."""
    encoding: Encoding


class SentLetters(NamedTuple):
    """Dead letters of one slice that went to a topic."""

    topic: LetterTopicEntry
    flush: int
    offsets: tuple[int, ...]


@dataclass
class PartitionHistory:
    slices: list[SliceEntry] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    objects: list[WrittenObject] = field(default_factory=list)
    """In the order of their first offsets, with those of dead letters."""
    replayed: list[WrittenObject] = field(default_factory=list)
    """Objects of dead letters that were replayed. Their offsets lie between those of other objects."""
    without_tombstones: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of offsets whose tombstones were left out."""
    sent: list[SentLetters] = field(default_factory=list)
    filters: list[FilteredRange] = field(default_factory=list)

    @property
    def left_out(self) -> set[int]:
        """Offsets of bad records that are in no object: they were skipped, or sent to a topic."""
        skipped = {offset for part in self.slices for offset in part.skipped}
        return skipped.union(*(one.offsets for one in self.sent))

    @property
    def ever_letters(self) -> set[int]:
        """Offsets of all dead letters, whatever became of them since."""
        return {offset for part in self.slices for offset in part.letters}

    @property
    def letters(self) -> set[int]:
        """Offsets of dead letters in objects."""
        return self.ever_letters.difference(*(one.offsets for one in self.sent))


@dataclass(frozen=True)
class FlushHistory:
    partitions: Mapping[PartitionGeneration, PartitionHistory]
    flushes: frozenset[str]
    """The names of the manifests."""

    def of(self, partition: PartitionGeneration) -> PartitionHistory:
        return self.partitions.get(partition, PartitionHistory())

    @property
    def objects(self) -> Iterator[WrittenObject]:
        return (written for history in self.partitions.values() for written in (*history.objects, *history.replayed))

    @property
    def gaps(self) -> list[Gap]:
        return [gap for history in self.partitions.values() for gap in history.gaps]

    @property
    def replayed(self) -> int:
        """Dead letters that are in objects by now."""
        objects = (written for history in self.partitions.values() for written in history.replayed)
        return sum(len(written.entry.offsets) for written in objects)

    @property
    def skipped(self) -> int:
        return sum(len(part.skipped) for history in self.partitions.values() for part in history.slices)

    @property
    def filtered(self) -> int:
        """Records that the transform left out."""
        return sum(part.filtered for history in self.partitions.values() for part in history.slices)


def read_history(manifests: Iterable[Manifest]) -> FlushHistory:
    """Of manifests from the newest to the oldest."""
    partitions: dict[PartitionGeneration, PartitionHistory] = defaultdict(PartitionHistory)
    schemas = _SchemaChanges()
    flushes, replaced = set(), set()
    for manifest in manifests:
        flushes.add(manifest.name)
        encodings = _encodings(manifest)
        for part in manifest.slices:
            history = partitions[PartitionGeneration(part.topic, part.generation, part.partition)]
            history.slices.append(part)
            if manifest.letter_topic is not None and part.letters:
                history.sent.append(SentLetters(manifest.letter_topic, manifest.number, part.letters))
            encoding = encodings[part.topic]
            if encoding.shape.nulls == "Skip":
                history.without_tombstones.append((part.start, part.end))
            if encoding.transform is not None and encoding.transform.drops:
                found = encoding.with_input_types(part.inputs)
                history.filters.append(FilteredRange(part.start, part.end, part.filtered, found))
        for gap in manifest.gaps:
            partitions[PartitionGeneration(gap.topic, gap.generation, gap.partition)].gaps.append(gap)
        for entry in manifest.objects:
            if entry.key not in replaced and entry.letters != STAGED:
                history = partitions[PartitionGeneration(entry.topic, entry.generation, entry.partition)]
                encoding = letter_encoding(entry.letters) if entry.letters else encodings[entry.topic]
                (history.replayed if entry.offsets else history.objects).append(WrittenObject(entry, encoding))
                schemas.wrote(entry, manifest.number)
        schemas.changed(manifest)
        # A later flush wrote these objects again: here they no longer count.
        replaced |= set(manifest.replaces)
    for history in partitions.values():
        for objects in (history.objects, history.replayed):
            objects[:] = [replace(with_types(o, history.slices), schema=schemas.of(o)) for o in objects]
            objects.sort(key=lambda o: o.entry.first)
    return FlushHistory(dict(partitions), frozenset(flushes))


def with_types(written: WrittenObject, slices: Iterable[SliceEntry]) -> WrittenObject:
    """With the types that the transform of its slice was evaluated with."""
    if written.encoding.transform is None:
        return written
    first = written.entry.first
    inputs = next((part.inputs for part in slices if part.start <= first < part.end), ())
    return replace(written, encoding=written.encoding.with_input_types(inputs))


def _encodings(manifest: Manifest) -> dict[str, Encoding]:
    topics = {part.topic for part in manifest.slices} | {entry.topic for entry in manifest.objects}
    return {topic: encoding_from_doc(manifest.encoding_of(topic)) for topic in topics}


class _SchemaChanges:
    """Which schema a topic had when an object was written. Manifests come from the newest to the oldest."""

    def __init__(self) -> None:
        self._flush_of: dict[str, int] = {}
        self._changes: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def wrote(self, entry: ObjectEntry, flush: int) -> None:
        self._flush_of[entry.key] = flush

    def changed(self, manifest: Manifest) -> None:
        for topic, schema in manifest.schemas.items():
            self._changes[topic].append((manifest.number, schema))

    def of(self, written: WrittenObject) -> str:
        if written.entry.letters or written.encoding.format.keeps_types:
            return ""
        flush = self._flush_of[written.entry.key]
        return next((name for at, name in self._changes[written.entry.topic] if at <= flush), "")
