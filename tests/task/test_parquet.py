"""Parquet objects: columns from JSON, one object per partition and flush, types that only widen."""

from __future__ import annotations

import io
import json
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness import World

PARQUET = {"type": "Parquet"}


@pytest.fixture
def topic(world: World) -> World:
    world.kafka.create_topic(world.topic)
    return world


def tables(world: World) -> list[pa.Table]:
    return [pq.read_table(io.BytesIO(world.content(key))) for key in world.objects()]


def rows(world: World) -> list[dict[str, Any]]:
    return [row for table in tables(world) for row in table.to_pylist()]


def test_records_become_rows_in_order(topic: World) -> None:
    values = [{"id": n, "name": f"n{n}", "nested": {"x": n / 2, "tags": ["a", str(n)]}} for n in range(2_500)]
    topic.produce(values)

    topic.drain(format=PARQUET)

    assert [key.rsplit("/", 1)[1] for key in topic.objects()] == [
        "0000000000000000000.parquet",
        "0000000000000001000.parquet",
        "0000000000000002000.parquet",
    ]
    assert rows(topic) == values
    assert topic.verify(topic.drivers[-1]).ok


def test_two_interleaved_producers_with_different_fields_give_one_object(topic: World) -> None:
    topic.produce([{"a": n} if n % 2 else {"b": str(n), "c": [n]} for n in range(500)])

    topic.drain(format=PARQUET)

    (table,) = tables(topic)
    assert sorted(table.schema.names) == ["a", "b", "c"]
    assert table.num_rows == 500
    assert topic.verify(topic.drivers[-1]).ok


def test_a_column_that_widened_stays_wide(topic: World) -> None:
    """The second flush has numbers only, and still writes text, which the first one needed."""
    topic.produce([{"a": 1, "b": 1}, {"a": "one", "b": 1.5}])
    topic.drain(format=PARQUET)
    topic.produce([{"a": 2, "b": 2}, {"a": 3, "b": 3}])
    topic.drain(format=PARQUET)

    first, second = tables(topic)
    assert first.schema.types == second.schema.types == [pa.string(), pa.float64()]
    assert second.to_pylist() == [{"a": "2", "b": 2.0}, {"a": "3", "b": 3.0}]
    assert topic.verify(topic.drivers[-1]).ok


def test_the_schema_is_known_to_a_driver_that_starts_later_and_to_other_partitions(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([{"a": "text"}], partition=0)
    world.drain(format=PARQUET)
    world.produce([{"a": 5}], partition=1)
    world.drain(format=PARQUET)

    assert [t.schema.types for t in tables(world)] == [[pa.string()], [pa.string()]]
    assert world.verify(world.drivers[-1]).ok


def test_a_supplied_schema_is_the_schema_whatever_comes(topic: World) -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "price": {"type": ["number", "null"]}, "tags": {"type": "array"}},
    }
    source = {"value": {"format": "Json", "schema": json.dumps(schema)}}
    topic.produce([{"id": 1, "price": 2, "tags": [1, "x"]}, {"id": 2, "new": {"y": 1}}, {"id": "x"}, {"id": 3}])

    topic.drain(format=PARQUET, source=source, errors={"records": "Skip"})

    (table,) = tables(topic)
    assert table.schema.types == [pa.int64(), pa.float64(), pa.string(), pa.string()]
    assert table.to_pylist() == [
        {"id": 1, "price": 2.0, "tags": '[1,"x"]', "_more": None},
        {"id": 2, "price": None, "tags": None, "_more": '{"new":{"y":1}}'},
        {"id": 3, "price": None, "tags": None, "_more": None},
    ]
    report = topic.verify(topic.drivers[-1])
    assert report.ok
    assert report.skipped == 1


def test_meta_columns_say_where_a_record_came_from(topic: World) -> None:
    record = (b"k", b'{"a": 1}', [("h", b"\xff"), ("empty", None)], 1_700_000_000_123)
    topic.kafka.produce(topic.topic, [record, (None, None, None, 1_700_000_000_124)], 0)
    wanted = {**PARQUET, "columns": {"meta": "Kafka"}}

    topic.drain(format=wanted)

    (table,) = tables(topic)
    first, second = table.to_pylist()
    assert first.pop("_timestamp").timestamp() == 1_700_000_000.123
    assert first == {
        "_key": "k",
        "_topic": topic.topic,
        "_partition": 0,
        "_offset": 0,
        "_headers": [{"key": "h", "value": b"\xff"}, {"key": "empty", "value": None}],
        "a": 1,
    }
    assert (second["_key"], second["a"], second["_headers"]) == (None, None, [])
    assert topic.verify(topic.drivers[-1]).ok


def test_no_object_spans_two_windows_of_record_time(topic: World) -> None:
    """Late records go to the object of their own window."""
    hour = 3_600_000
    times = [hour + 5, 2 * hour, hour + 6, 3 * hour - 1, 3 * hour, hour + 7]
    topic.kafka.produce(topic.topic, [(None, b'{"t": %d}' % t, None, t) for t in times], 0)
    flush = {"recordWindow": "1h"}

    topic.drain(flush=flush, format=PARQUET)

    assert [[row["t"] for row in t.to_pylist()] for t in tables(topic)] == [
        [hour + 5, hour + 6, hour + 7],
        [2 * hour, 3 * hour - 1],
        [3 * hour],
    ]
    assert topic.verify(topic.drivers[-1]).ok


def test_a_changed_record_window_applies_to_new_objects_only(topic: World) -> None:
    """Both windows have a group with the same start, and `verify` must keep them apart."""
    hour = 3_600_000
    topic.kafka.produce(topic.topic, [(None, b'{"t": %d}' % t, None, t) for t in (2 * hour, 3 * hour)], 0)
    topic.drain(flush={"recordWindow": "2h"}, format=PARQUET)
    times = [2 * hour + 1, 3 * hour + 1, 2 * hour + 2]
    topic.kafka.produce(topic.topic, [(None, b'{"t": %d}' % t, None, t) for t in times], 0)
    topic.drain(flush={"recordWindow": "1h"}, format=PARQUET)

    assert [[row["t"] for row in t.to_pylist()] for t in tables(topic)] == [
        [2 * hour, 3 * hour],
        [2 * hour + 1, 2 * hour + 2],
        [3 * hour + 1],
    ]
    report = topic.verify(topic.drivers[-1])
    assert report.ok, report.to_doc()


def test_parquet_is_read_by_another_library(topic: World, tmp_path: Any) -> None:
    topic.produce([{"id": n, "who": {"name": "Ünï", "tags": [str(n)]}} for n in range(100)])
    topic.drain(format={**PARQUET, "compression": {"codec": "Brotli"}})

    path = tmp_path / "object.parquet"
    path.write_bytes(topic.content(topic.objects()[0]))
    (found,) = duckdb.sql(f"SELECT count(*), sum(id), min(who.name), max(len(who.tags)) FROM '{path}'").fetchall()
    assert found == (100, 4950, "Ünï", 1)
