"""Waits until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(what: str, condition: Callable[[], Any], seconds: float = 60.0, every: float = 0.25) -> Any:
    """The condition's first result that is true; AssertionError, with the last result, when time runs out."""
    deadline = time.monotonic() + seconds
    found: Any = None
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(every)
    raise AssertionError(f"timed out after {seconds:.0f} s waiting for {what}; last result: {found!r}")
