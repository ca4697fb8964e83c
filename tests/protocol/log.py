"""Kafka as the sink sees it: topics with ids, logs of offsets with holes in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from s3sink_job.flush.contact import Topic
from s3sink_job.flush.plan import Offsets, TopicPartition

BAD = b"\xff"
"""A value that is not text: a record the sink has to leave out."""


@dataclass
class Log:
    """`written` remembers every record there ever was; `records` is what Kafka still has."""

    incarnation: str
    earliest: int = 0
    end: int = 0
    held: int | None = None
    """Where an open transaction keeps readers of committed records."""
    records: dict[int, bytes] = field(default_factory=dict)
    written: dict[int, bytes] = field(default_factory=dict)

    @property
    def stable(self) -> int:
        return self.end if self.held is None else self.held

    def append(self, count: int, *, hole: int, bad: bool) -> None:
        """Offsets of a hole are a transaction's markers or its aborted records."""
        self.end += hole
        for n in range(count):
            value = BAD if bad and n == 0 else f"{self.incarnation}/{self.end}".encode()
            self.records[self.end] = self.written[self.end] = value
            self.end += 1

    def retain_from(self, earliest: int) -> None:
        self.earliest = min(max(self.earliest, earliest), self.stable)
        self.records = {o: v for o, v in self.records.items() if o >= self.earliest}


class ModelKafka:
    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.logs: dict[int, Log] = {}
        self.past: dict[tuple[str, int], Log] = {}
        """Every log there ever was, by topic id and partition."""
        self._made = 0
        self.make(partitions)

    @property
    def id(self) -> str:
        return f"id{self._made}"

    def make(self, partitions: int) -> None:
        self._made += 1
        for _ in range(partitions):
            self.add_partition()

    def add_partition(self) -> None:
        partition = len(self.logs)
        self.logs[partition] = self.past[self.id, partition] = Log(f"{self.id}/{partition}")

    def delete(self) -> None:
        self.logs = {}

    def describe(self, topics: Iterable[str]) -> dict[str, Topic | None]:
        return {topic: Topic(self.id, tuple(self.logs)) if self.logs else None for topic in topics}

    def offsets(self, partitions: Iterable[TopicPartition], *, committed: bool) -> dict[TopicPartition, Offsets]:
        """Of the partitions that are there; KeyError if there is none."""
        wanted = list(partitions)
        found = {at: self.logs[at[1]] for at in wanted if at[1] in self.logs}
        if wanted and not found:
            raise KeyError(wanted[0])
        return {at: Offsets(o.earliest, o.stable if committed else o.end, o.end) for at, o in found.items()}

    def offsets_at(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """At a time that lies in the middle of every log; nothing is as new as that in a log without records."""
        middles = {p: (log.earliest + log.end) // 2 if log.records else None for p, log in self.logs.items()}
        return {at: middles[at[1]] for at in partitions}
