"""Searches for a run in which a driver that breaks a rule also breaks a promise."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.protocol.choosing import Seeded
from tests.protocol.simulation import Setting, simulate
from tests.protocol.world import Violation

SEEDS = 600
MOST_RUNS = 400
"""A simulation that needs more would be too calm."""
Patch = pytest.MonkeyPatch


def broken_promise(setting: Setting) -> str:
    return first_violation(setting)[1]


def first_violation(setting: Setting) -> tuple[int, str]:
    """The number of runs until it was found, and the promise that was broken."""
    for seed in range(SEEDS):
        try:
            simulate(Seeded(seed), setting)
        except Violation as found:
            return seed + 1, str(found).splitlines()[0]
    pytest.fail(f"no promise was broken in {SEEDS} runs")


def assert_needed(leave_out: Callable[[Patch], None], setting: Setting, promise: str, patch: Patch) -> None:
    """Leaving the rule out breaks the promise, and the simulation finds that soon."""
    leave_out(patch)

    runs, broken = first_violation(setting)

    assert re.search(promise, broken)
    assert runs <= MOST_RUNS
