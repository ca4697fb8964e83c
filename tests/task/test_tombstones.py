"""Tombstones: written, skipped, refused or separated, in formats that can represent them and in those that cannot."""

from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest

from tests.harness import World

VALUES = [{"a": 1, "b": "x"}, None, {"a": 2, "b": ""}, None, {}, {"a": 3, "b": "y"}]
FORMATS: dict[str, dict[str, Any]] = {
    "json": {"type": "Json"},
    "parquet": {"type": "Parquet"},
    "envelope": {"type": "Parquet", "envelope": {"enabled": True, "headers": False, "metadata": False}},
    "csv": {"type": "Csv"},
    "bytes": {"type": "Bytes"},
}
WRITTEN: dict[str, list[Any]] = {
    "json": VALUES,
    "parquet": [v or {} for v in VALUES],
    "envelope": [{"key": f"k{n}", **({} if v is None else {"value": v})} for n, v in enumerate(VALUES)],
    "csv": ["1,x", ",", '2,""', ",", ",", "3,y"],
    "bytes": [b"" if v is None else json.dumps(v).encode() for v in VALUES],
}
"""What each record becomes; nulls are left out of rows."""


def found_in(world: World, name: str, below: str = "raw/") -> list[Any]:
    found: list[Any] = []
    for key in world.objects(below):
        body = world.content(key)
        match name:
            case "json":
                found += [json.loads(line) for line in body.splitlines()]
            case "csv":
                found += body.decode().splitlines()[1:]
            case "bytes":
                found.append(body)
            case _:
                found += [_bare(row) for row in pl.read_parquet(io.BytesIO(body)).to_dicts()]
    return found


def _bare(value: Any) -> Any:
    return {n: _bare(v) for n, v in value.items() if v is not None} if isinstance(value, dict) else value


def those(name: str, *, null: bool) -> list[Any]:
    return [row for row, value in zip(WRITTEN[name], VALUES, strict=True) if (value is None) == null]


@pytest.fixture
def topic(world: World) -> World:
    world.kafka.create_topic(world.topic)
    raw = [None if v is None else json.dumps(v).encode() for v in VALUES]
    world.kafka.produce(world.topic, [(f"k{n}".encode(), v, None, None) for n, v in enumerate(raw)], 0)
    return world


def drained(world: World, name: str, policy: str, **spec: Any) -> dict[str, Any]:
    driver = world.drain(format=FORMATS[name], nullValues=policy, **spec)
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    return {"records": report.counts.records, "skipped": report.skipped, "problems": driver.problems}


@pytest.mark.parametrize("name", FORMATS)
def test_written_tombstones_are_what_the_format_says(topic: World, name: str) -> None:
    assert drained(topic, name, "Write") == {"records": 6, "skipped": 0, "problems": {}}
    assert found_in(topic, name) == WRITTEN[name]


@pytest.mark.parametrize("name", FORMATS)
def test_skipped_tombstones_are_no_errors_and_not_missed(topic: World, name: str) -> None:
    """They are left out on purpose: `verify` accepts it, and they are no bad records."""
    done = drained(topic, name, "Skip", errors={"maxPerFlush": 1})
    assert done == {"records": 4, "skipped": 0, "problems": {}}
    assert found_in(topic, name) == those(name, null=False)
    topic.produce([None, None])
    assert drained(topic, name, "Skip")["records"] == 4, "a slice of nothing but tombstones is stepped over"
    assert topic.state()["topics"][topic.topic]["partitions"]["0"]["offset"] == 8


@pytest.mark.parametrize("name", FORMATS)
def test_a_refused_tombstone_stops_there_and_says_so(topic: World, name: str) -> None:
    done = drained(topic, name, "Fail")
    problem = done["problems"][topic.topic, 0]
    assert (problem.reason, done["records"]) == ("BadRecord", 1)
    assert "offset 1: its value is null, and spec.nullValues is Fail" in problem.message
    assert found_in(topic, name) == WRITTEN[name][:1]
    # With another policy the rest is written.
    assert drained(topic, name, "Fail", errors={"records": "Skip"}) == {"records": 4, "skipped": 2, "problems": {}}
    assert found_in(topic, name) == those(name, null=False)


@pytest.mark.parametrize("name", FORMATS)
def test_separate_tombstones_have_a_folder_that_tables_pass_over(topic: World, name: str) -> None:
    assert drained(topic, name, "Separate") == {"records": 6, "skipped": 0, "problems": {}}
    apart = f"raw/_tombstones/{topic.topic}/0/"
    assert found_in(topic, name, f"raw/{topic.topic}/") == those(name, null=False)
    assert found_in(topic, name, apart) == those(name, null=True)
    assert len(topic.objects(apart)) == (2 if name == "bytes" else 1)


def test_separate_tombstones_need_no_field_to_be_partitioned_by(topic: World) -> None:
    """They have no value, but other parts such as the key still determine their folder."""
    topic.produce([{"a": 1}, None])
    layout = {
        "partitionBy": [{"type": "Topic"}, {"type": "Field", "path": ["a"]}, {"type": "Partition"}],
        "onMissingValue": "Fail",
        "hiveStyle": True,
    }
    done = drained(topic, "json", "Separate", layout=layout, errors={"records": "Skip"})
    assert (done["records"], done["skipped"]) == (7, 1), "{} has a value, and a is missing in it"
    (apart,) = topic.objects("raw/_tombstones/")
    missing = "__HIVE_DEFAULT_PARTITION__"
    assert apart == f"raw/_tombstones/{topic.topic}/a={missing}/partition=0/{1:019d}.jsonl"
    assert topic.content(apart) == b"null\nnull\nnull\n"


def test_a_policy_that_changes_between_runs_is_verified_as_it_was(topic: World) -> None:
    for policy in ("Skip", "Separate", "Write"):
        driver = topic.drain(nullValues=policy)
        topic.produce([None, {"then": policy}])
    driver = topic.drain(nullValues="Skip")
    report = topic.verify(driver)
    assert report.ok, report.to_doc()
    assert topic.content(topic.objects("raw/_tombstones/")[0]) == b"null\n"
    assert [row for row in topic.rows() if row is None] == [None]
