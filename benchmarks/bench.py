"""The runs: cases that take turns, small flushes in a row, and a large backlog."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.avro_topic import AvroEvents
from benchmarks.cases import (
    AVRO_TOPIC,
    HEADERS_TOPIC,
    JSON_SCHEMA_TOPIC,
    LAST_VERSION_TOPIC,
    PROTOBUF_TOPIC,
    SMALL,
    TRANSFORMS,
    TYPED,
    VERSIONS_TOPIC,
    WARM_UP,
    Case,
    document,
    secrets,
)
from benchmarks.json_schema_topic import JsonSchemaEvents
from benchmarks.process_tree import Watch
from benchmarks.protobuf_topic import ProtobufEvents
from benchmarks.runner import Child, ChildFailed
from benchmarks.topic import PARTITIONS, Events, Filler, Values, create
from tools.parts.kafka import KafkaBroker
from tools.parts.registry import SchemaRegistry
from tools.parts.s3 import S3Server

SMALL_RECORDS = 1000
VERSIONS = 10
"""Of the schema, in topics with several."""
SETTLED = 20
"""Small flushes until the JVM has compiled its code; the later ones are measured."""
SETTLING_ROUNDS = 2
"""Where cases are compared that differ by a few percent. Java compiles its code for some ten seconds of CPU time, which
a sink that runs for days has done once, and which weighs most in the fastest case."""
MIB = 2**20


@dataclass(frozen=True)
class Round:
    records: int
    seconds: float
    cpu_seconds: float
    peak_mib: float

    @property
    def per_second(self) -> float:
        return self.records / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.records / self.cpu_seconds


@dataclass(frozen=True)
class SmallFlushes:
    seconds: float
    """The median."""
    slowest: float
    count: int
    cpu_seconds: float
    """Of one flush, on average."""
    settled_mib: float
    last_mib: float

    @property
    def growth(self) -> float:
        return self.last_mib / self.settled_mib - 1


@dataclass
class Bench:
    kafka: KafkaBroker
    s3: S3Server
    folder: Path
    console: Console
    cores: int

    def __post_init__(self) -> None:
        self._filler = Filler(self.kafka, Events())
        self._numbers = itertools.count(1)
        self._secrets = secrets(self.folder / "secrets", self.s3)

    def topic(self, name: str, records: int, filler: Filler | None = None) -> str:
        create(self.kafka, name)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        # Without a terminal a progress bar would be one line at the end.
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress:
            task = progress.add_task(f"records into {name}", total=records)
            filler = filler or self._filler
            filler.add(name, records // PARTITIONS, lambda count: progress.advance(task, count))
        self.console.print(f"topic {name}: {records:,} records in {PARTITIONS} partitions")
        return name

    def many(self, case: Case, records: int) -> Round:
        """Copies a topic once whose records have thousands of partition values in random order."""
        topic = "stores"
        create(self.kafka, topic)
        Filler(self.kafka, Events(stores=True)).add(topic, records // PARTITIONS)
        with contextlib.ExitStack() as stack:
            found = self._round(self._started(stack, case), topic, records)
        self.console.print(f"{case.name}: {found.seconds:,.0f} s, {found.peak_mib:,.0f} MiB")
        return found

    def typed(self, records: int, warm_up: int, rounds: int) -> dict[str, Round]:
        """Topics with schemas take turns with a topic with the same records as JSON."""
        with SchemaRegistry() as registry:
            for name in (AVRO_TOPIC, LAST_VERSION_TOPIC, VERSIONS_TOPIC, PROTOBUF_TOPIC, JSON_SCHEMA_TOPIC):
                filler = Filler(self.kafka, _typed_events(name, registry))
                self.topic(f"{name}-{WARM_UP}", warm_up, filler)
                self.topic(name, records, filler)
            topic = self.topic("beside-avro", records)
            return self.turns(TYPED.values(), topic, records, warm_up, rounds, registry.url, settling=SETTLING_ROUNDS)

    def transforms(self, records: int, warm_up: int, rounds: int) -> dict[str, Round]:
        """Records with a header, with transforms and without."""
        filler = Filler(self.kafka, Events(), headers=True)
        self.topic(f"{HEADERS_TOPIC}-{WARM_UP}", warm_up, filler)
        topic = self.topic(HEADERS_TOPIC, records, filler)
        return self.turns(TRANSFORMS.values(), topic, records, warm_up, rounds, settling=SETTLING_ROUNDS)

    def turns(
        self,
        cases: Iterable[Case],
        topic: str,
        records: int,
        warm_up: int,
        rounds: int,
        registry: str = "",
        *,
        settling: int = 0,
    ) -> dict[str, Round]:
        """Each case has its own process; they take turns, so that a busy minute affects all of them.

        `settling`: rounds of all records that do not count.
        """
        measured: dict[str, list[Round]] = {case.name: [] for case in cases}
        with contextlib.ExitStack() as stack:
            running = [(case, self._started(stack, case, registry)) for case in cases]
            self.console.print(f"warming up: {', '.join(measured)}")
            warm = {case.name: self._round(child, case.warm_up, warm_up) for case, child in running}
            for n, (case, child) in itertools.product(range(1 - settling, rounds + 1), running):
                found = self._round(child, case.topic or topic, records)
                if n > 0:
                    measured[case.name].append(found)
                figures = f"{found.per_second:>9,.0f} records/s  {found.per_cpu_second:>9,.0f} per CPU-second"
                self.console.print(f"round {n}  {case.name:<25}{figures}  {found.peak_mib:>6,.0f} MiB")
        return {name: _typical(found, warm[name]) for name, found in measured.items()}

    def small(self, count: int) -> SmallFlushes:
        """One driver flushes a few records repeatedly."""
        topic = "small"
        create(self.kafka, topic)
        seconds: list[float] = []
        with contextlib.ExitStack() as stack:
            child = self._started(stack, SMALL)
            bucket = stack.enter_context(self._bucket())
            settled, cpu = 0, 0.0
            for n in range(1, SETTLED + count + 1):
                self._filler.add(topic, SMALL_RECORDS)
                answer, watch = child.measured({"topic": topic, "bucket": bucket})
                _complete(answer["records"], PARTITIONS * SMALL_RECORDS)
                if n == SETTLED:
                    settled = child.tree.memory()
                elif n > SETTLED:
                    seconds.append(answer["seconds"])
                    cpu += watch.cpu_seconds
            last = child.tree.memory()
        return SmallFlushes(median(seconds), max(seconds), count, cpu / count, settled / MIB, last / MIB)

    def _started(self, stack: contextlib.ExitStack, case: Case, registry: str = "") -> Child:
        log = self.folder / f"{case.name}-{next(self._numbers)}.log"
        places = {"bootstrap": self.kafka.bootstrap, "endpoint": self.s3.endpoint, "registry": registry}
        manifest = document(case, **places, cores=self.cores)
        first = {"kind": case.kind, "document": manifest, "secrets": self._secrets.folder}
        return stack.enter_context(Child(first, log))

    def _round(self, child: Child, topic: str, records: int) -> Round:
        with self._bucket() as bucket:
            ends = [records // PARTITIONS] * PARTITIONS
            answer, watch = child.measured({"topic": topic, "bucket": bucket, "ends": ends})
        _complete(answer["records"], records)
        return _figures(records, watch)

    @contextlib.contextmanager
    def _bucket(self) -> Iterator[str]:
        """A bucket that is emptied afterwards, because a round is as large as its topic."""
        name = self.s3.create_bucket(f"round-{next(self._numbers)}")
        try:
            yield name
        finally:
            client = self.s3.client()
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
                for found in page.get("Contents", []):
                    client.delete_object(Bucket=name, Key=found["Key"])


def _typed_events(topic: str, registry: SchemaRegistry) -> Values:
    register = partial(registry.register, f"{topic}-value")
    if topic == PROTOBUF_TOPIC:
        return ProtobufEvents(partial(register, kind="PROTOBUF"))
    if topic == JSON_SCHEMA_TOPIC:
        return JsonSchemaEvents(partial(register, kind="JSON"))
    return AvroEvents(register, 1 if topic == AVRO_TOPIC else VERSIONS, last_only=topic == LAST_VERSION_TOPIC)


def _figures(records: int, watch: Watch) -> Round:
    return Round(records, watch.seconds, watch.cpu_seconds, watch.peak / MIB)


def _complete(records: int, wanted: int) -> None:
    if records != wanted:
        raise ChildFailed(f"{records:,} records were read or written, but the topic has {wanted:,}")


def _typical(rounds: list[Round], warm_up: Round) -> Round:
    """The median round by cost, and the highest memory peak of all, including the warm-up."""
    middle = sorted(rounds, key=lambda found: found.cpu_seconds)[len(rounds) // 2]
    peak = max(r.peak_mib for r in [*rounds, warm_up])
    return Round(middle.records, middle.seconds, middle.cpu_seconds, peak)
