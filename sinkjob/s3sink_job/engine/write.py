"""What one Spark task does: one slice of the plan, read in order, encoded, uploaded, not completed.

A record that cannot be written is an answer, not an exception: the task closes what came before it and
reports where it stopped, so that neither the other slices nor the records before it are held up. A store
that stays unavailable is reported the same way. What is raised ends the whole Spark job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StringType, StructField, StructType

from s3sink_job.encoding import KAFKA_COLUMNS, Encoding
from s3sink_job.engine.objects import Objects
from s3sink_job.engine.pace import Pace
from s3sink_job.engine.singles import SingleObjects
from s3sink_job.engine.stage import Group
from s3sink_job.errors import ProtocolError, S3SinkError
from s3sink_job.flush.keys import MAX_KEY_BYTES, refused_for_length, room_for_folder
from s3sink_job.flush.manifest import ObjectEntry, Slice, object_from_doc
from s3sink_job.formats import unwritable
from s3sink_job.records.decode import Decoder, null_rows, open_decoder
from s3sink_job.records.folders import folders_of
from s3sink_job.records.groups import Groups, groups_of, rows_in
from s3sink_job.secrets import Secrets
from s3sink_job.spec import Destination
from s3sink_job.spill import SpillPlace
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.client import open_bucket
from s3sink_job.stores.share import PARALLEL, Share
from s3sink_job.stores.uploads import try_upload

LARGE_RECORD = "LargeRecord"
"""The reason of a slice that a job of small records cannot take."""

NULL_VALUE = "its value is null, and spec.nullValues is Fail"

# As a type, not as text: Spark would start its whole SQL parser for two words.
RESULT_SCHEMA = StructType([StructField("result", StringType())])


@dataclass(frozen=True)
class Failure:
    """Why a slice stopped short. `offset` is the record's, where a record is the cause."""

    reason: str
    message: str
    retryable: bool
    offset: int | None = None


