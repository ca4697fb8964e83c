"""Every manifest in examples/ works, and writes the keys that it says it does."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
import yaml

from e2e.parts.jars import connector_dir
from tests.examples.running import Place, sinks_in
from tests.examples.shop import LOGS, NOON

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
BY_COMMAND = ("quickstart", "routes")
"""Run as a user would; the others in this process, which starts Spark once."""


def example(name: str) -> str:
    return next(path.read_text("utf-8") for path in EXAMPLES if path.stem == name)


def promised(text: str) -> set[str]:
    """The keys in the comment at the top."""
    return set(re.findall(r"^# (?:writes|      ) ([\w.-]+/\S+)$", text, re.M))


@pytest.fixture(scope="session")
def written(places: Callable[[], Place]) -> Callable[[str], Place]:
    """Runs an example, each only once."""

    @cache
    def run(name: str) -> Place:
        place = places()
        (document,) = sinks_in(example(name))
        report = place.run(document)
        if name == "text-logs":
            # It starts at the end of the topic: only what comes later is written.
            assert place.objects() == []
            place.kafka.produce("app-logs", LOGS[0], 0)
            report = place.run(document)
        assert report.ok, report.to_doc()
        assert report.tally.records > 0
        return place

    return run


@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES if path.stem not in BY_COMMAND])
def test_an_example_writes_the_keys_that_it_names(name: str, written: Callable[[str], Place]) -> None:
    assert promised(example(name)) <= set(written(name).objects())


@pytest.mark.parametrize("name", BY_COMMAND)
def test_an_example_runs_by_the_command(name: str, place: Place) -> None:
    (document,) = sinks_in(example(name))
    secrets = [{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s3"}, "stringData": place.secrets["s3"]}]
    file = place.folder / "sink.yaml"
    file.write_text(yaml.safe_dump_all([place.adapted(document), *secrets]))

    for arguments in (["run", "--once", "--short-logs"], ["verify"]):
        done = s3sink(*arguments, "-f", str(file))
        assert done.returncode == 0, done.stdout + done.stderr

    assert "proved" in done.stdout
    assert place.objects()
    assert promised(example(name)) <= set(place.objects())


def s3sink(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "S3SINK_JARS": str(connector_dir())}
    command = [sys.executable, "-m", "s3sink_job", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


def test_every_migration_names_its_keys() -> None:
    sources = ("lenses", "confluent", "quix", "airbyte", "hive", "routes")
    assert [p.stem for p in EXAMPLES if p.stem.startswith(sources) and not promised(p.read_text("utf-8"))] == []


ORDER = {"id": 1, "total": 12.5, "customer": {"country": "DE"}}


def lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.decode().splitlines()]


def test_quix_lines_hold_timestamp_key_and_value(written: Callable[[str], Place]) -> None:
    place = written("quix")

    row = lines(gzip.decompress(place.content(place.objects()[0])))[0]

    assert row == {"_timestamp": 1768467900000, "_key": "c-7", "_value": ORDER}


def test_a_lenses_envelope_holds_the_whole_message(written: Callable[[str], Place]) -> None:
    place = written("lenses")

    first, second = lines(place.content(next(key for key in place.objects() if "country=DE" in key)))

    assert first == {
        "key": "c-7",
        "value": ORDER,
        "headers": [{"key": "region", "value": "eu"}],
        "metadata": {"topic": "orders", "partition": 0, "offset": 0, "timestamp": 1768467900000},
    }
    assert second["metadata"]["offset"] == 2


def test_confluent_s_parquet_and_avro_are_what_others_read(written: Callable[[str], Place]) -> None:
    by_time = written("confluent-time-based")
    file = pq.ParquetFile(io.BytesIO(by_time.content(by_time.objects()[0])))
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    assert file.read().to_pylist()[0] == {"event_id": "a", "event_type": "click", "region": "us-east"}

    by_field = written("confluent-field")
    reader = fastavro.reader(io.BytesIO(by_field.content(by_field.objects()[0])))
    assert reader.codec == "snappy"
    assert list(reader) == [{"event_id": "c", "event_type": "click", "region": "eu-west"}]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("airbyte-csv", {"_airbyte_data": '{"user_id": 123, "name": {"first": "John", "last": "Doe"}}'}),
        ("airbyte-flattened", {"user_id": "123", "name": '{"first":"John","last":"Doe"}'}),
    ],
)
def test_airbyte_s_columns_are_there(name: str, columns: dict[str, str], written: Callable[[str], Place]) -> None:
    place = written(name)
    (key,) = place.objects()

    assert key.endswith(f"/users/2026_01_15_{int(NOON * 1000)}_0.csv")
    (row,) = csv.DictReader(io.StringIO(place.content(key).decode()))
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", row.pop("_airbyte_ab_id"))
    assert row == {"_airbyte_emitted_at": "1768467600000", **columns}
