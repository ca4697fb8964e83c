"""Which objects of which generations are restored."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.flush.manifest import ObjectEntry, SliceEntry
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration, PartitionHistory, WrittenObject
from s3sink_job.restore.plan import RestorePlan, Selection, make_plan
from s3sink_job.restore.recovery import stored_parts
from s3sink_job.shape.settings import Shape
from tests.harness import failure_of
from tests.restore.test_recovery import encoding

KEPT = encoding("Parquet", Shape(meta="Kafka"), "Bytes", key="Bytes")
WITHOUT_OFFSETS = encoding("Parquet", Shape(meta="Quix"), "Bytes", key="Bytes")


def history(*written: tuple[str, int, int, int, int], how: Any = KEPT) -> FlushHistory:
    """Of slices, each with one object: topic, generation, partition, start, end."""
    partitions: dict[PartitionGeneration, PartitionHistory] = {}
    for topic, generation, partition, start, end in written:
        known = partitions.setdefault(PartitionGeneration(topic, generation, partition), PartitionHistory())
        known.slices.append(
            SliceEntry(topic, generation, partition, start, end, "Records", end - start, read=end - start)
        )
        name = f"{topic}/{generation}/{partition}/{start}"
        entry = ObjectEntry(name, "", (), topic, generation, partition, start, end - 1, end - start, 1)
        known.objects.append(WrittenObject(entry, how))
    return FlushHistory(partitions, frozenset())


def plan(found: FlushHistory, logs: dict[tuple[str, int], str] | None = None, **more: Any) -> RestorePlan:
    selection = more.pop("selection", Selection())
    return make_plan(found, selection, more.pop("targets", {}), logs or {}, **more)


def keys(made: RestorePlan) -> list[str]:
    return [written.entry.key for part in made.slices for written in part.objects]


def test_a_recreated_topic_is_restored_without_the_former_one_which_is_said() -> None:
    found = history(("t", 1, 0, 0, 100), ("t", 1, 1, 0, 50), ("t", 2, 0, 0, 10))
    made = plan(found, {("t", 1): "old", ("t", 2): "new"})
    assert keys(made) == ["t/2/0/0"]
    assert made.absent == ("records of 2 objects of generation 1, of earlier topics; --generation sends them",)
    assert keys(plan(found, selection=Selection(generation=1))) == ["t/1/0/0", "t/1/1/0"]


def test_a_generation_that_goes_on_in_the_same_log_is_restored_with_the_former_one() -> None:
    found = history(("t", 1, 0, 0, 100), ("t", 1, 1, 0, 50), ("t", 3, 0, 100, 110))
    made = plan(found, {("t", 1): "id", ("t", 3): "id"})
    assert keys(made) == ["t/1/0/0", "t/3/0/100", "t/1/1/0"], "partition 1 has nothing of the last generation"
    assert all(not part.bounds for part in made.slices)
    assert made.absent == ()


def test_what_a_later_generation_has_of_the_same_log_is_taken_from_there() -> None:
    found = history(("t", 1, 0, 0, 40), ("t", 1, 0, 40, 100), ("t", 1, 0, 100, 120), ("t", 2, 0, 60, 90))
    (part,) = plan(found, {("t", 1): "id", ("t", 2): "id"}).slices
    assert [o.entry.key for o in part.objects] == ["t/1/0/0", "t/1/0/40", "t/2/0/60"]
    assert part.bounds == {"t/1/0/40": 60}


def test_a_reset_to_the_start_replaces_the_former_generation() -> None:
    found = history(("t", 1, 0, 0, 40), ("t", 2, 0, 0, 30))
    assert keys(plan(found, {("t", 1): "id", ("t", 2): "id"})) == ["t/2/0/0"]


def test_rows_without_offsets_cannot_be_cut_at_a_later_generation() -> None:
    assert "offset" not in stored_parts(WITHOUT_OFFSETS)
    found = history(("t", 1, 0, 0, 40), ("t", 2, 0, 30, 50), how=WITHOUT_OFFSETS)
    assert failure_of(lambda: plan(found, {("t", 1): "id", ("t", 2): "id"})).reason == "NotRestorable"


def test_interleaved_objects_without_offsets_lose_the_order() -> None:
    found = history(("t", 1, 0, 0, 40), ("t", 1, 0, 20, 50), how=WITHOUT_OFFSETS)
    assert any("the order of records is lost" in loss for loss in plan(found).losses)
    assert not any("order" in loss for loss in plan(history(("t", 1, 0, 0, 40), how=WITHOUT_OFFSETS)).losses)


def test_offsets_choose_objects_and_are_refused_where_rows_have_none() -> None:
    written = [("t", 1, 0, start, start + 10) for start in range(0, 50, 10)]
    chosen = Selection(first=15, end=30)
    assert keys(plan(history(*written), selection=chosen)) == ["t/1/0/10", "t/1/0/20"]
    refused = failure_of(lambda: plan(history(*written, how=WITHOUT_OFFSETS), selection=chosen))
    assert "--offsets cannot select" in str(refused)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"targets": {"a": "c", "b": "c"}}, "TargetShared"),
        ({"targets": {"other": "c"}}, "NotRead"),
        ({"selection": Selection(topics=("other",))}, "NotRead"),
    ],
)
def test_topics_that_are_not_there_or_would_mix_are_refused(options: dict[str, Any], reason: str) -> None:
    found = history(("a", 1, 0, 0, 1), ("b", 1, 0, 0, 1))
    assert failure_of(lambda: plan(found, **options)).reason == reason
    assert plan(found, targets={"a": "c"}).topics == {"c": 1, "b": 1}
