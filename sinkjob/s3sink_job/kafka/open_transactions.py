"""Partitions behind an open transaction: the sink is at the last stable offset, and that does not move."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import SinkState
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.transactions import first_open_transactions

STUCK_AFTER = 10.0
"""Seconds: most transactions are shorter."""
CHECK_EVERY = 30.0
PARTITIONS_CHECKED = 20


class OpenTransactionWatch:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self._checked: float | None = None
        self._about: TopicPartition | None = None
        self._text = ""

    def find(
        self, admin: Callable[[], Admin], state: SinkState, seen: Mapping[TopicPartition, Offsets]
    ) -> Problem | None:
        """The transaction behind which a partition has waited longest; None while no partition waits for long."""
        now = self._clock()
        stuck = self._stuck(state, seen, now)
        if not stuck:
            return None
        if self._checked is None or not 0 <= now - self._checked < CHECK_EVERY:
            self._checked, self._about, self._text = now, None, ""
            for found in first_open_transactions(admin(), stuck[:PARTITIONS_CHECKED])[:1]:
                self._about, self._text = found.at, found.describe(admin().servers)
        if self._about not in stuck:
            return None
        more = f" (and {len(stuck) - 1} more partitions wait)" if len(stuck) > 1 else ""
        return Problem("OpenTransaction", self._text + more)

    def _stuck(self, state: SinkState, seen: Mapping[TopicPartition, Offsets], now: float) -> list[TopicPartition]:
        """The longest waiting one first."""
        since = {}
        for at, offsets in seen.items():
            if state.offset(*at) >= offsets.stable < offsets.end:
                before = self._since.get(at)
                since[at] = before if before and before[0] == offsets.stable else (offsets.stable, now)
        self._since = since
        stuck = [at for at, (_, begun) in since.items() if now - begun >= STUCK_AFTER]
        return sorted(stuck, key=lambda at: since[at][1])
