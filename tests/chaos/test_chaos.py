"""Ninety seconds of `make chaos`."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.chaos.report import line, tables
from tests.chaos.run import Run

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(900)]

SEED = int(os.environ.get("SEED", "64"))
"""With another seed: `SEED=7 .venv/bin/python -m pytest tests/chaos`."""
SECONDS = 90.0


def test_ninety_seconds_of_chaos_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    outcome = Run(SEED, SECONDS, tmp_path, logging.getLogger("chaos").warning).go()
    assert outcome.wrong == [], f"{line(outcome)}\nlogs are in {tmp_path}\n{tables(outcome)}"
