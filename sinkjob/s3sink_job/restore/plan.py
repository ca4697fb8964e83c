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
NO_SELECTION = "their rows have no offsets, so --offsets cannot select among them"
NO_BOUND = "their rows have no offsets, and a later generation has some of them; use --generation"


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
    bounds: Mapping[str, int] = field(default_factory=dict)
    """By key of an object of an earlier generation: the first of its offsets that a later generation has instead."""
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
    history: FlushHistory,
    selection: Selection,
    targets: Mapping[str, str],
    logs: Mapping[tuple[str, int], str],
    *,
    by_key: bool = False,
) -> RestorePlan:
    """`targets`: by topic, where its records go; a topic of the same name if it is not there.

    `logs`: by topic and generation, the id of the topic that was read.
    """
    _refuse_unknown(history, selection, targets)
    chosen = {at: places for at, places in _partitions(history, logs, selection).items() if places}
    _refuse_shared_targets({topic for topic, _ in chosen}, targets)
    findings, slices, places = _Findings(), [], []
    for (topic, partition), own in sorted(chosen.items()):
        places += own
        objects, bounds, left_out = _objects([history.of(place) for place in own])
        wanted = tuple(written for written in objects if selection.takes(written))
        _examine(wanted, bounds, selection, findings)
        if wanted:
            read = sum(part.read for place in own for part in history.of(place).slices)
            number = None if by_key else partition
            target = targets.get(topic, topic)
            slices.append(RestoreSlice(own[-1], target, number, wanted, bounds, left_out, read))
    for why, keys in findings.refused.items():
        raise FinalError(f"{len(keys):,} objects cannot be restored ({_some(keys)}): {why}", reason="NotRestorable")
    absent = [*_absent([history.of(place) for place in places]), *_earlier(history, selection, chosen)]
    return RestorePlan(tuple(slices), _losses(findings), tuple(absent))


def _partitions(
    history: FlushHistory, logs: Mapping[tuple[str, int], str], selection: Selection
) -> dict[tuple[str, int], list[PartitionGeneration]]:
    """By partition: the generations that are restored, the oldest first.

    The last one of the topic, and earlier ones of the same log: an abandoned refresh or a truncated log begins a
    generation that goes on where the former one ended. That of a recreated topic has another log.
    """
    last: dict[str, int] = {}
    for place in history.partitions:
        last[place.topic] = max(last.get(place.topic, 0), place.generation)
    found: dict[tuple[str, int], list[PartitionGeneration]] = defaultdict(list)
    for place in sorted(history.partitions):
        if selection.topics and place.topic not in selection.topics:
            continue
        if selection.partitions and place.partition not in selection.partitions:
            continue
        log = logs.get((place.topic, last[place.topic]), "")
        same_log = bool(log) and logs.get((place.topic, place.generation)) == log
        if selection.generation is not None:
            wanted = place.generation == selection.generation
        else:
            wanted = place.generation == last[place.topic] or same_log
        if wanted:
            found[place.topic, place.partition].append(place)
    return found


def _refuse_unknown(history: FlushHistory, selection: Selection, targets: Mapping[str, str]) -> None:
    known = {place.topic for place in history.partitions}
    for topic in (*selection.topics, *targets):
        if topic not in known:
            has = ", ".join(sorted(known)) or "none"
            raise FinalError(f"the sink has written nothing of a topic {topic}; it has: {has}", reason="NotRead")


def _refuse_shared_targets(topics: set[str], targets: Mapping[str, str]) -> None:
    sources: dict[str, set[str]] = defaultdict(set)
    for topic in topics:
        sources[targets.get(topic, topic)].add(topic)
    for target, own in sources.items():
        if len(own) > 1:
            raise FinalError(
                f"{' and '.join(sorted(own))} would both be restored into {target}, where their records would mix. "
                "Give each a topic of its own with --to-topic",
                reason="TargetShared",
            )


def _objects(generations: list[PartitionHistory]) -> tuple[list[WrittenObject], dict[str, int], frozenset[int]]:
    """Data and dead letters; replayed records only where their dead letters are in no object.

    What a later generation has is taken from there: earlier ones count below its start.
    """
    found: list[WrittenObject] = []
    bounds: dict[str, int] = {}
    letters: set[int] = set()
    end: int | None = None
    for known in reversed(generations):
        replayed = [o for o in known.replayed if not known.letters.issuperset(o.entry.offsets)]
        for written in (*known.objects, *replayed):
            if end is None or written.entry.first < end:
                found.append(written)
                if end is not None and written.entry.last >= end:
                    bounds[written.entry.key] = end
        letters |= {offset for o in replayed for offset in o.entry.offsets} & known.letters
        starts = [part.start for part in known.slices]
        end = min([*starts, *([] if end is None else [end])], default=None)
    return sorted(found, key=lambda o: (o.entry.first, o.entry.last)), bounds, frozenset(letters)


def _examine(
    objects: tuple[WrittenObject, ...], bounds: Mapping[str, int], selection: Selection, findings: _Findings
) -> None:
    for written in objects:
        if written.entry.letters:
            continue
        recovery = recovery_of(written.encoding)
        if recovery.refused:
            findings.refused[recovery.refused].append(written.entry.key)
        elif selection.by_offset and not holds_offsets(written):
            findings.refused[NO_SELECTION].append(written.entry.key)
        elif written.entry.key in bounds and not holds_offsets(written):
            findings.refused[NO_BOUND].append(written.entry.key)
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


def _absent(own: list[PartitionHistory]) -> Iterator[str]:
    if skipped := sum(len(part.skipped) for known in own for part in known.slices):
        yield f"{skipped:,} bad records that the sink skipped"
    if filtered := sum(part.filtered for known in own for part in known.slices):
        yield f"{filtered:,} records that spec.transform left out"
    replayed = {(at, n) for at, known in enumerate(own) for o in known.replayed for n in o.entry.offsets}
    sent = {(at, n) for at, known in enumerate(own) for one in known.sent for n in one.offsets}
    if left := len(sent - replayed):
        yield f"{left:,} dead letters that went to a topic"
    if gaps := sum(gap.end - gap.start for known in own for gap in known.gaps):
        yield f"{gaps:,} offsets in recorded gaps"


def _earlier(
    history: FlushHistory, selection: Selection, chosen: Mapping[tuple[str, int], list[PartitionGeneration]]
) -> Iterator[str]:
    """Generations that are left out although nobody asked for one."""
    taken = {place for places in chosen.values() for place in places}
    topics = {topic for topic, _ in chosen}
    left = [p for p in history.partitions if p.topic in topics and p not in taken and history.of(p).objects]
    if selection.generation is None and not selection.partitions and left:
        numbers = ", ".join(map(str, sorted({place.generation for place in left})))
        count = sum(len(history.of(place).objects) for place in left)
        yield f"records of {count:,} objects of generation {numbers}, of earlier topics; --generation sends them"


def _some(keys: list[str]) -> str:
    more = f" and {len(keys) - OBJECTS_NAMED:,} more" if len(keys) > OBJECTS_NAMED else ""
    return ", ".join(keys[:OBJECTS_NAMED]) + more
