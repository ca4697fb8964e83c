"""Partitions that wait after a failure, each for a while of its own, so that the others go on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.problem import Problem
from s3sink_job.spec import Retries

LOOK_AGAIN = 30.0
"""Seconds until a cause that only a person can mend is looked at again."""


def backoff(retries: Retries, attempts: int) -> float:
    """Seconds until the next attempt: doubling from `backoff`, capped, spread so that drivers do not meet."""
    return min(retries.max_backoff, retries.backoff * 2.0 ** min(attempts - 1, 30)) * random.uniform(0.5, 1.0)


@dataclass(frozen=True)
class Hold:
    """When the partition is tried again, and why it waits. No attempts: a person must act."""

    until: float
    attempts: int
    problem: Problem


@dataclass
class Holds:
    retries: Retries
    clock: Callable[[], float]
    ends: bool = False
    """Whether the run ends: then what was tried often enough, or waits for a person, is not tried again."""
    _holds: dict[TopicPartition, Hold] = field(default_factory=dict)

    def hold(self, at: TopicPartition, problem: Problem, *, retryable: bool) -> float:
        """Returns when it is tried again."""
        before = self._holds.get(at)
        attempts = (before.attempts if before else 0) + 1 if retryable else 0
        until = self.clock() + (backoff(self.retries, attempts) if attempts else LOOK_AGAIN)
        over = self.ends and not 0 < attempts <= self.retries.max
        self._holds[at] = Hold(math.inf if over else until, attempts, problem)
        return until

    def drop(self, at: TopicPartition) -> None:
        self._holds.pop(at, None)

    def keep_only(self, partitions: Iterable[TopicPartition]) -> None:
        kept = set(partitions)
        self._holds = {at: hold for at, hold in self._holds.items() if at in kept}

    def held(self, at: TopicPartition) -> bool:
        return at in self._holds and self.clock() < self._holds[at].until

    def will_retry(self, at: TopicPartition) -> bool:
        hold = self._holds.get(at)
        return hold is not None and 0 < hold.attempts <= self.retries.max

    def may_pass(self, at: TopicPartition) -> bool:
        """Whether the cause may go away by itself."""
        return at in self._holds and self._holds[at].attempts > 0

    @property
    def until(self) -> dict[TopicPartition, float]:
        return {at: hold.until for at, hold in self._holds.items()}

    @property
    def problems(self) -> dict[TopicPartition, Problem]:
        return {at: hold.problem for at, hold in self._holds.items()}
