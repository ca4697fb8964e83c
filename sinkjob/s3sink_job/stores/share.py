"""How many requests go to the store at a time: fewer once it throttles, more again when it does not."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

PARALLEL = 8
"""Requests that a driver, or a task, has under way at a time."""


@dataclass
class Share:
    """Requests that are begun wait until fewer than `now` are under way.

    Halved by the first throttled answer. Those of requests that were under way by then say nothing new.
    """

    now: int = PARALLEL
    throttled: int = 0
    """Answers that asked for fewer requests."""
    _under_way: int = 0
    _cuts: int = 0
    _change: threading.Condition = field(default_factory=threading.Condition)

    def begin(self) -> int:
        """Returns what `halve` is to be told if this request is throttled."""
        with self._change:
            self._change.wait_for(lambda: self._under_way < self.now)
            self._under_way += 1
            return self._cuts

    def end(self) -> None:
        with self._change:
            self._under_way -= 1
            self._change.notify()

    def halve(self, began: int) -> None:
        with self._change:
            self.throttled += 1
            if began == self._cuts:
                self._cuts += 1
                self.now = max(1, self.now // 2)

    def take_count(self) -> int:
        """Throttled answers since the last call."""
        with self._change:
            count, self.throttled = self.throttled, 0
            return count

    def follow(self, lowest: int | None) -> None:
        """After a flush: down to the lowest share that a throttled task ended with, or one up where none was."""
        with self._change:
            self.now = min(self.now, lowest) if lowest is not None else min(PARALLEL, self.now + 1)
            self._change.notify_all()
