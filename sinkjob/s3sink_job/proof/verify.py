"""The proof, from state, manifests, objects and Kafka, that every committed record was written once.

It writes nothing and takes nothing over, so it may run beside a working driver. It covers what was committed when it
started.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink
from s3sink_job.base.errors import TransientError
from s3sink_job.base.secrets import Secrets
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.ending_offsets import left_to_end
from s3sink_job.flush.refresh import describe_totals, visible_state, written_totals
from s3sink_job.flush.state import RefreshPhase, SinkState
from s3sink_job.kafka.admin import Admin
from s3sink_job.proof.committed_ranges import check_ranges
from s3sink_job.proof.flush_history import read_history
from s3sink_job.proof.kafka_comparison import comparable_partitions, compare_with_kafka
from s3sink_job.proof.listed_objects import check_listed_objects
from s3sink_job.proof.replays import replay_history, with_replays
from s3sink_job.proof.row_counts import count_rows
from s3sink_job.proof.sent_letters import check_sent_letters
from s3sink_job.proof.verify_report import VerifyReport
from s3sink_job.stores.bucket import Bucket

PUBLISH_TIMEOUT = 15.0
"""A working driver publishes a flush within moments. A dead one will not."""


def verify(
    sink: S3Sink,
    secrets: Secrets,
    bucket: Bucket,
    ledger: Ledger,
    spark: SparkSession,
    admin: Admin,
    connection: Mapping[str, str],
) -> VerifyReport:
    _published_state(ledger.replays())
    # First: what is replayed was committed by the sink before.
    replayed_until = ledger.replays().load()
    stored = _published_state(ledger)
    if stored is None:
        raise ledger.never_ran()
    state = visible_state(stored)
    history = with_replays(read_history(ledger.current(stored)), replay_history(ledger, state, replayed_until))
    report = VerifyReport(
        sink=sink.id,
        partitions=sum(len(topic.partitions) for topic in state.topics.values()),
        objects=sum(1 for _ in history.objects),
        skipped=history.skipped,
        filtered=history.filtered,
        replayed=history.replayed,
        gaps=history.gaps,
        left=left_to_end(state),
        refresh=_unfinished_run(stored),
    )
    check_ranges(state, history, report.counts)
    check_listed_objects(bucket, ledger, state, history, report)
    letters = check_sent_letters(sink, spark, connection, admin, history, report)
    partitions = comparable_partitions(state, history, admin, ledger)
    compared = compare_with_kafka(sink, secrets, bucket, spark, connection, partitions, letters)
    for counts in compared.values():
        report.counts.add(counts)
    compared_keys = {o.entry.key for at in compared for o in partitions[at].expected.objects}
    for written in history.objects:
        if written.entry.key not in compared_keys:
            count_rows(bucket, written, report)
    if not report.ok and _runs(ledger.load()) != _runs(stored):
        raise TransientError(
            "a full refresh went on while the objects were compared: run `s3sink verify` again",
            reason="RefreshUnderWay",
        )
    return report


def _runs(state: SinkState | None) -> tuple[int, str] | None:
    return (state.refresh.number, state.refresh.phase) if state and state.refresh else None


def _unfinished_run(state: SinkState) -> str | None:
    refresh = state.refresh
    if refresh is None or not refresh.unfinished:
        return None
    text = f"run {refresh.run} is {refresh.phase}"
    if refresh.phase is RefreshPhase.REMOVING:
        return f"{text}: its objects are the current ones"
    return f"{text}: {describe_totals(written_totals(state))}, not current yet"


def _published_state(ledger: Ledger) -> SinkState | None:
    """The state once nothing is being published, or after the time-out as it is."""
    deadline = time.monotonic() + PUBLISH_TIMEOUT
    while True:
        state = ledger.load()
        if state is None or state.publishing is None or time.monotonic() > deadline:
            return state
        time.sleep(0.5)
