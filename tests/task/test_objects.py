"""The open objects of a slice on a real S3 server: their sizes, and that each record is in one of them."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from s3sink_api.spec import Destination
from s3sink_api.spec.secret_refs import SecretRef, SecretSource
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.spill import SpillFull, SpillPlace
from s3sink_job.flush.manifest import ObjectEntry, Slice
from s3sink_job.formats.compression import decompress
from s3sink_job.layout.groups import Groups
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from s3sink_job.task import open_objects as module
from s3sink_job.task.bad_records import BadRecordPolicy
from s3sink_job.task.encoding import Encoding
from s3sink_job.task.open_objects import OpenObjects
from s3sink_job.task.task_settings import Rewrite, SliceWork, TaskSettings, TopicTarget
from tests.encodings import changed, encoding
from tools.parts.s3 import S3Server

SLICE = Slice(topic="orders", generation=1, partition=3, start=0, end=10**9, reason="records")
JSON = encoding()
PARQUET = changed(JSON, format="Parquet", codec="Zstd")


@dataclass
class Written:
    """What a test writes with."""

    work: SliceWork
    bucket: Bucket
    server: S3Server
    texts: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def settings(self) -> TaskSettings:
        return self.work.settings

    @property
    def destination(self) -> Destination:
        return self.work.target.destination

    def objects(self, **changes: Any) -> OpenObjects:
        work = work_with(self.work, **changes)
        builder = work.target.encoding.row_builder(work.slice.topic)
        # The rows do not come from this builder, so it has no columns that could become text.
        builder.widen_to_text = self.texts.append  # type: ignore[method-assign]
        return OpenObjects(work, self.bucket, builder)

    def content(self, entry: ObjectEntry) -> bytes:
        """The object after it was completed."""
        self.bucket.complete_upload(entry.key, entry.upload_id, entry.etags)
        name = self.destination.bucket
        return self.server.client().get_object(Bucket=name, Key=entry.key)["Body"].read()


def work_with(work: SliceWork, **changes: Any) -> SliceWork:
    """With other values of fields of the work, its settings or its target."""

    def of(kind: type) -> dict[str, Any]:
        return {field.name: changes.pop(field.name) for field in fields(kind) if field.name in changes}

    settings, target = replace(work.settings, **of(TaskSettings)), replace(work.target, **of(TopicTarget))
    return replace(work, settings=settings, target=target, **changes)


@pytest.fixture
def store(s3: S3Server, bucket: str, tmp_path: Path) -> Written:
    secret = tmp_path / "secrets" / "s3"
    secret.mkdir(parents=True)
    (secret / "AWS_ACCESS_KEY_ID").write_text(s3.access_key)
    (secret / "AWS_SECRET_ACCESS_KEY").write_text(s3.secret_key)
    destination = Destination(
        bucket=bucket, endpoint=s3.endpoint, region=s3.region, credentials=SecretSource(secret_ref=SecretRef(name="s3"))
    )
    settings = TaskSettings(
        sink="test/sink",
        flush="1",
        bucket=bucket,
        secrets=Secrets(str(tmp_path / "secrets")),
        spill=SpillPlace(str(tmp_path / "spill"), 2**30),
        planned=(SLICE,),
        bad_records=BadRecordPolicy(),
    )
    work = SliceWork(SLICE, settings, TopicTarget(JSON, destination))
    return Written(work, open_bucket(destination, settings.secrets, RetryPolicy()), s3)


def compressible(count: int, start: int) -> list[str]:
    return [
        f'{{"id":{n},"kind":"order","text":"{"the same again " * 3}","half":{n / 2}}}'
        for n in range(start, start + count)
    ]


def incompressible(count: int, start: int) -> list[str]:
    noise = random.Random(start).randbytes(count * 60).hex()
    return [f'{{"id":{start + n},"text":"{noise[n * 120 : n * 120 + 120]}"}}' for n in range(count)]


def numbers(count: int, start: int) -> list[str]:
    """Their text is more than twice as large as the numbers in memory."""
    return [json.dumps({"id": n, "third": n / 3, "seventh": -n / 7}) for n in range(start + 1, start + count + 1)]


def rows_of(values: list[str], wanted: Encoding) -> pa.RecordBatch:
    if wanted.output.format == "Json":
        return pa.RecordBatch.from_pydict({"line": pa.array([v.encode() for v in values], pa.binary())})
    return pa.RecordBatch.from_pylist([json.loads(v) for v in values])


def ids_in(data: bytes, wanted: Encoding) -> list[Any]:
    rows: Any
    match wanted.output.format:
        case "Json":
            return [json.loads(line)["id"] for line in decompress(data, wanted.output.codec).splitlines()]
        case "Csv":
            return list(pl.read_csv(decompress(data, wanted.output.codec))["id"])
        case "Avro":
            rows = fastavro.reader(io.BytesIO(data))
            return [row["id"] for row in rows]
        case "Orc":
            return list(orc.read_table(pa.BufferReader(data), columns=["id"]).column("id").to_pylist())
        case _:
            return list(pq.read_table(pa.BufferReader(data), columns=["id"]).column("id").to_pylist())


def plain(count: int, start: int) -> list[str]:
    return [f'{{"id":{n}}}' for n in range(start, start + count)]


def offsets(start: int, count: int) -> pa.Array:
    return pa.array(range(start, start + count), pa.int64())


def grouped(numbers: list[int]) -> Groups:
    """Rows of windows with these numbers."""
    codes = pa.array([str(n) for n in numbers]).dictionary_encode()
    return Groups([(name,) for name in codes.dictionary.to_pylist()], codes.indices)


ENCODINGS = {
    "json": JSON,
    "json gzip": changed(JSON, codec="Gzip"),
    "json zstd": changed(JSON, codec="Zstd"),
    "parquet": changed(PARQUET, codec="None"),
    "parquet zstd": PARQUET,
    "csv": changed(JSON, format="Csv"),
    "csv gzip": changed(JSON, format="Csv", codec="Gzip"),
    "avro": changed(JSON, format="Avro"),
    "avro snappy": changed(JSON, format="Avro", codec="Snappy"),
    "orc": changed(JSON, format="Orc"),
    "orc zstd": changed(JSON, format="Orc", codec="Zstd"),
}
LINES_AND_PARQUET = ["json", "json gzip", "json zstd", "parquet", "parquet zstd"]
SIZES = [
    *((name, make, n) for name in LINES_AND_PARQUET for make in (compressible, incompressible) for n in (2**18, 2**20)),
    *((name, compressible, size) for name in ("csv", "avro", "orc") for size in (2**18, 2**20)),
    *((name, incompressible, size) for name in ("csv gzip", "avro snappy", "orc zstd") for size in (2**18, 2**20)),
    *((name, numbers, 2**19) for name in ("csv", "csv gzip", "avro", "orc zstd")),
    *(("json", compressible, 2**23), ("json zstd", incompressible, 2**23), ("parquet zstd", incompressible, 2**23)),
]


@pytest.mark.parametrize(("name", "make", "size"), SIZES)
def test_objects_have_the_wanted_size(name: str, make: Any, size: int, store: Written) -> None:
    wanted = ENCODINGS[name]
    objects = store.objects(encoding=wanted, bytes_per_object=size)

    start, first = 0, json.loads(make(1, 0)[0])["id"]
    while len(objects.done) < 2:
        objects.write(rows_of(make(5_000, start), wanted), offsets(start, 5_000), None)
        start += 5_000
    objects.close()

    *whole, last = objects.done
    # The compression of a small first row group says little about the rest.
    off = 0.15 if wanted.output.format == "Parquet" and size < 2**20 else 0.1
    assert all((1 - off) * size <= entry.bytes <= (1 + off) * size for entry in whole), [e.bytes for e in whole]
    assert last.bytes <= (1 + off) * size
    contents = [store.content(entry) for entry in objects.done]
    assert [len(data) for data in contents] == [entry.bytes for entry in objects.done]
    assert [n for data in contents for n in ids_in(data, wanted)] == list(range(first, first + start))
    objects.release()


@pytest.mark.parametrize("name", ["json gzip", "json zstd"])
def test_data_that_stop_being_compressible_do_not_make_an_endless_object(name: str, store: Written) -> None:
    size = 2**19
    objects = store.objects(encoding=ENCODINGS[name], bytes_per_object=size)
    objects.write(rows_of(["x" * 1_000] * 2_000, JSON), offsets(0, 2_000), None)
    assert objects.done == []

    for start in range(2_000, 62_000, 2_000):
        objects.write(rows_of(incompressible(2_000, start), JSON), offsets(start, 2_000), None)
    objects.close()

    assert all(entry.bytes <= 1.25 * size for entry in objects.done), [entry.bytes for entry in objects.done]
    assert sum(entry.rows for entry in objects.done) == 62_000


@pytest.mark.parametrize("name", ["json zstd", "parquet zstd"])
def test_objects_have_the_wanted_number_of_records(name: str, store: Written) -> None:
    wanted = ENCODINGS[name]
    objects = store.objects(encoding=wanted, records_per_object=70)
    for start in range(0, 300, 60):
        objects.write(rows_of(plain(60, start), wanted), offsets(start * 2, 60), None)
    objects.close()

    assert [entry.rows for entry in objects.done] == [70, 70, 70, 70, 20]
    assert [n for entry in objects.done for n in ids_in(store.content(entry), wanted)] == list(range(300))


def test_interleaved_windows_give_one_object_each(store: Written) -> None:
    objects = store.objects()
    for start in range(0, 90, 30):
        groups = grouped([n % 3 for n in range(start, start + 30)])
        objects.write(rows_of(plain(30, start), JSON), offsets(start + 1_000, 30), groups)
    objects.close()

    assert sorted(entry.group for entry in objects.done) == [("0",), ("1",), ("2",)]
    for entry in objects.done:
        window = int(entry.group[0])
        assert (entry.first, entry.last, entry.rows) == (1_000 + window, 1_087 + window, 30)
        assert ids_in(store.content(entry), JSON) == list(range(window, 90, 3))


def test_only_the_lost_objects_of_a_slice_are_rewritten_each_with_its_own_rows(store: Written) -> None:
    """By group and by range: a group may have several objects, of which only one is lost."""
    lost = (Rewrite("raw/a.jsonl", ("1",), 0, 4), Rewrite("raw/b.jsonl", ("2",), 5, 8))
    objects = store.objects(rewrites=lost)
    for start in (0, 5):
        groups = grouped([n % 3 for n in range(start, start + 5)])
        objects.write(rows_of(plain(5, start), JSON), offsets(start, 5), groups)
    objects.close()

    found = {entry.key: ids_in(store.content(entry), JSON) for entry in objects.done}
    assert found == {"raw/a.jsonl": [1, 4], "raw/b.jsonl": [5, 8]}
    assert {entry.group for entry in objects.done} == {("1",), ("2",)}


def test_many_lost_objects_of_a_slice_are_rewritten_through_the_buffer(store: Written) -> None:
    lost = tuple(Rewrite(f"raw/{n}.jsonl", (str(n),), 0, 99) for n in range(20))
    objects = store.objects(rewrites=lost)
    for start in range(0, 100, 50):
        groups = grouped([n % 25 for n in range(start, start + 50)])
        objects.write(rows_of(plain(50, start), JSON), offsets(start, 50), groups)
    objects.close()

    found = {entry.key: ids_in(store.content(entry), JSON) for entry in objects.done}
    assert found == {f"raw/{n}.jsonl": [n, n + 25, n + 50, n + 75] for n in range(20)}


@pytest.mark.parametrize("name", ["json zstd", "parquet zstd"])
def test_any_number_of_windows_needs_a_bounded_number_of_open_objects(
    name: str, store: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    wanted = ENCODINGS[name]
    objects = store.objects(encoding=wanted)
    begin = OpenObjects._open_object

    def counted(self: OpenObjects, group: tuple[str, ...], first: int) -> Any:
        nonlocal most
        most = max(most, len(self._open) + 1)
        return begin(self, group, first)

    monkeypatch.setattr(OpenObjects, "_open_object", counted)
    for start in range(0, 600, 300):
        groups = grouped([n % 100 for n in range(start, start + 300)])
        objects.write(rows_of(plain(300, start), wanted), offsets(start, 300), groups)
    objects.close()

    assert most == 1
    assert len(objects.done) == 100
    found = Counter(n for entry in objects.done for n in ids_in(store.content(entry), wanted))
    assert found == Counter(range(600))
    assert len({entry.key for entry in objects.done}) == len(objects.done)
    for entry in objects.done:
        assert entry.first % 100 == entry.last % 100 == int(entry.group[0])


@pytest.mark.parametrize("name", ["json", "json zstd", "parquet"])
def test_memory_is_bounded_however_many_windows_are_open(
    name: str, store: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 2**18)
    monkeypatch.setattr(module, "MOST_BUFFERED", 2**18)
    wanted = ENCODINGS[name]
    objects = store.objects(encoding=wanted)
    total = 0
    for start in range(0, 20_000, 1_000):
        groups = grouped([n % 20 for n in range(start, start + 1_000)])
        objects.write(rows_of(incompressible(1_000, start), wanted), offsets(start, 1_000), groups)
        assert objects._buffer is not None
        assert objects._buffer.held <= 2**18
        assert not objects._open
        total = max(total, objects._spill.used)
    objects.close()

    assert total > 2**19
    assert len(objects.done) == 20
    found = Counter(n for entry in objects.done for n in ids_in(store.content(entry), wanted))
    assert found == Counter(range(20_000))
    assert objects._spill.used == 0
    objects.release()
    assert [path for path in Path(store.settings.spill.folder).iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("name", ["json", "parquet"])
def test_a_crowded_spill_closes_objects_early_and_loses_nothing(
    name: str, store: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 2**18)
    wanted = changed(ENCODINGS[name], row_group_bytes=2**16)
    objects = store.objects(encoding=wanted, spill=replace(store.settings.spill, limit=2**20))
    for start in range(0, 20_000, 1_000):
        groups = grouped([n % 8 for n in range(start, start + 1_000)])
        objects.write(rows_of(incompressible(1_000, start), wanted), offsets(start, 1_000), groups)
        assert objects._spill.used < 2**19
    objects.close()

    assert len(objects.done) > 8
    found = Counter(n for entry in objects.done for n in ids_in(store.content(entry), wanted))
    assert found == Counter(range(20_000))


def test_a_spill_folder_without_room_is_reported_and_nothing_is_left_behind(store: Written) -> None:
    wanted = changed(ENCODINGS["parquet"], row_group_bytes=2**18)
    objects = store.objects(encoding=wanted, spill=replace(store.settings.spill, limit=2**17))

    rows = rows_of(incompressible(10_000, 0), wanted)

    with pytest.raises(SpillFull):
        objects.write(rows, offsets(0, 10_000), None)
    objects.abandon()

    assert [path for path in Path(store.settings.spill.folder).iterdir() if path.is_dir()] == []
    uploads = store.server.client().list_multipart_uploads(Bucket=store.destination.bucket)
    assert uploads.get("Uploads", []) == []


def test_a_part_longer_than_memory_allows_waits_on_disk(store: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """And compressed blocks do not become smaller and smaller meanwhile."""
    monkeypatch.setattr(module, "MOST_HELD", 2**18)
    objects = store.objects()
    for start in range(0, 20_000, 1_000):
        objects.write(rows_of(incompressible(1_000, start), JSON), offsets(start, 1_000), None)
        assert sum(current.held for current in objects._open.values()) <= 2**18
    objects.close()

    (entry,) = objects.done
    assert ids_in(store.content(entry), JSON) == list(range(20_000))


def test_the_decoder_learns_of_a_column_that_had_to_become_text(store: Written) -> None:
    objects = store.objects(encoding=PARQUET)
    objects.write(pa.RecordBatch.from_pydict({"id": [2**53 + 1]}), offsets(0, 1), None)
    objects.write(pa.RecordBatch.from_pydict({"id": [0.5]}), offsets(1, 1), None)
    objects.close()

    assert store.texts == [("id",)]
    assert ids_in(store.content(objects.done[0]), PARQUET) == [str(2**53 + 1), "0.5"]


def test_a_rewritten_object_keeps_its_key_and_a_second_one_stands_beside_it(store: Written) -> None:
    lost = (Rewrite("raw/orders/3/7.jsonl", (), 7, 11),)
    objects = store.objects(rewrites=lost, records_per_object=2)
    objects.write(rows_of(plain(5, 0), JSON), offsets(7, 5), None)
    objects.close()

    keys = [entry.key for entry in objects.done]
    assert keys == ["raw/orders/3/7.jsonl", "raw/orders/3/7-r2.jsonl", "raw/orders/3/7-r3.jsonl"]
