"""Whether the dead letters that the manifests list are in their topics, each once.

Only what a reader of committed records sees counts. Others may write to the same topic, and its retention may have
removed dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink
from s3sink_job.flush.manifest import GapReason, LetterTopicEntry, Slice
from s3sink_job.flush.state import same_topic
from s3sink_job.kafka.admin import Admin, KafkaUnavailable
from s3sink_job.kafka.slice_reader import collect_table, read_slices
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration, PartitionHistory
from s3sink_job.proof.letter_topic_task import COLUMNS, RESULT, RESULT_SCHEMA, LetterTopicTask
from s3sink_job.proof.verify_report import MAX_FINDINGS, VerifyReport

RECORD = ["topic", "generation", "partition", "offset"]
LETTER = ["letter_topic", *RECORD]
LISTED = pa.schema([*(RESULT.field(name) for name in LETTER), ("number", pa.int64()), ("topic_id", pa.string())])
"""Dead letters with context headers that the manifests list, and the number of their flush."""


@dataclass(frozen=True)
class LetterLog:
    """A topic of dead letters, as Kafka has it now."""

    id: str
    slices: tuple[Slice, ...]
    """What committed readers can read."""
    compacted: bool

    @property
    def shortened(self) -> set[int]:
        """Partitions whose first records are gone."""
        return {part.partition for part in self.slices if part.start > 0}

    def removed_up_to(self, letters: pa.Table) -> float:
        """The last flush whose dead letters may have been removed. A partition has them in the order of flushes."""
        if self.compacted:
            return float("inf")
        first = {
            number: pc.min(letters.filter(pc.equal(letters.column("letter_partition"), number)).column("number"))
            for number in self.shortened
        }
        return max((float("inf") if n.as_py() is None else n.as_py() for n in first.values()), default=0)


def check_sent_letters(
    sink: S3Sink,
    spark: SparkSession,
    connection: Mapping[str, str],
    admin: Admin,
    history: FlushHistory,
    report: VerifyReport,
) -> pa.Table:
    """Returns the listed dead letters that are in the topics, with digests of their contents."""
    topics = {one.topic.name for known in history.partitions.values() for one in known.sent}
    if not topics:
        return RESULT.empty_table()
    logs = {name: _log(name, admin) for name in sorted(topics)}
    found = _read(sink, spark, connection, [part for log in logs.values() if log for part in log.slices])
    placed = found.filter(found.column("offset").is_valid())
    known = pc.is_in(placed.column("flush"), value_set=pa.array(sorted(history.flushes), pa.string()))
    letters = placed.filter(known)
    report.other_letters = placed.num_rows - letters.num_rows
    listed = _listed(history)
    _check_places(listed, letters, logs, report)
    _check_counts(history, found.filter(found.column("offset").is_null()), logs, report)
    return letters.join(listed.select(LETTER), LETTER, join_type="left semi")


def _log(name: str, admin: Admin) -> LetterLog | None:
    """None if the topic does not exist."""
    topic = admin.describe([name])[name]
    if topic is None:
        return None
    wanted = [(name, number) for number in topic.partitions]
    offsets = admin.offsets(wanted, committed=True)
    if silent := [f"{name}-{at[1]}" for at in wanted if at not in offsets]:
        raise KafkaUnavailable(f"Kafka returns no offsets of {', '.join(silent)}, which may have dead letters")
    slices = tuple(Slice(name, 0, at[1], o.earliest, o.stable, "Verify") for at, o in offsets.items())
    return LetterLog(topic.id, slices, compacted=bool(admin.compacted([name])))


def _read(sink: S3Sink, spark: SparkSession, connection: Mapping[str, str], slices: list[Slice]) -> pa.Table:
    slices = [part for part in slices if part.start < part.end]
    if not slices:
        return RESULT.empty_table()
    frame = read_slices(
        spark,
        slices,
        connection,
        columns=COLUMNS,
        group=f"s3sink.{sink.metadata.namespace}.{sink.metadata.name}.verify",
        isolation="ReadCommitted",
        topic=True,
    )
    task = LetterTopicTask(sink.id)
    return collect_table(frame.mapInArrow(task, RESULT_SCHEMA), "reading the topic of dead letters").cast(RESULT)


def _listed(history: FlushHistory) -> pa.Table:
    tables = [
        _listed_in(place, one.topic, one.flush, _without_gaps(known, one.offsets))
        for place, known in history.partitions.items()
        for one in known.sent
        if one.topic.context
    ]
    return pa.concat_tables(tables) if tables else LISTED.empty_table()


def _listed_in(place: PartitionGeneration, to: LetterTopicEntry, flush: int, offsets: list[int]) -> pa.Table:
    constant = {"letter_topic": to.name, **place._asdict(), "number": flush, "topic_id": to.id}
    columns = {
        name: pa.repeat(pa.scalar(value, LISTED.field(name).type), len(offsets)) for name, value in constant.items()
    }
    return pa.table({**columns, "offset": pa.array(offsets, pa.int64())}).select(LISTED.names).cast(LISTED)


def _without_gaps(known: PartitionHistory, offsets: tuple[int, ...]) -> list[int]:
    """Dead letters whose objects were lost before they were sent, with their records, are gaps."""
    lost = [gap for gap in known.gaps if gap.reason == GapReason.UPLOAD_LOST]
    return [offset for offset in offsets if not any(gap.start <= offset < gap.end for gap in lost)]


def _check_places(
    listed: pa.Table, letters: pa.Table, logs: Mapping[str, LetterLog | None], report: VerifyReport
) -> None:
    """Of dead letters with context headers: each is there once, and no other."""
    counted = letters.group_by(LETTER).aggregate([([], "count_all")])
    joined = listed.join(counted, LETTER, join_type="left outer")
    there = joined.filter(joined.column("count_all").is_valid())
    report.sent += there.num_rows
    twice = there.filter(pc.greater(there.column("count_all"), 1))
    report.counts.duplicates += (pc.sum(twice.column("count_all")).as_py() or 0) - twice.num_rows
    _find(report, twice, "is there {count_all} times")
    more = counted.join(listed.select(LETTER), LETTER, join_type="left anti")
    report.counts.duplicates += pc.sum(more.column("count_all")).as_py() or 0
    _find(report, more, "no flush lists it")
    absent = joined.filter(joined.column("count_all").is_null())
    numbers = pc.list_element(pc.split_pattern(letters.column("flush"), "-"), 0).cast(pa.int64())
    letters = letters.append_column("number", numbers)
    for name, log in logs.items():
        own = absent.filter(pc.equal(absent.column("letter_topic"), name))
        there = letters.filter(pc.equal(letters.column("letter_topic"), name))
        missing = own.filter(pc.invert(_removed(own, log, there)))
        report.gone += own.num_rows - missing.num_rows
        report.counts.missing += missing.num_rows
        _find(report, missing, "is not there")


def _removed(absent: pa.Table, log: LetterLog | None, letters: pa.Table) -> pa.Array:
    """Which dead letters the topic may have had once."""
    if log is None:
        return pa.repeat(True, absent.num_rows)
    by_retention = pc.less_equal(absent.column("number").cast(pa.float64()), float(log.removed_up_to(letters)))
    same = [topic_id for topic_id in absent.column("topic_id").unique().to_pylist() if same_topic(topic_id, log.id)]
    recreated = pc.invert(pc.is_in(absent.column("topic_id"), value_set=pa.array(same, pa.string())))
    return pc.or_(by_retention, recreated)


def _find(report: VerifyReport, letters: pa.Table, what: str) -> None:
    text = (
        "{topic}-{partition} offset {offset}, generation {generation}, as a dead letter in the topic {letter_topic}: "
    )
    for row in letters.slice(0, MAX_FINDINGS).to_pylist():
        report.counts.add_finding((text + what).format(**row))


def _check_counts(
    history: FlushHistory, records: pa.Table, logs: Mapping[str, LetterLog | None], report: VerifyReport
) -> None:
    """Of dead letters without context headers: nothing says which is which, so they are only counted."""
    for name, log in logs.items():
        sent = [
            (one.topic, len(_without_gaps(known, one.offsets)))
            for known in history.partitions.values()
            for one in known.sent
            if one.topic.name == name and not one.topic.context
        ]
        wanted = sum(count for _, count in sent)
        there = min(wanted, pc.sum(pc.equal(records.column("letter_topic"), name)).as_py() or 0)
        report.sent += there
        report.only_counted += there
        kept = log is not None and not log.compacted and not log.shortened
        if kept and log is not None and all(same_topic(entry.id, log.id) for entry, _ in sent):
            report.counts.missing += wanted - there
            if there < wanted:
                report.counts.add_finding(
                    f"topic {name}: {there} records without context headers, {wanted} dead letters without were sent"
                )
        else:
            report.gone += wanted - there


def letters_of(letters: pa.Table, place: PartitionGeneration) -> pa.Table:
    """The dead letters of one partition, in the order of their offsets."""
    for name, value in place._asdict().items():
        letters = letters.filter(pc.equal(letters.column(name), value))
    return letters.select(["offset", "timestamp", "digest"]).sort_by("offset").combine_chunks()
