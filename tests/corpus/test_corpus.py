"""Objects, manifests and states are what they were, byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.corpus.cases import CASES
from tests.corpus.recording import DOCUMENTS, RECORDED, differences, record
from tests.harness import World
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

RECORD_ANEW = "If the change is meant, run `python -m tests.corpus record` and say why in the commit."


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_written_has_not_changed(
    kafka: KafkaBroker,
    s3: S3Server,
    spark: SparkSession,
    bucket: str,
    tmp_path: Path,
    recorded: dict[str, Any],
    name: str,
) -> None:
    now = record(name, CASES[name], World(kafka, s3, spark, bucket, "", tmp_path))

    found = differences(recorded[name], now, DOCUMENTS / name)
    assert not found, "\n".join([*found, RECORD_ANEW])


def test_every_recorded_case_is_still_compared(recorded: dict[str, Any]) -> None:
    assert set(recorded) == set(CASES)
