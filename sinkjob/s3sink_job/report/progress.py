"""How far a backlog is, and how long the rest will take. Pure: the clock is an argument.

A backlog is more than one flush can write. The figures change when a flush is published. Between two flushes only the
time left changes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """Of a backlog, in offsets. `rate` and `seconds_left` are None before its first flush is published."""

    done: int
    left: int
    rate: float | None = None
    seconds_left: float | None = None

    @property
    def share(self) -> float:
        return self.done / max(1, self.done + self.left)

    def __str__(self) -> str:
        parts = [f"{self.share:.0%}", f"{self.done:,} of {self.done + self.left:,} records"]
        if self.rate is not None and self.seconds_left is not None:
            parts += [f"{self.rate:,.0f} records/s", f"{duration_text(self.seconds_left)} left"]
        return " · ".join(parts)


@dataclass
class Progress:
    _began: float | None = None
    _moved_at: float = 0.0
    _done: int = 0
    _due: int = 0
    _beyond: int = 0

    def see(self, due: int, beyond: int, now: float) -> None:
        """`due` offsets are to be written, `beyond` of them not in the next flush."""
        if self._began is None and beyond:
            self._began, self._moved_at, self._done = now, now, 0
        elif not beyond and not self._beyond:
            # The last flush of the backlog is published, too.
            self._began = None
        self._due, self._beyond = due, beyond

    def moved(self, offsets: int, now: float) -> None:
        self._done += offsets
        self._due = max(0, self._due - offsets)
        self._moved_at = now

    def estimate(self, now: float) -> Estimate | None:
        if self._began is None:
            return None
        taken = self._moved_at - self._began
        if not self._done or taken <= 0:
            return Estimate(self._done, self._due)
        rate = self._done / taken
        return Estimate(self._done, self._due, rate, max(0.0, self._due / rate - (now - self._moved_at)))


def duration_text(seconds: float) -> str:
    """In the largest one or two units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
