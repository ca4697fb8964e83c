"""A flush with thousands of folders: as many objects, bounded memory and disk, and the wanted sizes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from s3sink_job.base.spill import LOCK, Spill, SpillFull, SpillPlace
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.layout.groups import Groups
from s3sink_job.layout.settings import LayoutItem, ObjectLayout
from s3sink_job.task import open_objects as module
from s3sink_job.task import slice_tasks
from s3sink_job.task.encoding import Encoding
from s3sink_job.task.flush_job import FlushJob
from s3sink_job.task.group_buffer import GroupBuffer, Piece, _order
from s3sink_job.task.open_objects import OpenObjects
from tests.encodings import changed
from tests.harness import World
from tests.task.test_objects import (
    ENCODINGS,
    Written,
    ids_in,
    incompressible,
    offsets,
    plain,
    rows_of,
    store,
)

__all__ = ["store"]

BY_V = {"partitionBy": [{"type": "Topic"}, {"type": "Field", "path": ["v"], "as": "v"}], "hiveStyle": True}


def interleaved(numbers: list[int]) -> Groups:
    codes = pa.array([f"v={n}" for n in numbers]).dictionary_encode()
    return Groups([(name,) for name in codes.dictionary.to_pylist()], codes.indices)


def spilled(store: Written) -> list[Path]:
    return [p for p in Path(store.settings.spill.folder).rglob("*") if p.is_file() and p.name != LOCK]


def test_2000_values_interleaved_in_one_flush_give_2000_objects(world: World) -> None:
    world.patience = 240.0
    world.kafka.create_topic(world.topic)
    world.produce([{"n": n, "v": n % 2000} for n in range(10_000)])
    driver = world.drain(flush={"records": 1_000_000}, layout=BY_V, format={"type": "Parquet"})
    keys = world.sizes()
    assert len(keys) == 2000
    assert len({key.split("/")[2] for key in keys}) == 2000
    assert world.state()["flush"] == 1
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert (report.objects, report.counts.records) == (2000, 10_000)


def test_each_partition_of_the_topic_has_its_own_objects(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    for partition in range(2):
        world.produce([{"n": n, "v": n % 50} for n in range(500)], partition=partition)
    driver = world.drain(flush={"records": 1_000_000}, layout=BY_V)
    assert Counter(key.rsplit("/", 1)[0] for key in world.sizes()) == {f"raw/{world.topic}/v={v}": 2 for v in range(50)}
    assert world.verify(driver).ok


@pytest.mark.parametrize("name", ["json", "parquet zstd"])
def test_staged_rows_go_to_spill_files_that_are_gone_at_the_end(
    name: str, store: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays below the limit, however much is written."""
    most = 200_000
    monkeypatch.setattr(module, "MOST_BUFFERED", most)
    wanted = ENCODINGS[name]
    objects = store.objects(encoding=_by_value(wanted))
    files = held = 0
    for start in range(0, 40_000, 2_000):
        rows = rows_of(incompressible(2_000, start), wanted)
        objects.write(rows, offsets(start, 2_000), interleaved([n % 300 for n in range(start, start + 2_000)]))
        assert objects._buffer is not None
        held = max(held, objects._buffer.held)
        files = max(files, len(spilled(store)))
    assert files > 5
    assert held <= most
    objects.close()
    objects.release()
    assert spilled(store) == []
    assert not [p for p in Path(store.settings.spill.folder).iterdir() if p.name != LOCK]
    assert len(objects.done) == 300
    for entry in objects.done[:3]:
        value = int(entry.group[0].removeprefix("v="))
        assert ids_in(store.content(entry), wanted) == list(range(value, 40_000, 300))


def _spilling(store: Written, **changes: Any) -> OpenObjects:
    objects = store.objects(encoding=_by_value(ENCODINGS["json"]), **changes)
    rows = rows_of(incompressible(20_000, 0), ENCODINGS["json"])
    with pytest.raises(SpillFull) as caught:
        objects.write(rows, offsets(0, 20_000), interleaved([n % 300 for n in range(20_000)]))
    assert caught.value.retryable
    assert store.settings.spill.folder in str(caught.value)
    assert "raise spark.driver.spill" in str(caught.value)
    return objects


