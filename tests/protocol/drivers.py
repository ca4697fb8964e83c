"""The real driver with models of S3, Kafka and Spark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from s3sink_api.spec import Destination, S3Sink, parse
from s3sink_job.base.errors import FencedError, S3SinkError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.commit import former_objects, multipart_publisher
from s3sink_job.driver import driver, takeover
from s3sink_job.driver.driver import Driver
from s3sink_job.flush import partition_backoff
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.slicing import Limits
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.truncation import OffsetValidation
from s3sink_job.kafka import open_transactions
from s3sink_job.kafka.connection import KafkaConnection
from s3sink_job.kafka.slice_reader import JobFailed
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter
from s3sink_job.shape.dead_letters import RECORD
from s3sink_job.stores import probe as probing
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.s3.bucket import S3Bucket
from s3sink_job.task import slice_writer, upload_pool
from s3sink_job.task.flush_job import FlushJob
from s3sink_job.task.slice_result import SliceResult, result_from_json
from s3sink_job.task.slice_task import SliceTask
from tests.protocol.letter_topic import ModelLetterTopic
from tests.protocol.store import ModelClient, ModelS3
from tests.protocol.watchdog import LETTERS
from tests.protocol.world import Applied, Line, Process, Reset, Scheduled, World

TOPIC = "t"
RECORDS = 3
INTERVAL = 10.0
IDLE_AT = "the end of a step"
LIMITS = Limits(parallel=3, smallest=1)
"""Even a few records are cut into several slices, wherever they are more than one object."""
OTHER_COLUMNS = {name: kind for name, kind in RECORD if name in {"key", "timestamp", "headers"}}
BELOW_PREFIX = {"prefix": LETTERS, "format": "Json"}
BATCH = 2
"""Rows a task reads at once, so that much can happen to the topic while it reads."""


@cache
def sink(
    delivery: str, request_retries: int, run: str, reset: Reset | None, generation: int, bad_records: str, mode: str
) -> S3Sink:
    to = {} if reset is None else {"position": reset.position}
    if to.get("position") == "Timestamp":
        to["timestamp"] = "2026-01-01"
    return parse(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {
                "name": "model",
                "uid": "u",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "generation": generation,
            },
            "spec": {
                "source": {
                    "bootstrapServers": "model:9092",
                    "topics": [TOPIC],
                    "onDataLoss": "Skip",
                    "value": {"format": "String"},
                },
                "destination": {"bucket": "lake"},
                "format": {"type": "Text"},
                "flush": {"records": RECORDS, "interval": f"{INTERVAL:.0f}s"},
                "errors": {
                    "records": "Skip" if bad_records == "Skip" else "DeadLetter",
                    "deadLetter": {"topic": LETTERS} if bad_records == "Topic" else BELOW_PREFIX,
                    "requestRetries": {"max": request_retries},
                },
                "delivery": delivery,
                "run": run,
                "mode": mode,
                "allowEmpty": mode == "FullRefresh",
            }
            | ({} if reset is None else {"reset": {"nonce": reset.nonce, "to": to}}),
        }
    )


REPORTER = Reporter()


class ModelAdmin:
    def __init__(self, world: World, line: Line) -> None:
        self._world, self._line = world, line

    def describe(self, topics: Iterable[str]) -> dict[str, Topic | None]:
        return self._world.look(self._line, "describe", lambda: self._world.kafka.describe(topics))

    def offsets(self, partitions: Iterable[TopicPartition], *, committed: bool) -> dict[TopicPartition, Offsets]:
        wanted = list(partitions)
        return self._world.look(self._line, "offsets", lambda: self._world.kafka.offsets(wanted, committed=committed))

    def offsets_at(self, partitions: Iterable[TopicPartition], milliseconds: int) -> dict[TopicPartition, int | None]:
        wanted = list(partitions)
        return self._world.look(self._line, "offsets at a time", lambda: self._world.kafka.offsets_at(wanted))

    def leader_epochs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        wanted = list(partitions)
        return self._world.look(self._line, "leader epochs", lambda: self._world.kafka.leader_epochs(wanted))

    def validate(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> OffsetValidation:
        asked = dict(offsets)
        return self._world.look(self._line, "validate", lambda: self._world.kafka.validate(asked))

    def compacted(self, topics: Iterable[str]) -> set[str]:
        return set()

    def matches(self, pattern: str, name: str) -> bool:
        return bool(re.fullmatch(pattern, name))

    def close(self) -> None:
        return


class ModelConnection(KafkaConnection):
    def __init__(self, world: World, line: Line) -> None:
        self._world, self._line = world, line
        self.properties = {}

    def admin(self) -> Any:
        return ModelAdmin(self._world, self._line)

    def close(self) -> None:
        return


@dataclass
class ModelFlushJob(FlushJob):
    """The whole `FlushJob`, except for the Spark job."""

    world: World = field(kw_only=True)
    line: Line = field(kw_only=True)

    def run(self, task: SliceTask, state: SinkState, connection: Mapping[str, str]) -> list[SliceResult]:
        return self._run_as_needed(task, connection, "model")

    def _run_job(self, task: SliceTask, connection: Mapping[str, str], group: str) -> list[SliceResult]:
        """As `task.flush_job.run_job`: a task for each slice, and an exception in one of them fails the job."""
        results: dict[Slice, SliceResult] = {}
        for part in task.slices:
            try:
                rows = [
                    row
                    for batch in task(self._fetch(part, whole=task.reading.whole))
                    for row in batch.column("result").to_pylist()
                ]
            except Exception as error:
                raise JobFailed(f"{type(error).__name__}: {error}") from error
            results |= {r.slice: r for r in map(result_from_json, rows)}
        return [results.get(s) or SliceResult(slice=s, end=s.end) for s in task.slices]

    def _fetch(self, part: Slice, *, whole: bool) -> Iterator[pa.RecordBatch]:
        """Reads the log that exists at the moment."""
        at, name = part.start, f"read {part}"
        while at < part.end:
            found = self.world.read(self.line, name, lambda at=at: self._records(part, at))
            if not found:
                return
            columns = {
                "partition": pa.array([part.partition] * len(found), pa.int32()),
                "offset": pa.array(list(found), pa.int64()),
                "value": pa.array(list(found.values()), pa.binary()),
            }
            if whole:
                columns |= {name: pa.nulls(len(found), kind) for name, kind in OTHER_COLUMNS.items()}
            yield pa.RecordBatch.from_pydict(columns)
            at = max(found) + 1

    def _records(self, part: Slice, at: int) -> dict[int, bytes]:
        log = self.world.kafka.led()[part.partition]
        if at < log.earliest or part.end > log.stable:
            raise JobFailed(f"{part} is out of range")
        ahead = {offset: value for offset, value in log.records.items() if at <= offset < part.end}
        return dict(sorted(ahead.items())[:BATCH])


class ModelDriver(Driver):
    """The whole `Driver`, except for the client of Kafka and the Spark job."""

    new_flush_job: type[ModelFlushJob] = ModelFlushJob

    def __init__(
        self,
        world: World,
        line: Line,
        request_retries: int = 0,
        run: str = "Continuous",
        manifest: Applied | None = None,
    ) -> None:
        self.world, self.line = world, line
        delivery = "ExactlyOnce" if world.conditional else "AtLeastOnce"
        manifest = manifest or world.applied
        run, mode = ("Once", "FullRefresh") if manifest.run else (run, "Append")
        super().__init__(
            sink(delivery, request_retries, run, manifest.reset, manifest.generation, world.bad_records, mode),
            Secrets(line.name),
            None,
            REPORTER,
            cluster="c",
            stop=threading.Event(),
            clock=lambda: world.now,
            run_id=manifest.run,
        )
        self.planner.limits = LIMITS
        BUCKETS[line.name] = ModelClient(world.store, lambda *request: world.request(line, *request))

    def _connect_to_kafka(self) -> KafkaConnection:
        return ModelConnection(self.world, self.line)

    def _letter_topic(self, name: str) -> Any:
        return ModelLetterTopic(self.world, self.line, name)

    def _new_flush_job(self) -> FlushJob:
        return self.new_flush_job(
            *(self.sink, self.secrets, self.routing),
            spark=self.spark,
            stop=self.stop,
            on_request_retries=lambda count: None,
            world=self.world,
            line=self.line,
        )


BUCKETS: dict[str, ModelClient] = {}
"""The way to the store by the name of the driver's secrets: all that a pickled task has of its driver."""


