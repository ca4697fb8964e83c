"""Every manifest in examples/ runs, and writes the keys that its comment names."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from tests.examples.running import Place, sinks_in
from tests.examples.shop import INVOICES, LOGS, NOON, SHIPMENTS
from tools.parts.cli_process import CliProcess

EXAMPLES = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parents[2] / "examples").glob("*.yaml")}
STAMP = re.compile(r"\d{4}_\d\d_\d\d_(\d{13})(?=_)")
"""The flush time in a name of style Upload."""


def promised(text: str) -> list[str]:
    """The keys in the comment at the top."""
    return sorted(re.findall(r"^# (?:writes|      ) ([\w.-]+/\S+)$", text, re.M))


@dataclass(frozen=True)
class Run:
    """An example that the command ran, and the seconds before and after."""

    place: Place
    began: float
    ended: float

    def objects(self) -> list[str]:
        """Keys with noon as the time of the flush: a command uses the real clock."""
        return sorted(STAMP.sub(self._noon, key) for key in self.place.objects())

    def content(self, part: str = "") -> bytes:
        """The first object whose key contains this."""
        return self.place.content(next(key for key in self.place.objects() if part in key))

    def _noon(self, found: re.Match[str]) -> str:
        assert self.began <= int(found[1]) / 1000 <= self.ended
        assert found[0] == f"{datetime.fromtimestamp(int(found[1]) / 1000, UTC):%Y_%m_%d}_{found[1]}"
        return f"2026_01_15_{int(NOON * 1000)}"


@pytest.fixture(scope="session")
def commands(places: Callable[[], Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliProcess]:
    """With credentials in the environment, for manifests that need them there; workers inherit it from the JVM."""
    with CliProcess(tmp_path_factory.mktemp("commands") / "log", **places().secrets["s3"]) as running:
        yield running


@pytest.fixture(scope="session")
def written(places: Callable[[], Place], commands: CliProcess) -> Callable[[str], Run]:
    """Runs each example once by `s3sink run --once -f`. Verifies in this process, which has Spark."""

    @cache
    def run(name: str) -> Run:
        place, text = places(), EXAMPLES[name]
        (document,) = sinks_in(text)
        if name == "text-logs":
            # It starts at the end of the topic: only later records are written.
            place.run(document)
            assert place.objects() == []
            place.kafka.produce("app-logs", LOGS[0], 0)
        began = time.time()
        commands("run", "--once", "-f", str(place.file(text)))
        ended = time.time()
        report = place.verify(document)
        assert report.ok, report.to_doc()
        assert report.counts.records > 0
        return Run(place, began, ended)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_writes_exactly_the_keys_that_it_names(name: str, written: Callable[[str], Run]) -> None:
    assert promised(EXAMPLES[name])
    assert written(name).objects() == promised(EXAMPLES[name])


ORDER = {"id": 1, "total": 12.5, "customer": {"country": "DE"}}


def lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.decode().splitlines()]


def test_quix_lines_hold_timestamp_key_and_value(written: Callable[[str], Run]) -> None:
    row = lines(gzip.decompress(written("quix").content()))[0]

    assert row == {"_timestamp": 1768467900000, "_key": "c-7", "_value": ORDER}


def test_a_lenses_envelope_holds_the_whole_message(written: Callable[[str], Run]) -> None:
    first, second = lines(written("lenses").content("country=DE"))

    assert first == {
        "key": "c-7",
        "value": ORDER,
        "headers": [{"key": "region", "value": "eu"}],
        "metadata": {"topic": "orders", "partition": 0, "offset": 0, "timestamp": 1768467900000},
    }
    assert second["metadata"]["offset"] == 2


def test_confluent_s_parquet_and_avro_are_what_others_read(written: Callable[[str], Run]) -> None:
    file = pq.ParquetFile(io.BytesIO(written("confluent-time-based").content()))
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    assert file.read().to_pylist()[0] == {"event_id": "a", "event_type": "click", "region": "us-east"}

    reader = fastavro.reader(io.BytesIO(written("confluent-field").content()))
    assert reader.codec == "snappy"
    assert list(reader) == [{"event_id": "c", "event_type": "click", "region": "eu-west"}]


def test_avro_records_keep_their_types_whatever_their_version(written: Callable[[str], Run]) -> None:
    table = pq.read_table(io.BytesIO(written("avro").content("day=2026-01-15")))
    assert str(table.schema.field("amount").type) == "decimal128(12, 2)"
    assert table.to_pylist() == INVOICES[1:]


def test_records_of_glue_are_read_with_and_without_compression(written: Callable[[str], Run]) -> None:
    assert pq.read_table(io.BytesIO(written("glue").content())).to_pylist() == SHIPMENTS


def test_protobuf_records_keep_their_types(written: Callable[[str], Run]) -> None:
    table = pq.read_table(io.BytesIO(written("protobuf").content("state=LOST")))
    assert str(table.schema.field("sent").type) == "timestamp[ns, tz=UTC]"
    assert table.to_pylist() == [{"number": 2, "sent": None, "weight": None, "route": {"state": "LOST", "places": []}}]


def test_json_schema_records_have_types_and_invalid_ones_are_skipped(written: Callable[[str], Run]) -> None:
    rows = pq.read_table(io.BytesIO(written("json-schema").content("day=2026-01-15"))).to_pylist()
    assert rows == [
        {"id": 1, "day": date(2026, 1, 15), "at": datetime(2026, 1, 15, 9, tzinfo=UTC), "reason": "Late"},
        {"id": 3, "day": date(2026, 1, 15), "at": None, "reason": None},
    ]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("airbyte-csv", {"_airbyte_data": '{"user_id": 123, "name": {"first": "John", "last": "Doe"}}'}),
        ("airbyte-flattened", {"user_id": "123", "name": '{"first":"John","last":"Doe"}'}),
    ],
)
def test_airbyte_s_columns_are_written(name: str, columns: dict[str, str], written: Callable[[str], Run]) -> None:
    (row,) = csv.DictReader(io.StringIO(written(name).content().decode()))
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", row.pop("_airbyte_ab_id"))
    assert row == {"_airbyte_emitted_at": "1768467600000", **columns}
