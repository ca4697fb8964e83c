"""Slices of one flush are read by several tasks, and may find columns that do not fit each other."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from s3sink_api.spec.format import EvolutionMode
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns
from s3sink_job.flush.manifest import ObjectEntry, Slice
from s3sink_job.task.committable import CommitCheck, TypedTopic
from s3sink_job.task.slice_result import SliceResult
from tests.flush.examples import state_of


class Aborted:
    """A bucket that notes which uploads are aborted."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def named(self, name: str) -> Aborted:
        return self

    def abort_upload(self, key: str, upload_id: str) -> None:
        self.keys.append(key)


def result(partition: int, end: int = 10, **columns: pa.DataType) -> SliceResult:
    entry = ObjectEntry(f"key-{partition}", "upload", (), "t", 1, partition, first=0, last=9, rows=10, bytes=1)
    return SliceResult(
        Slice("t", 1, partition, 0, 10, "Records"), end, (entry,), schema=KnownColumns(pa.struct(list(columns.items())))
    )


def committed(
    *results: SliceResult, typed: bool = True, mode: EvolutionMode = "Backward"
) -> tuple[list[int], list[str]]:
    bucket = Aborted()
    known = {"t": TypedTopic(NO_COLUMNS, mode)} if typed else {}
    check = CommitCheck(state_of(5), {}, cast(Any, None), cast(Any, bucket), known)
    return [r.slice.partition for r in check.of_one_schema(list(results))], bucket.keys


def test_a_slice_that_does_not_fit_an_earlier_one_is_read_again() -> None:
    one, other, wider = result(0, a=pa.int32()), result(1, a=pa.string()), result(2, a=pa.int64(), b=pa.date32())
    assert committed(one, other, wider) == ([0, 2], ["key-1"])


def test_a_slice_that_commits_nothing_does_not_decide_on_columns() -> None:
    assert committed(result(0, end=0, a=pa.string()), result(1, a=pa.int32())) == ([0, 1], [])


def test_the_mode_holds_between_slices() -> None:
    one, wider = result(0, a=pa.int32()), result(1, a=pa.int64())
    assert committed(one, wider) == ([0, 1], [])
    assert committed(one, wider, mode="Forward") == ([0], ["key-1"])


def test_inferred_columns_always_share_a_type() -> None:
    assert committed(result(0, a=pa.int64()), result(1, a=pa.string()), typed=False) == ([0, 1], [])
