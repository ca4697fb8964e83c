"""Backoff by partition: one that failed waits, and the others continue."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from s3sink_api.spec import Retries
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.problem import Problem

RECHECK_AFTER = 30.0
"""Seconds until a cause that only a person can fix is checked again."""


def backoff(retries: Retries, attempts: int) -> float:
    """Seconds until the next attempt: doubling from `backoff` to `max_backoff`, with jitter."""
    return min(retries.max_backoff, retries.backoff * 2.0 ** min(attempts - 1, 30)) * random.uniform(0.5, 1.0)


@dataclass(frozen=True)
class Backoff:
    """When the partition is tried again, and why it waits. No attempts: a person must act."""

    since: float
    until: float
    attempts: int
    problem: Problem

    def end(self, now: float) -> float:
        """If the clock was set back, the backoff is over: else it would last until the clock is where it was."""
        return now if now < self.since and math.isfinite(self.until) else self.until


@dataclass
class PartitionBackoff:
    retries: Retries
    clock: Callable[[], float]
    ends: bool = False
    """Whether the run ends. Then a partition is not tried again after `retries.max`, or if a person must act."""
    _holds: dict[TopicPartition, Backoff] = field(default_factory=dict)

    def hold(self, at: TopicPartition, problem: Problem, *, retryable: bool) -> float:
        """Returns when the partition is tried again."""
        before = self._holds.get(at)
        attempts = (before.attempts if before else 0) + 1 if retryable else 0
        now = self.clock()
        until = now + (backoff(self.retries, attempts) if attempts else RECHECK_AFTER)
        over = self.ends and not 0 < attempts <= self.retries.max
        self._holds[at] = Backoff(now, math.inf if over else until, attempts, problem)
        return until

    def drop(self, at: TopicPartition) -> None:
        self._holds.pop(at, None)

    def keep_only(self, partitions: Iterable[TopicPartition]) -> None:
        kept = set(partitions)
        self._holds = {at: hold for at, hold in self._holds.items() if at in kept}

    def held(self, at: TopicPartition) -> bool:
        return at in self._holds and (now := self.clock()) < self._holds[at].end(now)

    def will_retry(self, at: TopicPartition) -> bool:
        hold = self._holds.get(at)
        return hold is not None and 0 < hold.attempts <= self.retries.max

    def may_pass(self, at: TopicPartition) -> bool:
        """Whether the cause may go away by itself."""
        return at in self._holds and self._holds[at].attempts > 0

    @property
    def until(self) -> dict[TopicPartition, float]:
        now = self.clock()
        return {at: hold.end(now) for at, hold in self._holds.items()}

    @property
    def problems(self) -> dict[TopicPartition, Problem]:
        return {at: hold.problem for at, hold in self._holds.items()}
