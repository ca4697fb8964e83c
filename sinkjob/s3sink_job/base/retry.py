"""The one retry policy for requests: a limited number of retries with jittered exponential backoff."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from s3sink_job.base.errors import TransientError

T = TypeVar("T")

LONGEST_WAIT = 10.0
"""Seconds, unless the first wait is longer. A request that keeps failing then fails its flush, which has a backoff."""


@dataclass(frozen=True)
class RetryPolicy:
    max: int = 5
    backoff: float = 0.05
    """Seconds before the first retry; doubled for each further one, up to `LONGEST_WAIT`."""

    def wait(self, retry: int) -> float:
        """Jittered, so that tasks do not retry all at once."""
        longest = max(self.backoff, LONGEST_WAIT)
        return min(longest, self.backoff * 2.0 ** min(retry, 30)) * random.uniform(0.5, 1.5)

    def attempts(self) -> Iterator[int]:
        """The numbers of the attempts. Sleeps before each one but the first."""
        for attempt in range(self.max + 1):
            if attempt:
                time.sleep(self.wait(attempt - 1))
            yield attempt

    def run(self, call: Callable[[], T], on_retry: Callable[[], None] = lambda: None) -> T:
        """Repeats the call while it fails with a transient error. `on_retry` is called before each retry."""
        for attempt in self.attempts():
            try:
                return call()
            except TransientError:
                if attempt == self.max:
                    raise
                on_retry()
        raise AssertionError("unreachable")


NO_RETRIES = RetryPolicy(max=0)
