"""What a restore sends: which objects, in which order, to which partitions. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from s3sink_job.base.errors import FinalError
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration, PartitionHistory, WrittenObject
from s3sink_job.restore.record_order import interleaved, rows_of, runs_of
from s3sink_job.restore.recovery import recovery_of, stored_parts
from s3sink_job.shape.settings import RowKind

OBJECTS_NAMED = 3


@dataclass(frozen=True)
class Selection:
    """Which records. Empty and None mean all."""

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    generation: int | None = None
    """None for the last one of each topic."""
    since: int | None = None
    until: int | None = None
    """Times of records, in milliseconds; `until` is not included."""
    first: int | None = None
    end: int | None = None
    """Offsets; `end` is not included."""

    @property
    def by_offset(self) -> bool:
        return self.first is not None or self.end is not None

    def takes(self, written: WrittenObject) -> bool:
        """Whether the object may hold records with these offsets."""
        after = self.first is not None and written.entry.last < self.first
        return not after and not (self.end is not None and written.entry.first >= self.end)


@dataclass(frozen=True)
class RestoreSlice:
    """The records of one partition of a generation. One task sends them, in order."""

    place: PartitionGeneration
    topic: str
    """That they are sent to."""
    partition: int | None
    """None: Kafka's partitioner decides, by the key."""
    objects: tuple[WrittenObject, ...]
    left_out: frozenset[int] = frozenset()
    """Offsets of replayed records that are not sent: their dead letters are, which are the records as they were."""
    read: int = 0
    """Bytes of the records in Kafka, as far as manifests have counted them."""

    @property
    def rows(self) -> int:
        return rows_of(self.objects)

    def __str__(self) -> str:
        return str(self.place)


@dataclass(frozen=True)
class RestorePlan:
    slices: tuple[RestoreSlice, ...]
    losses: tuple[str, ...] = ()
    """What records lose, in words: before anything is sent, somebody has to accept that."""
    absent: tuple[str, ...] = ()
    """Records that are in no object, in words."""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.slices)

    @property
    def objects(self) -> int:
        return sum(len(part.objects) for part in self.slices)

    @property
    def topics(self) -> dict[str, int]:
        """By target: how many partitions it needs."""
        found: dict[str, int] = {}
        for part in self.slices:
            found[part.topic] = max(found.get(part.topic, 1), part.place.partition + 1)
        return found

    @property
    def by_key(self) -> bool:
        return any(part.partition is None for part in self.slices)


@dataclass
class _Findings:
    losses: Counter[str] = field(default_factory=Counter)
    refused: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By reason: keys of objects."""
    unordered: list[str] = field(default_factory=list)


def make_plan(
    history: FlushHistory, selection: Selection, targets: Mapping[str, str], *, by_key: bool = False
) -> RestorePlan:
    """`targets`: by topic, where its records go; a topic of the same name if it is not there."""
    places = list(_places(history, selection))
    _refuse_unknown(history, selection, targets)
    _refuse_shared_targets(places, targets)
    findings, slices = _Findings(), []
    for place in places:
        known = history.of(place)
        objects, left_out = _objects(known)
        wanted = tuple(written for written in objects if selection.takes(written))
        _examine(wanted, selection, findings)
        if wanted:
            target = targets.get(place.topic, place.topic)
            read = sum(part.read for part in known.slices)
            slices.append(RestoreSlice(place, target, None if by_key else place.partition, wanted, left_out, read))
    for why, keys in findings.refused.items():
        raise FinalError(f"{len(keys):,} objects cannot be restored ({_some(keys)}): {why}", reason="NotRestorable")
    return RestorePlan(tuple(slices), _losses(findings), tuple(_absent(history, places)))


def _places(history: FlushHistory, selection: Selection) -> Iterator[PartitionGeneration]:
    last: dict[str, int] = {}
    for place in history.partitions:
        last[place.topic] = max(last.get(place.topic, 0), place.generation)
    for place in sorted(history.partitions):
        chosen = place.generation == (selection.generation or last[place.topic])
        named = not selection.topics or place.topic in selection.topics
        if chosen and named and (not selection.partitions or place.partition in selection.partitions):
            yield place


def _refuse_unknown(history: FlushHistory, selection: Selection, targets: Mapping[str, str]) -> None:
    known = {place.topic for place in history.partitions}
    for topic in (*selection.topics, *targets):
        if topic not in known:
            has = ", ".join(sorted(known)) or "none"
            raise FinalError(f"the sink has written nothing of a topic {topic}; it has: {has}", reason="NotRead")


def _refuse_shared_targets(places: list[PartitionGeneration], targets: Mapping[str, str]) -> None:
    sources: dict[str, set[str]] = defaultdict(set)
    for place in places:
        sources[targets.get(place.topic, place.topic)].add(place.topic)
    for target, topics in sources.items():
        if len(topics) > 1:
            raise FinalError(
                f"{' and '.join(sorted(topics))} would both be restored into {target}, where their records would mix. "
                "Give each a topic of its own with --to-topic",
                reason="TargetShared",
            )


def _objects(known: PartitionHistory) -> tuple[list[WrittenObject], frozenset[int]]:
    """Data and dead letters; replayed records only where their dead letters are in no object."""
    replayed = [o for o in known.replayed if not known.letters.issuperset(o.entry.offsets)]
    offsets = {offset for o in replayed for offset in o.entry.offsets}
    return [*known.objects, *replayed], frozenset(offsets & known.letters)


def _examine(objects: tuple[WrittenObject, ...], selection: Selection, findings: _Findings) -> None:
    for written in objects:
        if written.entry.letters:
            continue
        recovery = recovery_of(written.encoding)
        if recovery.refused:
            findings.refused[recovery.refused].append(written.entry.key)
        elif selection.by_offset and not holds_offsets(written):
            findings.refused["its rows have no offsets, so --offsets cannot select among them"].append(
                written.entry.key
            )
        findings.losses.update(recovery.losses)
    for run in runs_of(objects):
        findings.unordered += [entry.key for entry in interleaved(run, holds_offsets)]


def holds_offsets(written: WrittenObject) -> bool:
    entry, encoding = written.entry, written.encoding
    own = encoding.format.rows is RowKind.VALUES or "offset" in stored_parts(encoding)
    return bool(entry.letters or entry.offsets or own)


def _losses(findings: _Findings) -> tuple[str, ...]:
    losses = [f"{count:,} objects: {text}" for text, count in findings.losses.items()]
    if keys := findings.unordered:
        losses.append(
            f"{len(keys):,} objects: their rows have no offsets and interleave with other objects, so the order of "
            f"records is lost ({_some(keys)})"
        )
    return tuple(losses)


def _absent(history: FlushHistory, places: list[PartitionGeneration]) -> Iterator[str]:
    own = [history.of(place) for place in places]
    if skipped := sum(len(part.skipped) for known in own for part in known.slices):
        yield f"{skipped:,} bad records that the sink skipped"
    replayed = {(at, n) for at, known in enumerate(own) for o in known.replayed for n in o.entry.offsets}
    sent = {(at, n) for at, known in enumerate(own) for one in known.sent for n in one.offsets}
    if left := len(sent - replayed):
        yield f"{left:,} dead letters that went to a topic"
    if gaps := sum(gap.end - gap.start for known in own for gap in known.gaps):
        yield f"{gaps:,} offsets in recorded gaps"


def _some(keys: list[str]) -> str:
    more = f" and {len(keys) - OBJECTS_NAMED:,} more" if len(keys) > OBJECTS_NAMED else ""
    return ", ".join(keys[:OBJECTS_NAMED]) + more
