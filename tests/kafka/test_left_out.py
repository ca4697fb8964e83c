"""Records that Spark leaves out: those that are handed over tell how many."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.left_out import COUNTED_END, NUMBER
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.kafka.slice_reader import read_slices
from tests.harness import World
from tools.parts.kafka import Record

KIND = header_column("kind")
WANTED = f"{KIND} = X'{b'b'.hex()}'"


def records(count: int) -> list[Record]:
    """Every tenth has the header `kind: b`."""
    return [(None, b"%d" % n, [("kind", b"a" if n % 10 else b"b")], None) for n in range(count)]


def read(world: World, slices: list[Slice], conditions: Mapping[str, str]) -> pa.Table:
    frame = read_slices(
        *(world.spark, slices, {"bootstrap.servers": world.kafka.bootstrap}),
        columns=("value", KIND),
        group=f"test.{world.topic}",
        isolation="ReadCommitted",
        topic=True,
        conditions=conditions,
    )
    return frame.toArrow().sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])


def test_records_that_a_condition_leaves_out_stay_in_spark_and_are_counted_by_the_others(world: World) -> None:
    world.kafka.create_topic(world.topic, 2)
    world.kafka.produce(world.topic, records(1000), 0)
    world.kafka.produce(world.topic, [*records(300), (None, None, None, None), *records(9)], 1)
    # Two slices of one partition are two tasks, and each is counted by itself.
    slices = [
        Slice(world.topic, 1, 0, 0, 500, "test"),
        Slice(world.topic, 1, 0, 500, 1000, "test"),
        Slice(world.topic, 1, 1, 100, 310, "test"),
    ]

    found = read(world, slices, {world.topic: WANTED}).to_pylist()

    wanted = [(0, n) for n in range(1000) if n % 10 == 0 or n % 500 >= 500 - COUNTED_END]
    wanted += [(1, n) for n in range(100, 310) if n % 10 == 0 or n >= 310 - COUNTED_END]
    assert [(row["partition"], row["offset"]) for row in found] == wanted
    starts = [0 if row["partition"] == 0 and row["offset"] < 500 else 500 - 400 * row["partition"] for row in found]
    assert [row[NUMBER] for row in found] == [row["offset"] - start for row, start in zip(found, starts, strict=True)]


def test_a_tombstone_is_handed_over_whatever_the_condition_says(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.kafka.produce(world.topic, [*records(5), (None, None, [("kind", b"a")], None), *records(COUNTED_END)], 0)
    end = 6 + COUNTED_END
    found = read(world, [Slice(world.topic, 1, 0, 0, end, "test")], {world.topic: WANTED})
    assert found.column("offset").to_pylist() == [0, 5, *range(6, end)]
    assert found.column(NUMBER).to_pylist() == [0, 5, *range(6, end)]


def test_a_topic_without_a_condition_is_handed_over_whole_beside_one_with_a_condition(world: World) -> None:
    other = f"{world.topic}.other"
    for topic in (world.topic, other):
        world.kafka.create_topic(topic, 1)
        world.kafka.produce(topic, records(300), 0)
    slices = [Slice(topic, 1, 0, 0, 300, "test") for topic in (world.topic, other)]

    found = read(world, slices, {other: WANTED})

    both = {topic: found.filter(pa.compute.equal(found["topic"], topic)) for topic in (world.topic, other)}
    assert both[world.topic]["offset"].to_pylist() == list(range(300))
    assert both[world.topic][NUMBER].null_count == 300
    assert both[other]["offset"].to_pylist() == [n for n in range(300) if n % 10 == 0 or n >= 300 - COUNTED_END]
