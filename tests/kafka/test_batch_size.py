"""Memory is bounded whatever the size of the records, at no cost for small ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import BATCH_BYTES, BATCH_LIMIT, BATCH_RECORDS, SMALL, limit_of, without_large
from s3sink_job.kafka.slice_reader import read_slices
from tests.harness import World

LARGE = 900_000


def read(world: World, end: int, columns: tuple[str, ...]) -> Any:
    slices = [Slice(world.topic, 1, 0, 0, end, "test")]
    connection = {"bootstrap.servers": world.kafka.bootstrap}
    return read_slices(
        world.spark, slices, connection, columns=columns, group=f"test.{world.topic}", isolation="ReadCommitted"
    )


def handed_over(world: World, frame: Any, *, small: bool) -> list[tuple[int, int]]:
    """Rows and bytes of each batch that Python gets."""

    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})

    with limit_of(world.spark, small=small):
        return [(row.rows, row.bytes) for row in frame.mapInArrow(sizes, "rows long, bytes long").collect()]


def test_a_large_record_among_small_ones_is_written_once_like_any_other(world: World) -> None:
    world.kafka.create_topic(world.topic, 2)
    values = [{"n": n, "pad": "x" * (LARGE if n == 50 else 10)} for n in range(100)]
    world.produce(values, 0)
    world.produce(values[:20], 1)
    driver = world.drain()
    assert world.rows(0) == values
    assert world.rows(1) == values[:20]
    assert world.verify(driver).ok
    assert driver.reporter.status()["retry"]["attempts"] == 0


def test_later_flushes_of_a_partition_with_large_records_go_on(world: World) -> None:
    world.kafka.create_topic(world.topic)
    driver = world.driver(run="Continuous", flush={"records": 2})
    values: list[Any] = []
    for size in (10, LARGE, 10, LARGE):
        more = [{"n": len(values) + n, "pad": "x" * size} for n in range(2)]
        world.produce(more)
        values += more
        driver.step()
        assert world.rows() == values


@pytest.mark.parametrize(("key", "value", "large"), [(0, SMALL, False), (0, SMALL + 1, True), (SMALL, 1, True)])
def test_records_above_the_limit_are_flagged_as_large(world: World, key: int, value: int, large: bool) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"k" * key, b"v" * value, None, None), (None, None, None, None)], 0)
    first, tombstone = without_large(read(world, 2, ("key", "value"))).collect()
    assert (first.offset, first.large) == (0, large)
    if large:
        assert (first.key, first.value) == (None, None)
    else:
        assert (len(first.key), len(first.value)) == (key, value)
    assert (tombstone.offset, tombstone.value, tombstone.large) == (1, None, False)


def test_large_records_come_in_small_batches(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"x" * LARGE] * 60)
    batches = handed_over(world, read(world, 60, ("value",)), small=False)
    assert sum(rows for rows, _ in batches) == 60
    assert max(size for _, size in batches) <= BATCH_BYTES + 2 * LARGE


def test_batches_of_small_records_have_no_more_bytes_than_others(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"x" * SMALL] * (BATCH_RECORDS + 1))
    batches = handed_over(world, without_large(read(world, BATCH_RECORDS + 1, ("value",))), small=True)
    assert [rows for rows, _ in batches] == [BATCH_RECORDS, 1]
    assert max(size for _, size in batches) <= BATCH_BYTES * 1.1
    assert world.spark.conf.get(BATCH_LIMIT) == str(BATCH_BYTES)
