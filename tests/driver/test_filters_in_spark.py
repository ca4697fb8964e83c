"""Filters that Spark evaluates: every record counts, also those that no task has seen."""

from __future__ import annotations

from confluent_kafka import Producer

from s3sink_job.kafka.left_out import COUNTED_END
from s3sink_job.task.slice_task import SliceTask
from tests.driver.test_transforms import proved, slices
from tests.harness import World
from tools.parts.kafka import Record

WHERE = {"where": "_headers['kind'] = 'b' AND n >= 20"}


def records(count: int, first: int = 0, bad: int | None = None) -> list[Record]:
    """Every tenth has the header `kind: b`."""
    values = [b'{"n":%d}' % n if n != bad else b"no json" for n in range(first, first + count)]
    return [(None, value, [("kind", b"a" if n % 10 else b"b")], None) for n, value in enumerate(values, first)]


def test_records_that_spark_leaves_out_are_counted_and_proved(world: World, jobs: list[SliceTask]) -> None:
    world.kafka.create_topic(world.topic, 2)
    world.kafka.produce(world.topic, records(1000), 0)
    world.kafka.produce(world.topic, records(35), 1)
    driver = world.drain(transform=WHERE, flush={"records": 10_000})

    (task,) = jobs
    assert list(task.conditions) == [world.topic]
    assert [row["n"] for row in world.rows(0)] == list(range(20, 1000, 10))
    assert [row["n"] for row in world.rows(1)] == [20, 30]
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"]) == (98 + 2, 902 + 33)
    assert sorted((part["rows"], part["filtered"]) for part in slices(world)) == [(2, 33), (98, 902)]
    # What records weigh is an estimate from those that were handed over, for the next plan.
    assert driver.committer is not None
    read = driver.committer.state.topics[world.topic].partitions[0].read_per_offset
    assert read is not None
    assert 15 < read < 60


def test_a_bad_record_stops_the_count_where_the_slice_ends(world: World, jobs: list[SliceTask]) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.kafka.produce(world.topic, records(1000, bad=510), 0)
    problem = world.drain(transform=WHERE).problems[world.topic, 0]

    assert "offset 510" in problem.message
    assert [row["n"] for row in world.rows()] == list(range(20, 510, 10))
    assert [(part["end"], part["rows"], part["filtered"]) for part in slices(world)] == [(510, 49, 461)]
    # The text of a record that Spark leaves out is never looked at.
    world.kafka.produce(world.topic, [(None, b"no json", [("kind", b"a")], None)], 0)
    driver = world.drain(transform=WHERE, errors={"records": "Skip"})
    doc = proved(world, driver)
    assert (doc["records"], doc["skipped"], doc["filtered"]) == (97, 1, 903)


def test_a_slice_whose_end_has_no_records_is_read_again_with_all_of_them(world: World, jobs: list[SliceTask]) -> None:
    """An aborted transaction at the end: its offsets have no record that could say how many were left out."""
    world.kafka.create_topic(world.topic, 1)
    world.kafka.produce(world.topic, records(400), 0)
    aborted(world, records(3 * COUNTED_END, first=400))
    driver = world.drain(transform=WHERE, flush={"records": 10_000})

    assert [task.reading.all_records for task in jobs] == [False, True]
    assert [row["n"] for row in world.rows()] == list(range(20, 400, 10))
    assert [(part["rows"], part["filtered"]) for part in slices(world)] == [(38, 362)]
    assert proved(world, driver)["filtered"] == 362


def test_a_slice_of_which_nothing_was_handed_over_is_not_taken_for_empty(world: World, jobs: list[SliceTask]) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.kafka.produce(world.topic, [record for n, record in enumerate(records(300)) if n % 10], 0)
    aborted(world, records(2 * COUNTED_END))
    driver = world.drain(transform=WHERE, flush={"records": 10_000})

    assert [task.reading.all_records for task in jobs] == [False, True]
    assert world.objects() == []
    assert proved(world, driver)["filtered"] == 270


def test_a_limit_of_what_is_read_counts_all_records(world: World, jobs: list[SliceTask]) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.kafka.produce(world.topic, records(300), 0)
    world.drain(transform=WHERE, source={"maxBytesPerSecond": "10Mi"})
    assert [dict(task.conditions) for task in jobs] == [{}]


def aborted(world: World, given: list[Record]) -> None:
    producer = Producer({"bootstrap.servers": world.kafka.bootstrap, "transactional.id": world.topic})
    producer.init_transactions()
    producer.begin_transaction()
    for _, value, headers, _ in given:
        producer.produce(world.topic, value, partition=0, headers=headers)
    producer.flush()
    producer.abort_transaction()
