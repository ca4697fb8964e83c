"""When not to act: restarts for the operator's own sake, and objects that somebody else wants otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from s3sink_operator.model import APPLIED, Document, Key

ASKED_AGAIN, ASKED_A_SECOND = 2.0, 30
"""Seconds until a driver that was not restarted yet may have its turn; and how many ask in a second."""
MOST_APPLIED, DISPUTED_FOR = 6, 300.0
"""How often the same object is put right within so many seconds."""
ROLLED_WITHIN = 600.0
"""Seconds after which a driver that was restarted for the operator's sake no longer holds up the next one."""


@dataclass
class Rollout:
    """Drivers that are restarted for the operator's sake: a few at a time, so that a bad version hits a few only."""

    most: int
    clock: Callable[[], float] = time.monotonic
    _until: dict[Key, float] = field(default_factory=dict)
    _waiting: set[Key] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, key: Key) -> bool:
        now = self.clock()
        with self._lock:
            self._until = {k: until for k, until in self._until.items() if until > now}
            if key not in self._until and len(self._until) >= self.most:
                self._waiting.add(key)
                return False
            self._waiting.discard(key)
            self._until.setdefault(key, now + ROLLED_WITHIN)
            return True

    @property
    def patience(self) -> float:
        """Seconds until one that was not admitted asks again: soon, and not all at once if there are many."""
        return max(ASKED_AGAIN, len(self._waiting) / ASKED_A_SECOND)

    def over(self, key: Key) -> None:
        """It is well again, or gone."""
        with self._lock:
            self._until.pop(key, None)
            self._waiting.discard(key)


@dataclass
class Disputes:
    """Objects that somebody else wants otherwise, such as a second operator: whoever gives in ends the fight."""

    clock: Callable[[], float] = time.monotonic
    _applied: dict[Key, dict[tuple[str, str, str], list[float]]] = field(default_factory=dict)

    def admits(self, key: Key, document: Document) -> bool:
        """Whether the very same was not applied too often lately."""
        return len(self._lately(key, document)) < MOST_APPLIED

    def applied(self, key: Key, document: Document) -> None:
        now, before = self.clock(), self._applied.get(key, {})
        kept = {version: times for version, times in before.items() if now - times[-1] < DISPUTED_FOR}
        self._applied[key] = {**kept, _version(document): [*self._lately(key, document), now]}

    def _lately(self, key: Key, document: Document) -> list[float]:
        now, times = self.clock(), self._applied.get(key, {}).get(_version(document), ())
        return [at for at in times if now - at < DISPUTED_FOR]

    def over(self, key: Key) -> None:
        self._applied.pop(key, None)


def _version(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return (document["kind"], metadata["name"], metadata["annotations"][APPLIED])
