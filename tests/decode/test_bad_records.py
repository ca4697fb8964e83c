"""Bad records as values: each has its row, stage, reason and message, and its raw bytes are at hand."""

from __future__ import annotations

import pytest

from s3sink_job.decode.bad_records import BadRecord, BadRecords, Fault, Stage
from s3sink_job.flush.manifest import Slice
from s3sink_job.layout.settings import LayoutItem, ObjectLayout
from s3sink_job.task.encoding import Encoding
from s3sink_job.task.record_pipeline import RecordPipeline
from tests.decode.batches import TOPIC, Record, batch_of
from tests.encodings import encoding

GOOD = Record(b'{"a":1}', key=b"1")
BY_FIELD = ObjectLayout(items=(LayoutItem("Field", "", ("a",)),), missing="Fail")
LATE = 253_402_300_800_000


def refused(wanted: Encoding, record: Record) -> BadRecord:
    """What the pipeline finds wrong with one record between two good ones."""
    slice = Slice(TOPIC, 1, 3, 70, 73, "records")
    prepared = RecordPipeline(wanted, slice, wanted.row_builder(TOPIC), 900).prepare(batch_of(GOOD, record, GOOD))
    assert prepared is not None
    (found,) = prepared.bad
    assert prepared.filter(prepared.bad.good_rows()).offsets.to_pylist() == [70, 72]
    return found


@pytest.mark.parametrize(
    ("wanted", "record", "stage", "reason"),
    [
        (encoding(), Record(b"\xff"), Stage.DECODE, "NotUtf8"),
        (encoding(), Record(b"{"), Stage.DECODE, "NotJson"),
        (encoding(meta="Kafka", key="Json"), Record(b"{}", key=b"{"), Stage.DECODE, "NotJson"),
        (encoding(format="Parquet"), Record(b"[1]"), Stage.DECODE, "NotAnObject"),
        (encoding(format="Parquet"), Record(b'{"a":1,"a":2}'), Stage.DECODE, "FieldTwice"),
        (encoding(format="Parquet"), Record(b'{"_more":1}'), Stage.DECODE, "ReservedField"),
        (encoding(format="Parquet"), Record(b"[" * 600), Stage.DECODE, "TooDeep"),
        (encoding(nulls="Fail"), Record(None), Stage.SHAPE, "NullValue"),
        (encoding(meta="Kafka"), Record(b'{"_key":1}'), Stage.SHAPE, "FieldTaken"),
        (encoding(format="Parquet", meta="Kafka"), Record(b'{"_key":1}'), Stage.SHAPE, "FieldTaken"),
        (encoding(format="Text", value="String"), Record(b"a\nb"), Stage.SHAPE, "LineBreak"),
        (encoding(layout=BY_FIELD), Record(b"{}"), Stage.LAYOUT, "FieldMissing"),
        (encoding(layout=BY_FIELD), Record(b'{"a":[]}'), Stage.LAYOUT, "NotAScalar"),
        (encoding(layout=BY_FIELD), Record(b'{"a":"%s"}' % (b"x" * 999)), Stage.LAYOUT, "KeyTooLong"),
        (encoding(format="Csv", meta="Kafka"), Record(b"{}", millis=LATE), Stage.FORMAT, "TimeOutOfRange"),
        (encoding(format="Orc", meta="Kafka"), Record(b"{}", millis=LATE), Stage.FORMAT, "TimeOutOfRange"),
        (encoding(format="Csv", quote="None"), Record(b'{"a":"x,y"}'), Stage.FORMAT, "NeedsQuotes"),
    ],
)
def test_each_stage_names_its_fault(wanted: Encoding, record: Record, stage: Stage, reason: str) -> None:
    found = refused(wanted, record)

    assert (found.row, found.stage, found.reason) == (1, stage, reason)
    assert found.message


def test_a_bad_record_is_at_hand_with_key_value_and_headers() -> None:
    bad = BadRecords(batch_of(GOOD, Record(b"\xff", key=b"k", headers=[("h", b"\x00")]), GOOD))

    bad.add(Stage.DECODE, {1: Fault("NotUtf8", "value is not UTF-8")})

    (record,) = bad.records().to_pylist()
    assert (record["offset"], record["key"], record["value"]) == (71, b"k", b"\xff")
    assert record["headers"] == [{"key": "h", "value": b"\x00"}]


def test_the_first_fault_of_a_record_counts() -> None:
    bad = BadRecords(batch_of(GOOD, GOOD, GOOD))

    bad.add(Stage.SHAPE, {2: Fault("Later", "later"), 1: Fault("First", "first")})
    bad.add(Stage.LAYOUT, {1: Fault("Second", "second")})

    assert list(bad) == [
        BadRecord(1, Stage.SHAPE, "First", "first", "first"),
        BadRecord(2, Stage.SHAPE, "Later", "later", "later"),
    ]
    assert (len(bad), 0 in bad, 1 in bad) == (2, False, True)
    assert bad.good_rows().to_pylist() == [True, False, False]


def test_a_batch_without_bad_records_is_good_as_a_whole() -> None:
    bad = BadRecords(batch_of(GOOD, GOOD))

    assert not bad
    assert bad.messages == {}
    assert bad.good_rows().to_pylist() == [True, True]
