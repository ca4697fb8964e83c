"""Rows of interleaved objects come in the order of their offsets, and checksums find what differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.decode.settings import Decoding
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.settings import Output
from s3sink_job.layout.settings import Grouping
from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.restore import record_order
from s3sink_job.restore.checksums import Checksum, checksum_from_text, record_digests, total
from s3sink_job.restore.record_order import in_order, rows_of, runs_of
from s3sink_job.restore.sending import failure_of
from s3sink_job.restore.stored_records import RECORDS
from s3sink_job.shape.dead_letters import HEADERS
from s3sink_job.shape.settings import Shape
from s3sink_job.task.encoding import Encoding

ENCODING = Encoding(Decoding("Bytes", "Bytes"), Shape(meta="Kafka"), Grouping(), Output("Parquet"))


def written(name: int, offsets: list[int]) -> WrittenObject:
    entry = ObjectEntry(str(name), "", (), "t", 1, 0, offsets[0], offsets[-1], len(offsets), 0)
    return WrittenObject(entry, ENCODING)


def table(offsets: list[int]) -> pa.Table:
    count = len(offsets)
    columns = {"offset": offsets, "timestamp": [0] * count, "key": [None] * count, "value": [b""] * count}
    return pa.Table.from_pydict({**columns, "headers": [[]] * count, "left_out": [False] * count}, RECORDS)


@pytest.fixture(scope="module")
def spill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spill]:
    made = Spill(SpillPlace(str(tmp_path_factory.mktemp("spill")), 2**30))
    yield made
    made.close()


@given(owners=st.lists(st.integers(0, 4), min_size=1, max_size=60), gaps=st.integers(1, 5), batch=st.integers(1, 9))
def test_rows_of_interleaved_objects_come_in_order(owners: list[int], gaps: int, batch: int, spill: Spill) -> None:
    offsets = [number * gaps for number in range(len(owners))]
    groups = {owner: [at for at, own in zip(offsets, owners, strict=True) if own == owner] for owner in set(owners)}
    objects = [written(owner, own) for owner, own in groups.items()]
    found: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_order, "BATCH_ROWS", batch)
        for run in runs_of(objects):
            for rows in in_order(run, lambda one: table(groups[int(one.entry.key)]), spill):
                found += rows.column("offset").to_pylist()
    assert found == offsets
    assert sum(map(rows_of, runs_of(objects))) == len(offsets)
    assert spill.used == 0


def test_objects_that_do_not_overlap_are_runs_of_their_own() -> None:
    objects = [written(2, [20, 30]), written(0, [0, 9]), written(1, [10, 25])]
    assert [[one.entry.key for one in run] for run in runs_of(objects)] == [["0"], ["1", "2"]]


def records(rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]]) -> pa.Table:
    keys, values, headers, times = zip(*rows, strict=True)
    lists = [[{"key": name, "value": value} for name, value in own] for own in headers]
    return pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(lists, HEADERS),
            "timestamp": pa.array(times, pa.int64()),
        }
    )


def test_any_difference_of_a_record_changes_its_digest() -> None:
    rows = [
        (b"k", b"v", [], 1),
        (b"k", b"v", [], 2),
        (None, b"v", [], 1),
        (b"", b"v", [], 1),
        (b"v", b"k", [], 1),
        (b"k", None, [], 1),
        (b"k", b"", [], 1),
        (b"k", b"v", [("a", None)], 1),
        (b"k", b"v", [("a", b"")], 1),
        (b"k", b"v", [("a", b"1"), ("b", b"2")], 1),
        (b"k", b"v", [("b", b"2"), ("a", b"1")], 1),
    ]
    assert len(set(record_digests(records(rows)).tolist())) == len(rows)


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=30, unique=True), st.data(), st.lists(st.integers(1, 30))
)
def test_a_checksum_is_the_same_in_any_pieces_and_changes_with_the_order(
    digests: list[int], data: st.DataObject, cuts: list[int]
) -> None:
    whole = np.array(digests, np.uint64)
    expected = Checksum().plus(whole)
    pieces = Checksum()
    for part in np.split(whole, sorted(cut for cut in set(cuts) if cut < len(digests))):
        pieces = pieces.plus(part)
    assert pieces == expected == checksum_from_text(expected.to_text())
    one, other = data.draw(st.lists(st.integers(0, len(digests) - 1), min_size=2, max_size=2, unique=True))
    whole[[one, other]] = whole[[other, one]]
    swapped = Checksum().plus(whole)
    assert swapped.without_order == expected.without_order == total([expected])
    # Two that differ by a multiple of a power of two may not be noticed. None of the drawn ones does.
    same = (digests[one] - digests[other]) * (one - other) % 2**64 == 0
    assert (swapped == expected) == same


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x\nRuntimeError: s3sink[ObjectMissing,False]: raw/a\nis gone [s3sink]\nmore", "ObjectMissing"),
        (
            "Caused by: org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer",
            "ProducerFenced",
        ),
        ("java.lang.IllegalStateException: ProgressLost: group g has no offset of t-0\n\tat x", "ProgressLost"),
        ("Caused by: java.io.IOException: no space left", "RestoreFailed"),
    ],
)
def test_the_cause_is_found_in_the_trace_of_a_failed_job(text: str, reason: str) -> None:
    assert failure_of(text).reason == reason


def test_the_sender_is_part_of_the_package() -> None:
    import s3sink_job.restore

    assert (Path(s3sink_job.restore.__file__).parent / "RecordSender.java").is_file()