def model_bucket(destination: Destination, secrets: Secrets, retry: RetryPolicy, **_: Any) -> Bucket:
    at_once = RetryPolicy(retry.max, backoff=0)
    return Bucket(S3Bucket(BUCKETS[secrets.folder], destination.bucket), at_once)  # type: ignore[arg-type]


class AtOnce:
    """The threads of `upload_pool` without threads."""

    def __init__(self, workers: int) -> None:
        return

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call())
        except Exception as error:
            done.set_exception(error)
        return done

    def shutdown(self) -> None:
        return


class OneByOne:
    """The thread pool of the publisher without threads, so that requests come one after the other."""

    def __init__(self, workers: int) -> None:
        return

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def map(self, call: Callable[[Any], Any], items: Iterable[Any], chunksize: int) -> list[Any]:
        """All items are processed; the first failure is raised at the end."""
        done, failures = [], []
        for item in items:
            try:
                done.append(call(item))
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return done


def probe_like(world: World) -> probing.ProbeResult:
    """What the probe finds out about the world's kind of store, on another one of that kind."""
    store = ModelS3(lambda key, before, after: None, **world.store_kind)  # type: ignore[arg-type]
    client = ModelClient(store, lambda name, call, writes: call())
    return probing.probe(Bucket(S3Bucket(client, "lake"), RetryPolicy(0)), "state")  # type: ignore[arg-type]


