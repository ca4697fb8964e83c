"""Partitions that an open transaction holds up: the sink is at the last stable offset, and that does not move."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import State
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.transactions import holding

STUCK_AFTER = 10.0
"""Seconds: most transactions are shorter."""
ASK_EVERY = 30.0
ASKED_AT_ONCE = 20


class Held:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self._asked: float | None = None
        self._about: TopicPartition | None = None
        self._text = ""

    def look(self, admin: Callable[[], Admin], state: State, seen: Mapping[TopicPartition, Offsets]) -> Problem | None:
        """Names the transaction behind which a partition has waited longest; None while none waits for long."""
        now = self._clock()
        stuck = self._stuck(state, seen, now)
        if not stuck:
            return None
        if self._asked is None or not 0 <= now - self._asked < ASK_EVERY:
            self._asked, self._about, self._text = now, None, ""
            for found in holding(admin(), stuck[:ASKED_AT_ONCE])[:1]:
                self._about, self._text = found.at, found.words(admin().servers)
        if self._about not in stuck:
            return None
        more = f" (and {len(stuck) - 1} more partitions wait)" if len(stuck) > 1 else ""
        return Problem("OpenTransaction", self._text + more)

    def _stuck(self, state: State, seen: Mapping[TopicPartition, Offsets], now: float) -> list[TopicPartition]:
        """Those that have waited for long, the longest first."""
        since = {}
        for at, offsets in seen.items():
            if state.offset(*at) >= offsets.stable < offsets.end:
                before = self._since.get(at)
                since[at] = before if before and before[0] == offsets.stable else (offsets.stable, now)
        self._since = since
        stuck = [at for at, (_, begun) in since.items() if now - begun >= STUCK_AFTER]
        return sorted(stuck, key=lambda at: since[at][1])
