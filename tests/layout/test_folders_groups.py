"""Groups: records of one folder and one window of record time share an object."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.layout.groups import Groups, groups_of
from s3sink_job.layout.settings import Grouping
from tests.decode.batches import Record, batch_of

PLAIN = Grouping()
HOURLY = Grouping(window=3600.0)
HOUR = 3_600_000


def named(groups: Groups | None) -> list[tuple[str, ...]]:
    """The group of each row."""
    assert groups is not None
    assert groups.codes.type == pa.int32()
    assert groups.codes.null_count == 0
    found = [groups.keys[code] for code in groups.codes.to_pylist()]
    assert list(dict.fromkeys(found)) == groups.keys
    return found


def test_without_folders_and_windows_all_records_are_one_group() -> None:
    assert groups_of(batch_of(b"a", b"b"), PLAIN, None) is None


def test_a_window_alone_is_the_group_that_old_manifests_have() -> None:
    batch = batch_of(*(Record(b"", millis=millis) for millis in (HOUR, 2 * HOUR - 1, 2 * HOUR, -1, HOUR)))

    assert named(groups_of(batch, HOURLY, None)) == [
        ("3600000",),
        ("3600000",),
        ("7200000",),
        ("-3600000",),
        ("3600000",),
    ]


def test_a_folder_alone_is_the_group() -> None:
    folders = pa.array(["b", "a", "b", ""])

    assert named(groups_of(batch_of(*[b""] * 4), PLAIN, folders)) == [("b",), ("a",), ("b",), ("",)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2 * HOUR, 3 * HOUR)), min_size=1, max_size=12))
def test_folder_and_window_together_are_the_group(rows: list[tuple[str, int]]) -> None:
    batch = batch_of(*(Record(b"", millis=millis) for _, millis in rows))

    found = named(groups_of(batch, HOURLY, pa.array([folder for folder, _ in rows])))

    assert found == [(folder, str(millis // HOUR * HOUR)) for folder, millis in rows]