@contextmanager
def model_parts(world: World) -> Iterator[None]:
    """Replaces the places where the driver and its tasks open a bucket."""
    before = dict(BUCKETS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "ThreadPool", OneByOne)
        probed = probe_like(world)
        patch.setattr(driver, "open_bucket", model_bucket)
        patch.setattr(slice_writer, "open_bucket", model_bucket)
        patch.setattr(takeover, "probe", lambda bucket, folder: probed)
        patch.setattr(partition_backoff, "backoff", lambda retries, attempts: 1.0)
        patch.setattr(open_transactions, "first_open_transactions", lambda admin, partitions: [])
        patch.setattr(multipart_publisher, "ThreadPool", OneByOne)
        patch.setattr(former_objects, "ThreadPool", OneByOne)
        patch.setattr(upload_pool, "ThreadPoolExecutor", AtOnce)
        patch.setattr(logs.log, "disabled", True)
        yield
    BUCKETS.clear()
    BUCKETS.update(before)


def run_driver(world: World, process: Process, request_retries: int, manifest: Applied) -> None:
    """As `driver.loop.Loop`: a fenced driver ends; after any other error the next step follows."""
    line = Scheduled(process)
    running = ModelDriver(world, line, request_retries, manifest=manifest)
    while True:
        process.well = False
        try:
            running.step()
            process.well, process.writer = True, running.committer.ledger.writer
            if running.finished:
                world.note(f"{process.name}: ends")
                return
        except FencedError:
            world.note(f"{process.name}: fenced")
            return
        except S3SinkError as error:
            world.note(f"{process.name}: {error.reason}: {error}")
        line.fate_of(IDLE_AT, False)