def _nothing_left(store: Written) -> None:
    assert not [p for p in Path(store.settings.spill.folder).iterdir() if p.name != LOCK]
    assert store.server.client().list_multipart_uploads(Bucket=store.bucket.name).get("Uploads", []) == []


def test_a_full_spill_folder_is_reported_and_leaves_nothing_behind(
    store: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BUFFERED", 2 * 2**20)
    objects = _spilling(store, spill=replace(store.settings.spill, limit=2**20))
    assert spilled(store)
    objects.abandon()
    _nothing_left(store)


def test_a_full_disk_is_reported_and_leaves_nothing_behind(store: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are links to a device that is always full."""
    monkeypatch.setattr(module, "MOST_BUFFERED", 2 * 2**20)
    new_file = Spill.new_file

    def without_room(self: Spill) -> Path:
        path = new_file(self)
        path.symlink_to("/dev/full")
        return path

    monkeypatch.setattr(Spill, "new_file", without_room)
    objects = _spilling(store)
    objects.abandon()
    _nothing_left(store)


def test_a_disk_without_room_stops_the_partition_until_there_is_some(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The task reports it, the partition is retried, and nothing is committed or left behind until then."""
    world.kafka.create_topic(world.topic)
    noise = random.Random(2)
    world.produce([{"n": n, "v": n % 100, "text": noise.randbytes(2_000).hex()} for n in range(12_500)])
    folder = tmp_path / "spill"
    monkeypatch.setattr(FlushJob, "_spill_place", lambda self: SpillPlace(str(folder), 1_000))
    spec: dict[str, Any] = {"flush": {"records": 1_000_000}, "layout": BY_V, "errors": {"retries": {"backoff": "50ms"}}}
    driver = world.driver(**spec)
    driver.step()
    driver.step()
    problem = driver.problems[world.topic, 0]
    assert problem.reason == "SpillFull"
    assert "no room to spill" in problem.message
    assert world.state()["flush"] == 0
    assert not world.sizes()
    assert world.client().list_multipart_uploads(Bucket=world.bucket).get("Uploads", []) == []
    assert not [p for p in folder.rglob("*") if p.name != LOCK]

    monkeypatch.undo()
    world.drain(driver)
    assert len(world.sizes()) == 100
    assert world.verify(driver).ok


def _by_value(encoding: Encoding) -> Encoding:
    return changed(encoding, layout=ObjectLayout((LayoutItem("Field", "v", ("v",)),)))


@pytest.mark.parametrize("name", ["parquet zstd", "json gzip"])
def test_objects_of_buffered_rows_have_the_wanted_size(name: str, store: Written) -> None:
    """Within 10 %, except for the last object of each value."""
    size, wanted = 2**18, ENCODINGS[name]
    objects = store.objects(encoding=_by_value(wanted), bytes_per_object=size)
    for start, values in _batches(60_000, 5_000):
        objects.write(rows_of(values, wanted), offsets(start, 5_000), interleaved(_mostly(start, 5_000)))
    objects.close()
    full = [e.bytes for entries in _by_group(objects.done).values() for e in entries[:-1]]
    assert len(full) >= 5
    assert all(0.9 * size <= length <= 1.1 * size for length in full), full
    objects.release()


def _batches(total: int, step: int) -> Iterator[tuple[int, list[str]]]:
    for start in range(0, total, step):
        yield start, incompressible(step, start)


def _mostly(start: int, count: int) -> list[int]:
    """Half of the rows in two groups, the rest in forty."""
    return [n % 2 if n % 4 < 2 else 2 + n % 40 for n in range(start, start + count)]


def _by_group(done: list[ObjectEntry]) -> dict[tuple[str, ...], list[ObjectEntry]]:
    found: dict[tuple[str, ...], list[ObjectEntry]] = {}
    for entry in done:
        found.setdefault(entry.group, []).append(entry)
    return found


@pytest.mark.parametrize(
    "format", [{"type": "Parquet"}, {"type": "Json", "compression": {"codec": "Gzip"}}], ids=["parquet", "json gzip"]
)
def test_the_sink_keeps_to_flush_bytes_with_many_values_open(world: World, format: dict[str, Any]) -> None:
    world.kafka.create_topic(world.topic)
    noise = random.Random(3)
    values = [
        json.dumps({"n": n, "v": f"v{n % 20}", "text": noise.randbytes(300).hex()}).encode() for n in range(20_000)
    ]
    world.produce(values)
    size = 128 * 2**10
    driver = world.drain(flush={"records": 1_000_000, "bytes": "128Ki"}, layout=BY_V, format=format)
    assert world.verify(driver).ok
    slices = _sizes_by_slice(world)
    full = [length for lengths in slices.values() for length in lengths[:-1]]
    assert len(full) >= 10
    assert all(0.9 * size <= length <= 1.1 * size for length in full), full


def _sizes_by_slice(world: World) -> dict[tuple[Any, ...], list[int]]:
    """Sizes of the objects of each flush, slice and value, in order."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for key in world.objects(".s3sink/default/sink/flushes/"):
        manifest = json.loads(world.content(key))
        for entry in sorted(manifest["objects"], key=lambda o: o["first"]):
            slice = next(s["start"] for s in reversed(manifest["slices"]) if s["start"] <= entry["first"])
            found.setdefault((key, slice, *entry["group"]), []).append(entry["bytes"])
    return found


def test_rows_are_buffered_in_order_and_completely(store: Written) -> None:
    """Many schemas, many groups: each object has its own rows in the order of their offsets."""
    wanted = ENCODINGS["json"]
    objects = store.objects(encoding=_by_value(wanted))
    groups = [n * 7919 % 101 for n in range(6_000)]
    for start in range(0, 6_000, 1_500):
        part = groups[start : start + 1_500]
        objects.write(rows_of(plain(1_500, start), wanted), offsets(start, 1_500), interleaved(part))
    objects.close()
    objects.release()
    for entry in objects.done:
        value = int(entry.group[0].removeprefix("v="))
        assert ids_in(store.content(entry), wanted) == [n for n in range(6_000) if groups[n] == value]


def _one_has_nearly_all(start: int, count: int) -> list[int]:
    return [0 if n % 20 else 1 + n // 20 % 10 for n in range(start, start + count)]


def test_a_value_that_has_nearly_all_rows_takes_no_more_memory(store: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are read from the files piece by piece."""
    most = 2**20
    monkeypatch.setattr(module, "MOST_BUFFERED", most)
    wanted = ENCODINGS["json"]
    objects = store.objects(encoding=_by_value(wanted))
    for start, values in _batches(100_000, 5_000):
        objects.write(rows_of(values, wanted), offsets(start, 5_000), interleaved(_one_has_nearly_all(start, 5_000)))
    assert objects._buffer is not None
    before, highest = pa.total_allocated_bytes(), 0
    for _, pieces in objects._buffer.drain():
        for piece in pieces:
            highest = max(highest, pa.total_allocated_bytes() - before)
            del piece
    assert len(objects._buffer.groups) == 0
    assert highest < 4 * most
    objects.abandon()


def test_buffered_rows_that_fill_the_folder_become_more_objects_not_an_error(
    store: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are spilled compressed, and are larger once they are encoded without compression."""
    monkeypatch.setattr(module, "MOST_BUFFERED", 2**20)
    wanted = changed(ENCODINGS["parquet zstd"], codec="None", row_group_bytes=2**20, dictionary=False)
    objects = store.objects(encoding=_by_value(wanted), spill=replace(store.settings.spill, limit=8 * 2**20))
    for start in range(0, 40_000, 1_000):
        rows = pa.RecordBatch.from_pydict({"id": range(start, start + 1_000), "text": ["again " * 60] * 1_000})
        objects.write(rows, offsets(start, 1_000), interleaved(_one_has_nearly_all(start, 1_000)))
    objects.close()
    objects.release()
    found: list[int] = []
    for entry in objects.done:
        found += ids_in(store.content(entry), wanted)
    assert sorted(found) == list(range(40_000))
    assert len(objects.done) > 11


def test_a_field_may_have_the_same_name_as_the_buffered_offsets(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"s3sink.offset": -n, "v": n % 20} for n in range(200)])
    driver = world.drain(flush={"records": 1_000_000}, layout=BY_V)
    assert sorted(row["s3sink.offset"] for row in world.rows()) == list(range(-199, 1))
    assert world.verify(driver).ok


def test_a_flush_makes_only_so_many_objects_and_the_next_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with folders by user id: neither manifests nor the driver's memory may grow without limit."""
    monkeypatch.setattr(slice_tasks, "MOST_OBJECTS", 450)
    world.kafka.create_topic(world.topic)
    world.produce([{"n": n, "v": n // 20} for n in range(20_000)])
    world.patience = 240.0
    driver = world.drain(flush={"records": 1_000_000}, layout=BY_V)
    manifests = [json.loads(world.content(key)) for key in world.objects(".s3sink/default/sink/flushes/")]
    assert len(manifests) == 3
    assert all(len(manifest["objects"]) <= 450 for manifest in manifests)
    assert world.state()["topics"][world.topic]["partitions"]["0"]["offset"] == 20_000
    assert world.state()["totals"]["records"] == 20_000
    assert all(s["more"] for m in manifests[:-1] for s in m["slices"]), "what is left is due still"
    report = world.verify(driver)
    assert report.ok, report.to_doc()


@pytest.mark.parametrize("most", [10**9, 1], ids=["in memory", "spilled"])
@pytest.mark.parametrize("groups", [[0, 0, 1, 1, 1, 2], [2, 0, 1, 0, 2, 1]], ids=["in order", "in any order"])
def test_buffered_rows_are_returned_by_group_in_offset_order(groups: list[int], most: int, store: Written) -> None:
    spill = Spill(store.settings.spill)
    stage = GroupBuffer(spill, most)
    keys = [(f"v={n}",) for n in range(3)]
    for start in (0, 6):
        offsets = pa.array(range(start, start + 6), pa.int64())
        rows = pa.RecordBatch.from_arrays([offsets.cast(pa.string())], ["text"])
        stage.add(rows, offsets, keys, pa.array(groups, pa.int32()))
    found = {key: [pair for piece in pieces for pair in pairs(piece)] for key, pieces in stage.drain()}
    spill.close()
    assert found == {key: [(o, str(o)) for o in range(12) if groups[o % 6] == code] for code, key in enumerate(keys)}


@pytest.mark.parametrize("groups", [3, 2**16, 2**16 + 500])
def test_rows_are_sorted_by_group_however_many_groups_there_are(groups: int) -> None:
    """Up to 65,536 groups are sorted as 16 bit numbers. One more must not wrap around."""
    codes = np.random.default_rng(7).integers(0, groups, 100_000)
    codes[:2] = groups - 1, 0
    assert _order(codes).tolist() == sorted(range(len(codes)), key=lambda row: codes[row])


def test_spilled_rows_are_compressed_once_the_folder_fills_up(tmp_path: Path) -> None:
    """The first spill files are not compressed, which takes a third of the time. Later ones are, to save space."""
    spill = Spill(SpillPlace(str(tmp_path), 8 * 50_000))
    stage = GroupBuffer(spill, 1)
    keys, texts = [("v=0",), ("v=1",)], ["the same again " * 10] * 500
    for start in (0, 500):
        rows = pa.RecordBatch.from_pydict({"text": texts})
        stage.add(rows, pa.array(range(start, start + 500), pa.int64()), keys, pa.array([0, 1] * 250, pa.int32()))
    plain, packed = spill._sizes.values()
    assert packed < plain / 4
    assert [o for _, pieces in stage.drain() for piece in pieces for o, _ in pairs(piece)] == [
        *range(0, 1000, 2),
        *range(1, 1000, 2),
    ]
    spill.close()


def pairs(piece: Piece) -> list[tuple[int, str]]:
    return list(zip(piece.offsets.to_pylist(), piece.rows["text"].to_pylist(), strict=True))
