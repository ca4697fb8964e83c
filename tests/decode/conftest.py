"""Parts that several files of tests here need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from s3sink_job.base.secrets import Secrets, write_secrets
from tests.decode.glue_registry import KEYS
from tools.parts.s3 import Moto


@pytest.fixture(scope="session")
def moto() -> Iterator[Moto]:
    """AWS Glue and STS."""
    with Moto() as server:
        yield server


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return write_secrets(tmp_path, {"aws": KEYS})
