"""Partitions that Kafka does not answer for, such as those without a leader.

A question about many partitions is answered when the last of them is. One that stays silent would hold up all the
others until the client gives up, at every look: so it is asked for by itself, and less often the longer it is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3sink_job.flush.plan import TopicPartition

FIRST_WAIT, LONGEST_WAIT = 5.0, 60.0


class Silent:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[TopicPartition, tuple[float, float]] = {}
        """When it is asked for again, and how long it waited for that."""

    def split(
        self, wanted: tuple[TopicPartition, ...]
    ) -> tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]:
        """Those that answer, and those that did not and whose turn has come. The rest is not asked for now."""
        now = self._clock()
        due = tuple(at for at in wanted if at in self._until and self._until[at][0] <= now)
        return tuple(at for at in wanted if at not in self._until), due

    def waited(self, partitions: Iterable[TopicPartition]) -> float:
        """How long the longest silent of them had to wait for its turn."""
        return max(self._until[at][1] for at in partitions)

    def heard(self, asked: Iterable[TopicPartition], answered: Iterable[TopicPartition]) -> None:
        told = set(answered)
        for at in asked:
            if at in told:
                self._until.pop(at, None)
                continue
            wait = min(LONGEST_WAIT, 2 * self._until[at][1]) if at in self._until else FIRST_WAIT
            self._until[at] = (self._clock() + wait, wait)
