"""Limits how many healthy drivers a new version of the operator restarts at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from s3sink_operator.values.objects import SinkKey

RETRY_AFTER, RETRIES_PER_SECOND = 2.0, 30
"""Seconds until a driver that has to wait is tried again, and how many are tried in a second."""
RESTART_TIMEOUT = 600.0
"""Seconds after which a driver that is still not ready no longer holds up the next one."""


@dataclass
class Rollout:
    """A faulty version affects only a few drivers."""

    most: int
    clock: Callable[[], float] = time.monotonic
    _restarting: dict[SinkKey, float] = field(default_factory=dict)
    """Until when each driver holds its place."""
    _waiting: set[SinkKey] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def may_restart(self, key: SinkKey) -> bool:
        now = self.clock()
        with self._lock:
            self._restarting = {k: until for k, until in self._restarting.items() if until > now}
            if key not in self._restarting and len(self._restarting) >= self.most:
                self._waiting.add(key)
                return False
            self._waiting.discard(key)
            self._restarting.setdefault(key, now + RESTART_TIMEOUT)
            return True

    @property
    def retry_after(self) -> float:
        """Seconds; longer with many that wait, so that they are not all tried at once."""
        return max(RETRY_AFTER, len(self._waiting) / RETRIES_PER_SECOND)

    def finished(self, key: SinkKey) -> None:
        """Its driver is ready again, or the sink is gone."""
        with self._lock:
            self._restarting.pop(key, None)
            self._waiting.discard(key)