@dataclass(frozen=True)
class SliceResult:
    """What a task made of its slice: everything in `[slice.start, end)` is in `objects` or in `skipped`."""

    slice: Slice
    end: int
    objects: tuple[ObjectEntry, ...] = ()
    skipped: tuple[int, ...] = ()
    failure: Failure | None = None
    request_retries: int = 0
    read_bytes: int = 0
    """Of the columns that Spark handed over: what the slice's records weigh in Kafka, without its compression."""
    schema: str = ""
    """What the slice taught of its topic's columns, as text."""
    throttled: int = 0
    """Requests that the store answered with: slow down."""
    share: int = PARALLEL
    """Requests at a time that the task was down to in the end."""
    refused: tuple[tuple[Group, str], ...] = ()
    """Groups whose key the store does not take, and why."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def result_from_json(text: str) -> SliceResult:
    doc = json.loads(text)
    return SliceResult(
        slice=Slice(**doc["slice"]),
        end=doc["end"],
        objects=tuple(object_from_doc(o) for o in doc["objects"]),
        skipped=tuple(doc["skipped"]),
        failure=Failure(**doc["failure"]) if doc["failure"] else None,
        request_retries=doc["request_retries"],
        read_bytes=doc["read_bytes"],
        schema=doc["schema"],
        throttled=doc["throttled"],
        share=doc["share"],
        refused=tuple((tuple(group), why) for group, why in doc["refused"]),
    )


@dataclass(frozen=True)
class Target:
    """Where the records of a topic go, and as what."""

    encoding: Encoding
    destination: Destination
    records: int | None
    bytes: int | None


@dataclass(frozen=True)
class Rewrite:
    """A lost object that is written again under its key: the records of its group from `first` to `last`."""

    key: str
    group: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True)
class WriteTask:
    """Everything a task needs, pickled to it. It names the folder of the secrets, never their content."""

    slices: tuple[Slice, ...]
    sink: str
    flush: str
    encoding: Encoding
    destination: Destination
    secrets: Secrets
    retrying: Retrying
    records_per_object: int | None
    skip_bad: bool
    max_bad: int
    spill: SpillPlace
    bytes_per_object: int | None = None
    most_objects: int | None = None
    """That a slice may make: it ends before the batch that would need more."""
    bytes_per_second: float | None = None
    """How fast this one task may read."""
    mark: str = ""
    """Goes into object names where the store cannot tell two drivers apart."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """What is known of each topic's columns, as text."""
    again: Mapping[Slice, tuple[Rewrite, ...]] = field(default_factory=dict)
    """The only objects to write of each slice, where lost ones are written again."""
    planned: tuple[Slice, ...] = ()
    """All slices of the flush, of which this task may have but some: their numbers go into names."""
    conditional: bool = True
    """Whether the store keeps conditions."""
    routed: Mapping[str, Target] = field(default_factory=dict)
    """By topic: what differs for it."""
    other_bucket: str = ""
    """The bucket, where it is not the sink's own."""
    requests: int = PARALLEL
    """That it may have under way at a time, to begin with."""
    longest_segment: int | None = None
    """Bytes between the slashes of a key, where the store has a limit."""
    refused: Mapping[Slice, Mapping[Group, str]] = field(default_factory=dict)
    """Groups whose key the store did not take before: their records are bad records."""

    def of(self, topic: str) -> WriteTask:
        """The task as it is for this topic."""
        target = self.routed.get(topic)
        if target is None:
            return self
        own = target.destination.bucket == self.destination.bucket
        return replace(
            self,
            encoding=target.encoding,
            destination=target.destination,
            records_per_object=target.records,
            bytes_per_object=target.bytes,
            other_bucket="" if own else target.destination.bucket,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The Kafka columns that any of its topics needs."""
        encodings = [self.of(topic).encoding for topic in {part.topic for part in self.slices}]
        wanted = {name for encoding in encodings for name in encoding.columns}
        return tuple(name for name in KAFKA_COLUMNS if name in wanted)

    def place_of(self, slice: Slice) -> tuple[int, int]:
        """Which of how many slices it is."""
        planned = self.planned or self.slices
        return planned.index(slice), len(planned)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer: SliceWriter | None = None
        pace = Pace(self.bytes_per_second)
        try:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                if writer is None:
                    part = self.slice_of(batch)
                    writer = SliceWriter(self.of(part.topic), part)
                if not writer.write(batch):
                    break
                pace.keep(batch.nbytes)
            if writer is not None:
                yield _row(writer.finish().to_json())
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise

    def slice_of(self, batch: pa.RecordBatch) -> Slice:
        """The slice that holds the first row. There is no other way for a task to learn which one is its own."""
        topic = batch.column("topic")[0].as_py() if "topic" in batch.schema.names else self.slices[0].topic
        partition, offset = batch.column("partition")[0].as_py(), batch.column("offset")[0].as_py()
        offset = ~offset if offset < 0 else offset
        for slice in self.slices:
            if slice.at == (topic, partition) and slice.start <= offset < slice.end:
                return slice
        raise ProtocolError(f"Spark read {topic}-{partition} offset {offset}, which no slice of the plan holds")


def _row(text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([text], pa.string())], ["result"])


@dataclass
class SliceWriter:
    task: WriteTask
    slice: Slice
    _objects: Objects | SingleObjects = field(init=False)
    _room: int = field(init=False)
    """Bytes that a folder may have. One that was written before had room."""
    _decoder: Decoder = field(init=False)
    _last: int = -1
    _skipped: list[int] = field(default_factory=list)
    _failure: Failure | None = None
    _retries: int = 0
    _counting: Lock = field(default_factory=Lock)
    _read: int = 0
    _share: Share = field(init=False)
    _end: int | None = None
    """Where the slice ends before its time, because it makes enough objects."""

    def __post_init__(self) -> None:
        task, topic = self.task, self.slice.topic
        self._last = self.slice.start - 1
        bucket = open_bucket(task.destination, task.secrets, task.retrying)
        bucket.on_retry = self._count_retry
        bucket.share = self._share = Share(task.requests)
        known, generation = task.schemas.get(topic, ""), self.slice.generation
        self._decoder = open_decoder(task.encoding, topic, known, generation=generation)
        self._objects = open_objects(task, self.slice, bucket, self._decoder.as_text)
        layout, prefix = task.encoding.layout, task.destination.prefix
        self._room = MAX_KEY_BYTES
        if not task.again:
            self._room = room_for_folder(prefix, layout, topic, task.encoding.extension, task.mark)

    def _count_retry(self, what: str) -> None:
        with self._counting:
            self._retries += 1

    def write(self, batch: pa.RecordBatch) -> bool:
        """False once the slice is over before its end."""
        if (large := self._large(batch)) is not None:
            self._failure = Failure(LARGE_RECORD, f"offset {large} is a large record", retryable=True)
            return False
        self._check(batch)
        try:
            self._write(batch)
        except S3SinkError as error:
            self._failure = Failure(error.reason, str(error), error.retryable)
        if self._end is not None:
            return False
        self._read += batch.nbytes
        return self._failure is None

    def finish(self) -> SliceResult:
        end = self.slice.end if self._end is None else self._end
        if self._failure is None or self._failure.offset is not None:
            try:
                self._objects.close()
                self._blame_keys()
            except S3SinkError as error:
                self._failure = Failure(error.reason, str(error), error.retryable)
        said = SliceResult(
            *(self.slice, self.slice.start),
            failure=self._failure,
            request_retries=self._retries,
            throttled=self._share.throttled,
            share=self._share.now,
        )
        if self._failure is not None:
            if self._failure.offset is None:
                self.abandon()
                blamed = self._failure.reason == "KeyRefused"
                return replace(said, refused=tuple(self._objects.refused.items()) if blamed else ())
            end = self._failure.offset
        self._objects.tidy()
        return replace(
            said,
            end=end,
            objects=tuple(self._objects.done),
            skipped=tuple(o for o in self._skipped if o < end),
            read_bytes=self._read,
            schema=self._decoder.schema,
        )

    def _blame_keys(self) -> None:
        """Fails the slice if the store refused some keys. It is not the keys' fault if it refuses any other, too."""
        if self._objects.refused:
            try_upload(self._objects.bucket, self.task.destination.prefix)
            why = next(iter(self._objects.refused.values()))
            self._failure = Failure("KeyRefused", f"{self.slice}: {why}", retryable=False)

    def abandon(self) -> None:
        self._objects.abandon()

    def _large(self, batch: pa.RecordBatch) -> int | None:
        """The offset of a record that was held back (see `batches`)."""
        lowest: int = batch.column("offset").to_numpy().min()
        return ~lowest if lowest < 0 else None

    def _check(self, batch: pa.RecordBatch) -> None:
        """Spark's split and the plan's slices are the same by construction; this is where that is checked."""
        offsets, partitions = batch.column("offset").to_numpy(), batch.column("partition").to_numpy()
        rising = (offsets[1:] > offsets[:-1]).all()
        mine = (partitions == self.slice.partition).all()
        first, last = int(offsets[0]), int(offsets[-1])
        if not (rising and mine and self._last < first and last < self.slice.end):
            raise ProtocolError(
                f"Spark gave the task of {self.slice} rows {first}…{last} after {self._last}: "
                "not this slice's rows in rising order"
            )
        self._last = last

    def _write(self, batch: pa.RecordBatch) -> None:
        encoding, first = self.task.encoding, batch.column("offset")[0].as_py()
        nulls = null_rows(batch)
        if encoding.nulls == "Skip":
            batch = batch.filter(pc.invert(nulls))
        if not batch.num_rows:
            return
        offsets = batch.column("offset")
        decoded = self._decoder.decode(batch)
        rows, place = decoded.rows, (self.slice.topic, self.slice.partition)
        folders, unplaced = folders_of(batch, encoding, *place, self._room, rows)
        bad = {**unwritable(rows, encoding), **unplaced.rows, **decoded.bad.rows}
        if encoding.nulls == "Fail":
            bad |= dict.fromkeys(pc.indices_nonzero(nulls).to_pylist(), NULL_VALUE)
        groups = groups_of(batch, encoding, folders)
        if self.task.refused or self.task.longest_segment is not None:
            bad |= rows_in(groups, len(offsets), self._refusal)
        if self._too_many(groups):
            self._end = first
            return
        if bad:
            keep = self._judge(offsets, bad)
            rows, offsets = rows.filter(keep), offsets.filter(keep)
            groups = None if groups is None else Groups(groups.keys, groups.codes.filter(keep))
        if len(offsets):
            self._objects.write(rows, offsets, groups)

    def _refusal(self, group: Group) -> str:
        """Why the store does not take the key of the group's object; empty if it does, or nobody knows yet."""
        if why := self.task.refused.get(self.slice, {}).get(group):
            return why
        varies = self.task.encoding.folders_vary
        return refused_for_length(group[0], self.task.longest_segment) if varies else ""

    def _too_many(self, groups: Groups | None) -> bool:
        """Not of the first batch: a slice gets on, whatever it holds."""
        most = self.task.most_objects
        return most is not None and self._read > 0 and self._objects.with_these(groups) > most

    def _judge(self, offsets: pa.Array, bad: dict[int, str]) -> pa.Array:
        """Which rows to keep: all but the bad ones, and none from the first that may not be skipped."""
        stop = len(offsets)
        for row in sorted(bad):
            offset = offsets[row].as_py()
            if self.task.skip_bad and len(self._skipped) < self.task.max_bad:
                self._skipped.append(offset)
                continue
            where = f"topic {self.slice.topic}, partition {self.slice.partition}, offset {offset}"
            if self.task.skip_bad:
                # The limit is there to stop a flood: what came before the last drop is not committed either.
                why = f"more than errors.maxPerFlush = {self.task.max_bad} bad records, here: {bad[row]}"
                self._failure = Failure("TooManyBadRecords", f"{where}: {why}", retryable=False)
            else:
                self._failure = Failure("BadRecord", f"{where}: {bad[row]}", retryable=False, offset=offset)
            stop = row
            break
        return pa.array([row < stop and row not in bad for row in range(len(offsets))], pa.bool_())


def open_objects(
    task: WriteTask, slice: Slice, bucket: Bucket, as_text: Callable[[tuple[str, ...]], None]
) -> Objects | SingleObjects:
    if task.encoding.format == "Bytes":
        return SingleObjects(task, slice, bucket)
    return Objects(task, slice, bucket, as_text)
