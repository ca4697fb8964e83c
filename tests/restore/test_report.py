"""The proof and what people read of it."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from s3sink_job.cli.restore_text import _Progress, progress_of, restore_text
from s3sink_job.flush.kafka_metadata import Offsets
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.restore.checksums import Checksum
from s3sink_job.restore.plan import RestoreSlice
from s3sink_job.restore.report import RestoreReport
from s3sink_job.restore.topic_check import deleted_since, differences

REPORT = RestoreReport("local/default/orders", "abc", rows=10, objects=2, topics=["copy"], records=10, found=10)


def checksum(*digests: int) -> Checksum:
    return Checksum().plus(np.array(digests, np.uint64))


def slices(*, by_key: bool = False) -> list[RestoreSlice]:
    places = [PartitionGeneration("orders", 1, partition) for partition in range(2)]
    return [RestoreSlice(place, "copy", None if by_key else place.partition, ()) for place in places]


SENT = [checksum(1, 2, 3), checksum(4, 5)]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({0: SENT[0], 1: SENT[1]}, ""),
        ({0: SENT[0]}, "copy-1: 0 records, 2 were sent"),
        ({0: SENT[0], 1: checksum(4, 5, 5)}, "copy-1: 3 records, 2 were sent"),
        ({0: SENT[0], 1: checksum(4, 6)}, "copy-1: its records differ"),
        ({0: checksum(2, 1, 3), 1: SENT[1]}, "copy-0: its records are in another order"),
        ({0: SENT[0], 1: SENT[1], 2: checksum(9)}, "copy-2: 1 records, 0 were sent"),
    ],
)
def test_each_difference_of_a_partition_is_named(found: dict[int, Checksum], words: str) -> None:
    there = {("copy", partition): one for partition, one in found.items()}
    findings = differences(slices(), SENT, there, frozenset())
    assert (len(findings), words in "".join(findings)) == (1 if words else 0, True), findings


def test_by_key_the_whole_topic_is_compared_whatever_the_partitions() -> None:
    there = {("copy", 0): checksum(5, 1), ("copy", 1): checksum(4, 3), ("copy", 2): checksum(2)}
    assert differences(slices(by_key=True), SENT, there, frozenset()) == []
    less = {**there, ("copy", 2): checksum(7)}
    assert "differ" in differences(slices(by_key=True), SENT, less, frozenset())[0]


def test_a_compacted_topic_may_have_fewer_records_and_never_more() -> None:
    compacted = frozenset({"copy"})
    assert differences(slices(), SENT, {("copy", 0): checksum(1)}, compacted) == []
    assert differences(slices(), SENT, {("copy", 0): checksum(*range(6))}, compacted)


def test_records_that_kafka_has_deleted_by_then_are_found() -> None:
    base = {("copy", 0): 5, ("copy", 1): 0}
    ends = {("copy", 0): Offsets(5, 9, 9), ("copy", 1): Offsets(7, 9, 9)}
    assert deleted_since(base, ends) == ["copy-1: Kafka has deleted the first 7 offsets already"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "proved: 10 records are in the topic"),
        ({"findings": ["copy-0: its records differ"]}, "NOT proved"),
        ({"rows": 0}, "has no objects to restore"),
        ({"dry_run": True, "created": ["copy"]}, "would send 10 rows of 2 objects to copy; would create copy"),
        ({"finished_before": 0.0}, "was finished at 1970-01-01"),
        ({"sent_before": 4}, "resumed restore abc: 4 of 10 rows were sent before"),
        ({"absent": ["3 offsets in recorded gaps"]}, "not in the objects: 3 offsets in recorded gaps"),
        ({"compacted": ["copy"]}, "copy is compacted"),
    ],
)
def test_the_report_says_what_happened(changes: dict[str, Any], words: str) -> None:
    assert words in restore_text(replace(REPORT, **changes))


def test_the_progress_has_a_share_a_rate_and_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _Progress()
    shown.estimate(100, 1_100, 0.0)
    assert str(shown.estimate(600, 1_100, 5.0)) == "55% · 600 of 1,100 records · 100 records/s · 5 s left"
    with progress_of() as show:
        show(0, 10)
        show(5, 10)
        show(10, 10)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["0%", "100%"], "not more than one in ten seconds"


def test_on_a_terminal_there_is_a_bar() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(_Progress().bar(5, 10))
    assert "━" in console.file.getvalue()  # type: ignore[attr-defined]
