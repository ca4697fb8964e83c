"""How many requests go to the store in parallel: fewer once it throttles, more again when it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from s3sink_job.stores.errors import Throttled

PARALLEL = 8
"""Requests that a driver, or a task, may have in flight."""


@dataclass
class RequestLimit:
    """A request waits until fewer than `now` are in flight.

    The first throttled answer halves the limit. Answers to requests that were in flight by then do not count.
    """

    now: int = PARALLEL
    throttled: int = 0
    """Throttled answers."""
    _in_flight: int = 0
    _cuts: int = 0
    _change: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """One request."""
        cuts = self._begin()
        try:
            yield
        except Throttled:
            self._halve(cuts)
            raise
        finally:
            self._end()

    def take_throttled(self) -> int:
        """Throttled answers since the last call."""
        with self._change:
            count, self.throttled = self.throttled, 0
            return count

    def adjust(self, lowest: int | None) -> None:
        """After a flush: down to the lowest limit of a throttled task; one up if no task was throttled."""
        with self._change:
            self.now = min(self.now, lowest) if lowest is not None else min(PARALLEL, self.now + 1)
            self._change.notify_all()

    def _begin(self) -> int:
        with self._change:
            self._change.wait_for(lambda: self._in_flight < self.now)
            self._in_flight += 1
            return self._cuts

    def _end(self) -> None:
        with self._change:
            self._in_flight -= 1
            self._change.notify()

    def _halve(self, cuts: int) -> None:
        """`cuts`: how often the limit was halved before the request began."""
        with self._change:
            self.throttled += 1
            if cuts == self._cuts:
                self._cuts += 1
                self.now = max(1, self.now // 2)
