"""One sink with a real broker and a real store, behind a proxy that sees every step of the protocol.

No step needs a hook in the product: each step is a request to the store, and the proxy can hold it while a test kills,
freezes or replaces the driver.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark import ParameterSet

from tests.crash.processes import PATIENCE, SinkProcess
from tests.crash.reader import IndependentReader, Place, ids, in_kafka, places
from tests.crash.records import TYPED, JsonRecords, TypedRecords
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.proxy import Call, FaultProxy, Predicate, Refuse, Request, request_is
from tools.parts.registry import SchemaRegistry
from tools.parts.s3 import S3Server

PREFIX = "raw"
CREATE = request_is("POST", f"/{PREFIX}/", r"\buploads\b")
PART = request_is("PUT", f"/{PREFIX}/", r"\bpartNumber=")
MANIFEST = request_is("PUT", r"/flushes/[^/]+\.json$")
SWAP = request_is("PUT", r"/state\.json$")
READ_BACK = request_is("GET", r"/state\.json$")
COMPLETE = request_is("POST", f"/{PREFIX}/", r"\buploadId=")


def in_formats(usual: str) -> list[ParameterSet]:
    """Lines are streamed; columns are spilled and have a schema to commit. Each kind has its share of the tests."""
    return [pytest.param(kind, marks=[] if kind == usual else pytest.mark.long) for kind in ("Json", "Parquet")]


STATE = ".s3sink/default/crashing/state.json"

PARTITIONS = 2
PER_OBJECT = 50
_OBJECTS = 3
BATCH = PARTITIONS * _OBJECTS * PER_OBJECT
"""Records per batch: three objects per partition, if they are flushed together."""
BATCH_OBJECTS = PARTITIONS * _OBJECTS


@dataclass
class Sink:
    kafka: KafkaBroker
    s3: S3Server
    proxy: FaultProxy
    s3sink: CliProcess
    bucket: str
    topic: str
    folder: Path
    meta: bool = True
    """Whether rows have partition and offset, or the plain values only."""
    format: str = "Json"
    input: str = "Json"
    """The format of the records."""
    registry: SchemaRegistry | None = None
    """For records with a schema."""
    every: int = 1
    """Records whose id is a multiple of it are kept: what the transform of the spec says."""
    in_headers: bool = False
    """Whether some of the ids of schemas are in headers."""
    spec: dict[str, Any] = field(default_factory=dict)
    started: list[SinkProcess] = field(default_factory=list)
    end: int = 0
    """The end offset of each partition."""
    _ids: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.kafka.create_topic(self.topic, partitions=PARTITIONS)
        self.records: JsonRecords | TypedRecords = JsonRecords()
        if self.registry:
            self.records = TYPED[self.input](self.registry, self.topic, in_headers=self.in_headers)
        self.client = self.s3.client()
        self.reader = IndependentReader(self.client, self.bucket, f"{PREFIX}/")
        self.change()

    def change(self, **spec: Any) -> None:
        """A part of the manifest, for drivers that start later."""
        self.spec |= spec
        self.manifest.write_text(yaml.safe_dump_all(self._documents()))

    @property
    def manifest(self) -> Path:
        return self.folder / "sink.yaml"

    def _documents(self) -> list[dict[str, Any]]:
        api = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "crashing"}}
        spec: dict[str, Any] = {
            "source": {"bootstrapServers": self.kafka.bootstrap, "topics": [self.topic], **self.records.source},
            "destination": {
                "bucket": self.bucket,
                "prefix": PREFIX,
                "endpoint": self.proxy.endpoint,
                "region": self.s3.region,
                "credentials": {"secretRef": {"name": "s3"}},
            },
            "format": {
                "type": self.format,
                "compression": {"codec": "Gzip"},
                "columns": {"meta": "Kafka" if self.meta else "None"},
            },
            "flush": {"records": PER_OBJECT, "interval": "1s"},
            # Short waits: retries should come within the test.
            "errors": {
                "requestRetries": {"max": 3, "backoff": "20ms"},
                "retries": {"max": 20, "backoff": "200ms", "maxBackoff": "1s"},
            },
        }
        for room, fields in self.spec.items():
            spec[room] = {**spec.get(room, {}), **fields} if isinstance(fields, dict) else fields
        keys = {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": keys}
        return [{**api, "spec": spec}, secret]

    def produce(self, count: int = BATCH) -> None:
        """Writes records with new ids, the same number to each partition."""
        for partition in range(PARTITIONS):
            written = [self.records.write(next(self._ids)) for _ in range(count // PARTITIONS)]
            self.kafka.produce(self.topic, [(b"key", *one, None) for one in written], partition)
        self.end += count // PARTITIONS

    def start(self, *arguments: str) -> SinkProcess:
        return self.command("run", *arguments)

    def command(self, name: str, *arguments: str) -> SinkProcess:
        log = self.folder / f"{len(self.started) + 1:02}-{name}.log"
        process = SinkProcess(log, name, "-f", str(self.manifest), *arguments)
        self.started.append(process)
        return process

    def close(self) -> None:
        for process in self.started:
            process.kill()

    def drain(self) -> None:
        """A new driver copies everything, and ends."""
        process = self.start("--once")
        assert process.wait() == 0, process.tail()

    def state(self) -> dict[str, Any]:
        """The raw state document; {} before the first."""
        try:
            body = self.client.get_object(Bucket=self.bucket, Key=STATE)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return {}
        document: dict[str, Any] = json.loads(body)
        return document

    def is_level(self) -> bool:
        """Waits until all records in Kafka are committed, published and marked as published."""
        state = self.state()
        if not state.get("topics") or state["publishing"]:
            return False
        partitions = state["topics"][self.topic]["partitions"].values()
        return [at["offset"] for at in partitions] == [self.end] * PARTITIONS

    def settle(self, process: SinkProcess) -> None:
        process.until(self.is_level, "everything to be flushed and marked as published")

    def check_nothing_twice(self) -> None:
        """True at any time: every row is a record in Kafka, no record has two rows, no object changes."""
        there, wanted = self._compare()
        assert not there - wanted, f"twice or never produced: {sorted((there - wanted).items())[:10]}"

    def check_exactly_once(self, start: int = 0) -> None:
        """True at the end: every record is there, from the given offset of each partition on."""
        there, wanted = self._compare(start)
        assert not there - wanted, f"twice or never produced: {sorted((there - wanted).items())[:10]}"
        assert not wanted - there, f"missing: {sorted((wanted - there).items())[:10]}"

    def _compare(self, start: int = 0) -> tuple[Counter[Any], Counter[Any]]:
        lines = self.reader.lines()
        records = {at: value for at, value in self.in_kafka().items() if at[1] >= start and self._keeps(value)}
        if self.meta:
            return places(lines), Counter((at, json.loads(value)["id"]) for at, value in records.items())
        return ids(lines), ids(records.values())

    def _keeps(self, value: str) -> bool:
        return self.every == 1 or json.loads(value)["id"] % self.every == 0

    def in_kafka(self) -> dict[Place, str]:
        return in_kafka(self.kafka.bootstrap, self.topic, self.records.read)

    def prove(self, start: int = 0) -> None:
        """Ends every test: the independent reader and `s3sink verify` both find each record once."""
        self.check_exactly_once(start)
        report = json.loads(self.s3sink("verify", "-f", str(self.manifest), "--json"))
        due = [self._keeps(value) for at, value in self.in_kafka().items() if at[1] >= start]
        nothing = dict.fromkeys(["missing", "duplicates", "gaps", "unlisted", "skipped"], 0)
        expected = {"ok": True, **nothing, "records": due.count(True), "filtered": due.count(False)}
        assert {key: report[key] for key in expected} == expected, report

    def produce_at_once(self, process: SinkProcess, count: int = BATCH) -> None:
        """Produces while the driver is frozen, so that it finds all records at once, and writes one flush."""
        process.pause()
        self.produce(count)
        process.resume()

    def crash(self, step: Predicate, *, arrives: bool = False, skip: int = 0, whole: bool = True) -> SinkProcess:
        """Starts a driver and kills it at a request: before its effect, or between effect and answer."""
        process = self.start()

        def die(_: Request) -> None:
            if whole:
                process.kill()
            else:
                process.kill_driver()

        action = Call(after=die) if arrives else Call(before=die, then=Refuse())
        rule = self.proxy.on(step, action, times=1, skip=skip)
        assert process.wait() < 0, f"it ended by itself:\n{process.tail()}"
        assert rule.hits == 1
        self.proxy.remove(rule)
        self.check_nothing_twice()
        return process

    @contextmanager
    def frozen(self, process: SinkProcess, step: Predicate, *, skip: int = 0) -> Iterator[None]:
        """Freezes a running driver at a request, which is held; both go on when the block ends."""
        held, release = threading.Event(), threading.Event()

        def hold(_: Request) -> None:
            process.pause()
            held.set()
            release.wait(PATIENCE * 2)

        rule = self.proxy.on(step, Call(before=hold), times=1, skip=skip)
        try:
            process.until(held.is_set, "the request to freeze at")
            yield
        finally:
            self.proxy.remove(rule)
            release.set()
            process.resume()
