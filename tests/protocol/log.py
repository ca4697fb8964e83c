"""A model of Kafka: topics with ids, logs with gaps in their offsets, leaders that change and lose records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.truncation import OffsetValidation

BAD = b"\xff"
"""A value that is not text: a record the sink has to leave out."""


FIRST_ID = "id1"
Records = dict[int, bytes]


@dataclass
class Log:
    """`written`: every record that this branch ever had; `records`: what Kafka still has."""

    incarnation: str
    earliest: int = 0
    end: int = 0
    held: int | None = None
    """Where an open transaction keeps readers of committed records."""
    records: Records = field(default_factory=dict)
    written: Records = field(default_factory=dict)
    epoch: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """Each leader epoch, and the offset at which it began."""
    dead: list[tuple[int, Records]] = field(default_factory=list)
    """Branches that were cut off: the offset of the cut, and all that had been written until then."""

    @property
    def stable(self) -> int:
        return self.end if self.held is None else min(self.held, self.end)

    @property
    def branches(self) -> list[Records]:
        return [*(written for _, written in self.dead), self.written]

    def append(self, count: int, *, hole: int, bad: bool) -> None:
        """Offsets of a hole are a transaction's markers or its aborted records."""
        self.end += hole
        for n in range(count):
            name = f"{self.incarnation}/{self.end}" + (f"/{self.epoch}" if self.epoch else "")
            value = BAD if bad and n == 0 else name.encode()
            self.records[self.end] = self.written[self.end] = value
            self.end += 1

    def retain_from(self, earliest: int) -> None:
        self.earliest = min(max(self.earliest, earliest), self.stable)
        self.records = {o: v for o, v in self.records.items() if o >= self.earliest}

    def elect(self) -> None:
        """Another leader, whose log is the same."""
        self.epoch += 1
        self.epochs.append((self.epoch, self.end))

    def cut(self, end: int) -> None:
        """An unclean election: the new leader's log ends earlier."""
        end = max(self.earliest, min(end, self.end))
        self.dead.append((end, self.written))
        self.written = {o: v for o, v in self.written.items() if o < end}
        self.records = {o: v for o, v in self.records.items() if o < end}
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < end] or [(0, 0)]
        self.end, self.held = end, None
        self.elect()

    def diverged(self, offset: int, epoch: int) -> tuple[bool, int | None]:
        """Whether the log lost records below the offset that a leader of this epoch had, and from which offset on."""
        later = [start for known, start in self.epochs if known > epoch]
        if epoch > self.epoch:
            return True, None
        end = min(later, default=self.end)
        return end < offset, end


class ModelKafka:
    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.logs: dict[int, Log] = {}
        self.past: dict[tuple[str, int], Log] = {}
        """Every log there ever was, by topic id and partition."""
        self._made = 0
        self.tells_ids = True
        """Brokers before Kafka 2.8 have none."""
        self.hidden = False
        """Whether the topic may not be seen at the moment."""
        self.leaderless: set[int] = set()
        self.make(partitions)

    @property
    def id(self) -> str:
        return f"id{self._made}"

    def name(self, told: str) -> str:
        """The topic with an id of the state. Without ids there was only the first topic."""
        return told or FIRST_ID

    @property
    def told_id(self) -> str:
        return self.id if self.tells_ids else ""

    def make(self, partitions: int) -> None:
        self._made += 1
        for _ in range(partitions):
            self.add_partition()

    def add_partition(self) -> None:
        partition = len(self.logs)
        self.logs[partition] = self.past[self.id, partition] = Log(f"{self.id}/{partition}")

    def delete(self) -> None:
        self.logs, self.leaderless = {}, set()

    def describe(self, topics: Iterable[str]) -> dict[str, Topic | None]:
        there = (
            None if self.hidden or not self.logs else Topic(self.told_id, tuple(self.logs), frozenset(self.leaderless))
        )
        return dict.fromkeys(topics, there)

    def led(self) -> dict[int, Log]:
        """The logs with a leader."""
        return {partition: log for partition, log in self.logs.items() if partition not in self.leaderless}

    def offsets(self, partitions: Iterable[TopicPartition], *, committed: bool) -> dict[TopicPartition, Offsets]:
        """Of existing partitions; KeyError if there is none."""
        wanted = list(partitions)
        logs = self.led()
        found = {at: logs[at[1]] for at in wanted if at[1] in logs}
        if wanted and not found:
            raise KeyError(wanted[0])
        return {at: Offsets(o.earliest, o.stable if committed else o.end, o.end, o.epoch) for at, o in found.items()}

    def leader_epochs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        logs = self.led()
        return {at: logs[at[1]].epoch for at in partitions if at[1] in logs}

    def validate(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> OffsetValidation:
        logs = self.led()
        told = {at: logs[at[1]].diverged(*asked) for at, asked in offsets.items() if at[1] in logs}
        silent = dict.fromkeys(offsets.keys() - told.keys(), "no leader")
        return OffsetValidation({at: point for at, (lost, point) in told.items() if lost}, silent)

    def offsets_at(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """At a time in the middle of every log; None for a log without records."""
        middles = {p: (log.earliest + log.end) // 2 if log.records else None for p, log in self.logs.items()}
        return {at: middles[at[1]] for at in partitions}
