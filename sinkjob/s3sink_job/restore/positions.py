"""How far each slice is, as Kafka has it: offsets of a consumer group that every transaction of a restore writes.

The offset is the position after the last record that was sent; its metadata are the checksum of all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from py4j.protocol import Py4JJavaError

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.kafka.admin import Admin, root
from s3sink_job.report import logs
from s3sink_job.restore.checksums import Checksum, checksum_from_text
from s3sink_job.restore.plan import RestoreSlice

LOOKS, BETWEEN_LOOKS = 6, 0.5
"""How often brokers are asked for a position until it is taken for lost, and the seconds between."""


class StoredAt(NamedTuple):
    """Where the position of a slice is stored."""

    group: str
    at: TopicPartition


class Position(NamedTuple):
    row: int
    checksum: Checksum


@dataclass(frozen=True)
class Positions:
    admin: Admin
    name: str
    """Prefix of groups and transactional ids: unique for each restore."""
    slices: Sequence[RestoreSlice]
    partitions: Mapping[str, int]
    """By target topic. Kafka takes only offsets of partitions that exist."""

    @cached_property
    def places(self) -> list[StoredAt]:
        """One group is enough, unless a target has fewer partitions than the records had."""
        found = []
        for part in self.slices:
            group, partition = divmod(part.place.partition, self.partitions[part.topic])
            found.append(StoredAt(f"{self.name}.{group}", (part.topic, partition)))
        return found

    def transactional_id(self, number: int) -> str:
        part = self.slices[number]
        return f"{self.name}.{part.topic}.{part.place.partition}"

    def begin(self) -> None:
        """Sets all of them to the start. Only before anything is sent."""
        stored = self.admin.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        for group, places in self._by_group().items():
            wanted = self.admin.jvm.java.util.HashMap()
            for at in places:
                wanted.put(self.admin.partition(at), stored(0, Checksum().to_text()))
            with self._translating(group):
                self.admin.client.alterConsumerGroupOffsets(group, wanted).all().get()

    def read(self, *, stable: bool = True) -> list[Position]:
        """Refused if one is not there: it would be sent again. `stable` waits for transactions that are ending.

        A busy broker once left one out of its answer while a transaction ended. `ProgressLost` tells the user to delete
        the topic, so the brokers are asked again before it is raised.
        """
        for look in range(LOOKS):
            time.sleep(BETWEEN_LOOKS if look else 0)
            found = self._found(stable)
            missing = [place for place in self.places if place not in found]
            if not missing:
                return [found[place] for place in self.places]
        raise _lost(*missing[0])

    def _found(self, stable: bool) -> dict[StoredAt, Position]:
        found: dict[StoredAt, Position] = {}
        for group, places in self._by_group().items():
            options = self.admin.jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions()
            options.requireStable(stable)
            with self._translating(group):
                answer = self.admin.client.listConsumerGroupOffsets(group, options)
                offsets = answer.partitionsToOffsetAndMetadata().get()
            for at in places:
                if (stored := offsets.get(self.admin.partition(at))) is not None:
                    checksum = checksum_from_text(str(stored.metadata()))
                    found[StoredAt(group, at)] = Position(int(stored.offset()), checksum)
        return found

    def delete(self) -> None:
        """When nobody needs them any more. Best effort: Kafka removes them itself after a while."""
        try:
            self.admin.client.deleteConsumerGroups(self.admin.java_list(self._by_group())).all().get()
        except Py4JJavaError as error:
            logs.warning("could not delete the consumer group of the restore", group=self.name, cause=root(error))

    def _by_group(self) -> dict[str, list[TopicPartition]]:
        found: dict[str, list[TopicPartition]] = {}
        for place in self.places:
            found.setdefault(place.group, []).append(place.at)
        return found

    @contextmanager
    def _translating(self, group: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            if root(error) == "GroupIdNotFoundException":
                raise _lost(group, None) from None
            raise self.admin.translate(error, f"positions of the restore in group {group}") from None


def _lost(group: str, at: TopicPartition | None) -> S3SinkError:
    where = f" of {at[0]}-{at[1]}" if at else ""
    return FinalError(
        f"consumer group {group} has no position{where} any more: Kafka deletes those of unused groups after "
        "offsets.retention.minutes. What was sent after the last known position would be sent twice. Delete the "
        "topic, and run the same command again: it begins anew",
        reason="ProgressLost",
    )


def total_rows(positions: Iterable[Position]) -> int:
    return sum(position.row for position in positions)
