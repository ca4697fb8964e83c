"""A topic, written by the sink and restored: records come back byte for byte where the docs say so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import World
from tests.restore.worlds import BINARY_RECORDS, LINE_BREAKS, TEXT_RECORDS, contents, fill, restore, restored

META = {"columns": {"meta": "Kafka"}}
ENVELOPE = {"envelope": {"enabled": True}}
PARQUET, AVRO, ORC, JSON, CSV = ({"type": name} for name in ("Parquet", "Avro", "Orc", "Json", "Csv"))


@pytest.mark.spark
@pytest.mark.parametrize("shape", [META, ENVELOPE], ids=["meta", "envelope"])
@pytest.mark.parametrize("format", [PARQUET, AVRO, ORC, JSON, CSV], ids=lambda format: format["type"])
@pytest.mark.parametrize("input", ["Bytes", "String"])
def test_every_kind_of_record_comes_back_byte_for_byte(
    world: World, input: str, format: dict[str, Any], shape: dict[str, Any]
) -> None:
    records = TEXT_RECORDS + LINE_BREAKS + (BINARY_RECORDS if input == "Bytes" else [])
    fill(world, records)
    driver = world.drain(
        source={"key": {"format": input}, "value": {"format": input}}, format={**format, **shape}, flush={"records": 7}
    )
    report = restore(world, driver)
    assert report.ok, report.findings
    assert not report.losses
    assert restored(world) == contents(world.messages())
    assert report.records == report.found == len(world.messages())
