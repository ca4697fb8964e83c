"""Partitions that Kafka does not return offsets for, such as those without a leader.

The answer to a request for many partitions waits for the last of them. One that never answers would delay all others
until the client's timeout, at every observation. So it is requested separately, with backoff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3sink_job.flush.kafka_metadata import TopicPartition

FIRST_WAIT, LONGEST_WAIT = 5.0, 60.0


class UnansweredPartitions:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[TopicPartition, tuple[float, float]] = {}
        """When it is requested again, and the wait before that."""

    def split(
        self, wanted: tuple[TopicPartition, ...]
    ) -> tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]:
        """Those that answered before, and those that did not and whose wait is over. The rest is not requested now."""
        now = self._clock()
        due = tuple(at for at in wanted if at in self._until and self._until[at][0] <= now)
        return tuple(at for at in wanted if at not in self._until), due

    def longest_wait(self, partitions: Iterable[TopicPartition]) -> float:
        return max(self._until[at][1] for at in partitions)

    def update(self, requested: Iterable[TopicPartition], answered: Iterable[TopicPartition]) -> None:
        found = set(answered)
        for at in requested:
            if at in found:
                self._until.pop(at, None)
                continue
            wait = min(LONGEST_WAIT, 2 * self._until[at][1]) if at in self._until else FIRST_WAIT
            self._until[at] = (self._clock() + wait, wait)
