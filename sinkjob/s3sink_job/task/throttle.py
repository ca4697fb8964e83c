"""Limits a task to its share of `source.maxBytesPerSecond`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Throttle:
    """Sleeps after each batch until the bytes so far fit the rate.

    Spark hands over one batch at a time and reads ahead only a little, so this slows down its reading as well.
    """

    bytes_per_second: float | None
    clock: Callable[[], float] = time.monotonic
    rest: Callable[[float], None] = time.sleep
    _began: float = field(init=False)
    _read: int = 0

    def __post_init__(self) -> None:
        self._began = self.clock()

    def keep(self, size: int) -> None:
        if self.bytes_per_second is None:
            return
        self._read += size
        ahead = self._read / self.bytes_per_second - (self.clock() - self._began)
        if ahead > 0:
            self.rest(ahead)
