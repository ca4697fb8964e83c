"""The state of a sink: the one source of truth.

Only the swap of the state object commits anything. The ledger sets `revision` and `writer` on what it writes, so that a
read-back shows whether the state is its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.manifest import Gap, LastLetter


@dataclass(frozen=True)
class Owner:
    cluster: str
    namespace: str
    name: str
    uid: str = ""

    def same_sink(self, other: Owner) -> bool:
        """Whatever the uid: a resource that is deleted and applied again resumes from its state."""
        return (self.cluster, self.namespace, self.name) == (other.cluster, other.namespace, other.name)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Resource:
    """The resource that the driver was started for. A later one has a later creation time or a higher generation."""

    uid: str
    created: str
    """As Kubernetes writes it, RFC 3339 in UTC: texts compare as times do."""
    generation: int

    def older_than(self, other: Resource) -> bool:
        return (self.created, self.generation) < (other.created, other.generation)

    def __str__(self) -> str:
        return f"generation {self.generation} (created {self.created}, uid {self.uid})"


@dataclass(frozen=True)
class TruncatedLog:
    """A log that lost committed records."""

    first_difference: int | None
    """The first offset at which the log differs from the one that was read; None where the broker cannot tell."""
    found_at: float


@dataclass(frozen=True)
class Truncation:
    """A truncated log that was read again in the next generation, because onDataLoss is Skip."""

    topic: str
    partition: int
    generation: int
    committed: int
    resumed: int
    at: float


@dataclass(frozen=True)
class PartitionState:
    start: int
    """Where this generation began."""
    offset: int
    """The committed offset: the next one to write."""
    flushed_at: float
    """The time of the last commit."""
    waiting_since: float | None = None
    """Since when the rest that the last flush left has been due; None if it left nothing."""
    written_per_offset: float | None = None
    read_per_offset: float | None = None
    """Bytes, as measured by earlier flushes; None before the first."""
    leader_epoch: int | None = None
    """Of the leader whose log had everything below `offset`; None where the broker does not report it."""
    truncated_log: TruncatedLog | None = None
    """Set while the partition is stopped because its log was truncated below `offset`."""


@dataclass(frozen=True)
class TopicState:
    id: str
    """Empty where the broker has no topic ids."""
    generation: int = 1
    partitions: Mapping[int, PartitionState] = field(default_factory=dict)
    schema: str = ""
    """The name of the inferred schema, if there is one. A schema only ever widens."""


@dataclass(frozen=True)
class Totals:
    records: int = 0
    bytes: int = 0
    objects: int = 0
    skipped: int = 0
    gaps: int = 0
    gap_offsets: int = 0

    def since(self, earlier: Totals) -> Totals:
        """Records, bytes and objects that came after it."""
        return Totals(self.records - earlier.records, self.bytes - earlier.bytes, self.objects - earlier.objects)


@dataclass(frozen=True)
class LetterTotals:
    """Dead letters since the first start, and the last one with the time of its commit."""

    count: int = 0
    last: LastLetter | None = None
    at: float = 0.0


@dataclass(frozen=True)
class ResetDone:
    nonce: str
    at: float


@dataclass(frozen=True)
class TopicEnd:
    id: str
    """Of the topic whose offsets these are; empty where the broker has no topic ids."""
    offsets: Mapping[int, int]
    """By partition: the first offset that the run does not write."""


@dataclass(frozen=True)
class FixedEnd:
    """Where a run with endingOffsets ends."""

    wanted: str
    """What the manifest said. The end holds only for that."""
    at: float
    topics: Mapping[str, TopicEnd]


class RefreshPhase(StrEnum):
    WRITING = "Writing"
    """Flushes are committed, and nothing of them is visible. The former objects are the current ones."""
    PUBLISHING = "Publishing"
    """Everything is written. The flushes become visible one by one, beside the former objects."""
    REMOVING = "Removing"
    """The new objects are the current ones, and the former ones are removed."""
    DONE = "Done"


@dataclass(frozen=True)
class Refresh:
    """The last run of `mode: FullRefresh`."""

    run: str
    """Its id; empty if the run was abandoned."""
    number: int
    """Runs since the first start, abandoned ones included."""
    phase: RefreshPhase
    began: float
    since: str | None
    """The last flush before the run. The flushes after it are the run's."""
    cursor: str | None = None
    """While publishing: the last flush that is published. While removing: the flush whose objects are removed next."""
    replaced: str | None = None
    """The last flush that was replaced. Neither its objects nor those of the flushes before it are there."""
    former: Mapping[str, TopicState] = field(default_factory=dict)
    """The topics as they were before the run, until it is current. A run that is abandoned goes back to them."""
    generations: Mapping[str, int] = field(default_factory=dict)
    """Of the topics that the run reads, when it began."""
    totals: Totals = Totals()
    """When the run began."""
    totals_replaced: Totals = Totals()
    """Of the flushes up to `replaced`."""
    replays: str | None = None
    """The last flush of a replay whose objects an earlier run removed, or this one once done."""
    replays_until: str | None = None
    """The last flush of a replay whose objects this run removes."""
    current_at: float | None = None
    """When the run became current; None before."""
    unremoved: int = 0
    """Former objects that the store refused to delete."""

    @property
    def unfinished(self) -> bool:
        return self.phase is not RefreshPhase.DONE


@dataclass(frozen=True)
class SinkState:
    owner: Owner
    epoch: int = 0
    revision: int = 0
    writer: str = ""
    flush: int = 0
    last: str | None = None
    """The manifest of the last committed flush."""
    publishing: str | None = None
    contacted: bool = False
    """Whether starting offsets were stored. A topic or partition found later begins at its earliest offset."""
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    totals: Totals = Totals()
    recent_gaps: tuple[Gap, ...] = ()
    stamp: int = 0
    """Milliseconds: the time in names and folders of the last flush. That of the next flush is always later."""
    resets: tuple[ResetDone, ...] = ()
    """Those that were done, the last one last."""
    resource: Resource | None = None
    """The newest resource that a driver ran for; None if drivers ran without Kubernetes."""
    lost: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By flush: the objects to write again, because somebody aborted their uploads."""
    truncations: tuple[Truncation, ...] = ()
    end: FixedEnd | None = None
    """None in a run without endingOffsets."""
    letters: LetterTotals = LetterTotals()
    refresh: Refresh | None = None
    """None before the first run of `mode: FullRefresh`."""
    filtered: int = 0
    """Records that the transform left out since the first start."""

    def offset(self, topic: str, partition: int) -> int:
        return self.topics[topic].partitions[partition].offset


def partition_of(state: SinkState, at: TopicPartition) -> PartitionState:
    return state.topics[at[0]].partitions[at[1]]


def same_topic(one: str, other: str) -> bool:
    """Whether two topic ids may be of the same topic. An unknown id matches any."""
    return not one or not other or one == other
