"""Where a partition begins, from what another sink left behind: no record is lost, whatever it left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.base.errors import FinalError
from s3sink_job.flush.kafka_metadata import Offsets
from s3sink_job.handover.object_names import named_objects
from s3sink_job.handover.positions import Evidence, NamedObject, starts

AT = ("orders", 0)


def test_names_of_confluent_lenses_and_plain_folders_are_read() -> None:
    keys = [
        "topics/orders/partition=0/orders+0+0000000010.snappy.parquet",
        "demo/orders/country=DE/orders(1_000000000042).json",
        "data/orders/2/000000000099_1700000000000_1700000001000.avro",
        "data/orders/2/0000000000000000120.jsonl.gz",
        "topics/orders/_SUCCESS",
        "orders/notes.txt",
    ]
    assert named_objects(keys, lenses=True) == {
        ("orders", 0): [NamedObject(keys[0], 10)],
        ("orders", 1): [NamedObject(keys[1], 42, last=True)],
        ("orders", 2): [NamedObject(keys[2], 99, last=True), NamedObject(keys[3], 120, last=True)],
    }
    assert not named_objects(keys, lenses=False)["orders", 2][0].last


offsets = st.integers(0, 50)


@given(earliest=offsets, length=offsets, committed=offsets, firsts=st.lists(offsets, max_size=5))
def test_every_offset_is_written_by_one_of_both_or_listed(
    earliest: int, length: int, committed: int, firsts: list[int]
) -> None:
    kafka = Offsets(earliest, earliest + length, earliest + length)
    objects = tuple(NamedObject(f"o{first}", first) for first in firsts)
    try:
        (start,) = starts({AT: Evidence(committed, objects=objects)}, {AT: kafka})
    except FinalError:
        assert committed > kafka.end
        return
    lost = range(*start.missing) if start.missing else range(0)
    assert set(range(committed, start.offset)) == set(lost)
    assert start.offset >= kafka.earliest
    assert set(start.objects) == {one.key for one in objects if one.offset >= committed}
    assert start.clean == (not start.objects and not lost)


def test_a_position_beyond_the_end_is_refused_with_its_partition() -> None:
    with pytest.raises(FinalError, match="orders-0: the consumer group is at offset 9, and the topic ends at 5"):
        starts({AT: Evidence(9)}, {AT: Offsets(0, 5, 5)})


def test_a_partition_that_was_never_read_begins_at_the_earliest_offset() -> None:
    (start,) = starts({}, {AT: Offsets(3, 9, 9)})
    assert (start.offset, start.clean) == (3, True)
    (start,) = starts({AT: Evidence(objects=(NamedObject("o", 4),))}, {AT: Offsets(3, 9, 9)})
    assert (start.repeated, start.objects) == ((3, None), ("o",))
