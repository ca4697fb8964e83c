"""Values that do not fit, in every format: kept, widened or reported, never wrong and never a crash loop."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import fastavro
import polars as pl
import pytest
from pyarrow import BufferReader, orc

from s3sink_job.driver.driver import Driver
from tests.harness import World

BEYOND = 2**64 + 1
VALUES = [
    b'{"id": 0, "v": {"x": 1}, "big": 1}',
    b'{"id": 1, "v": 5, "big": %d}' % BEYOND,
    b'{"id": 2, "v": 1, "v": 2}',
    b'{"id": 3, "v": "\xff"}',
    b'{"id": 4, "v": null, "big": -5}',
]
"""An object or a number, one beyond int64, a field twice, not UTF-8, and one that is fine."""
LINES, COLUMNS = ("Json", "Text"), ("Csv", "Avro", "Orc", "Parquet")
FIRST_BAD = dict.fromkeys(COLUMNS, 2) | dict.fromkeys(LINES, 3)
"""Lines are written as they come; columns have no place for a field that comes twice."""
FINE = [b'{"id": %d}' % n for n in range(3)]
ROWS: list[dict[str, Any]] = [
    {"id": "0", "v": {"x": 1}, "big": "1"},
    {"id": "1", "v": 5, "big": str(BEYOND)},
    {"id": "4", "big": "-5"},
]
"""What columns hold of them: text where one type does not do for all."""


def topic(world: World, format: str) -> str:
    return f"{world.topic}-{format.lower()}"


def all_formats(world: World) -> dict[str, Any]:
    """One sink with a topic for each format. Everything is due."""
    formats = [*LINES, *COLUMNS]
    routes = [{"topics": [topic(world, format)], "format": {"type": format}} for format in formats]
    return {"source": {"topics": [topic(world, f) for f in formats]}, "routes": routes, "flush": {"records": 1000}}


def rows_in(world: World, format: str, partition: int) -> list[Any]:
    """As other readers return them: without null columns, and with numbers of columns as text."""
    bodies = [world.content(key) for key in world.objects(f"raw/{topic(world, format)}/{partition}/")]
    tables: list[Any]
    match format:
        case "Json" | "Text":
            return [line for body in bodies for line in body.splitlines()]
        case "Csv":
            tables = [list(csv.DictReader(io.StringIO(body.decode()))) for body in bodies]
        case "Avro":
            tables = [list(fastavro.reader(io.BytesIO(body))) for body in bodies]
        case "Orc":
            tables = [orc.read_table(BufferReader(body)).to_pylist() for body in bodies]
        case _:
            tables = [pl.read_parquet(io.BytesIO(body)).to_dicts() for body in bodies]
    return [_shown(row) for table in tables for row in table]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    held = {name: str(value) for name, value in row.items() if value not in (None, "")}
    return held | ({"v": json.loads(held["v"])} if "v" in held else {})


def expected(format: str, *offsets: int) -> list[Any]:
    if format in LINES:
        return [VALUES[offset] for offset in offsets]
    return [row for row in ROWS if int(row["id"]) in offsets]


def committed(world: World, format: str) -> list[int]:
    partitions = world.state()["topics"][topic(world, format)]["partitions"]
    return [partitions[str(number)]["offset"] for number in range(2)]


@pytest.fixture
def full(world: World) -> World:
    for format in (*LINES, *COLUMNS):
        world.kafka.create_topic(topic(world, format), partitions=2)
        world.produce(list(VALUES), 0, topic(world, format))
        world.produce(list(FINE), 1, topic(world, format))
    return world


def assert_stopped_at_the_first_bad_record(world: World, driver: Driver) -> None:
    for format, first in FIRST_BAD.items():
        problem = driver.problems[topic(world, format), 0]
        assert problem.reason == "BadRecord"
        assert f"topic {topic(world, format)}, partition 0, offset {first}" in problem.message
        assert committed(world, format) == [first, len(FINE)]
        assert rows_in(world, format, 0) == expected(format, *range(first))
        ids = [f"{n}" for n in range(3)]
        assert rows_in(world, format, 1) == ([*FINE] if format in LINES else [{"id": n} for n in ids])
    assert len(driver.problems) == len(FIRST_BAD), "the other partitions went on"


def test_values_that_do_not_fit_are_widened_or_reported_in_every_format(full: World) -> None:
    settings = all_formats(full)
    driver = full.drain(**settings)
    assert_stopped_at_the_first_bad_record(full, driver)
    assert full.verify(driver).ok

    epoch, objects = full.state()["epoch"], full.objects()
    again = full.drain(**settings)
    assert_stopped_at_the_first_bad_record(full, again)
    assert (full.state()["epoch"], full.objects()) == (epoch + 1, objects), "a second start ends just as well"

    skipping = full.drain(errors={"records": "Skip"}, **settings)
    assert skipping.problems == {}
    for format in (*LINES, *COLUMNS):
        kept = (0, 1, 2, 4) if format in LINES else (0, 1, 4)
        assert rows_in(full, format, 0) == expected(format, *kept)
        assert committed(full, format) == [len(VALUES), len(FINE)]
    report = full.verify(skipping)
    assert report.ok, report.to_doc()
    assert report.skipped == len(LINES) + 2 * len(COLUMNS)
    assert report.counts.records == 6 * (len(VALUES) + len(FINE)) - report.skipped


def test_other_partitions_go_on_beside_one_that_waits_for_a_person(full: World) -> None:
    driver = full.driver(**{**all_formats(full), "run": "Continuous", "flush": {"records": 1, "interval": "1h"}})
    driver.step()
    driver.step()
    assert_stopped_at_the_first_bad_record(full, driver)

    for format in FIRST_BAD:
        full.produce([b'{"id": 3}'], 1, topic(full, format))
    driver.step()
    driver.step()
    for format, first in FIRST_BAD.items():
        assert committed(full, format) == [first, len(FINE) + 1]
    assert len(driver.problems) == len(FIRST_BAD)
