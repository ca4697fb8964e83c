"""Runs one case on the real driver and notes all that is in its buckets afterwards."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s3sink_job.driver.driver import Driver
from tests.corpus.normalise import Names, without_sync_marker
from tests.harness import World
from tools.parts.kafka import Record

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
DOCUMENTS = HERE / "documents"
"""States and manifests behind the hashes, for a readable difference. Git keeps the hashes only."""
STATE_FOLDER = ".s3sink/default/sink/"
NOON = 1_767_268_800.0
"""2026-01-01 12:00 UTC: when the clock of each case starts."""


@dataclass
class Clock:
    """Stands still unless a case moves it: how often the driver looks at it must not matter."""

    now: float = NOON

    def __call__(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Stage:
    """What a case acts on: topics with fixed names, a bucket, a clock."""

    name: str
    world: World
    clock: Clock = field(default_factory=Clock)
    states: list[bytes] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    """Partitions that the last driver could not write, with the reason."""
    other_buckets: list[str] = field(default_factory=list)

    def topic(self, part: str = "") -> str:
        return f"corpus-{self.name}-{part}" if part else f"corpus-{self.name}"

    def make(self, *parts: str, partitions: int = 1) -> list[str]:
        names = [self.topic(part) for part in parts or ("",)]
        for name in names:
            self.world.kafka.create_topic(name, partitions=partitions)
        return names

    def produce(self, records: Iterable[Record], part: str = "", partition: int = 0) -> None:
        self.world.kafka.produce(self.topic(part), records, partition)

    def driver(self, **spec: Any) -> Driver:
        return self.world.driver(clock=self.clock, **spec)

    def drain(self, **spec: Any) -> Driver:
        """Runs a sink to its end, notes its state, and lets an hour pass."""
        driver = self.world.drain(self.driver(**spec))
        self.note(driver)
        self.clock.pass_time(3600)
        return driver

    def note(self, driver: Driver) -> None:
        self.states.append(self.stored_state())
        self.problems = {f"{topic}-{p}": problem.reason for (topic, p), problem in driver.problems.items()}

    def stored_state(self) -> bytes:
        return self.read(f"{STATE_FOLDER}state.json")

    def read(self, key: str) -> bytes:
        body: bytes = self.world.client().get_object(Bucket=self.world.bucket, Key=key)["Body"].read()
        return body

    def put(self, key: str, document: Mapping[str, Any]) -> None:
        body = json.dumps(document, indent=1).encode()
        self.world.client().put_object(Bucket=self.world.bucket, Key=key, Body=body)

    def other_bucket(self) -> str:
        name = f"{self.world.bucket}-other"
        self.world.client().create_bucket(Bucket=name)
        self.other_buckets.append(name)
        return name


Play = Callable[[Stage], None]


@dataclass(frozen=True)
class Recording:
    """`summary` is what `recorded.json` holds of the case, `documents` the texts behind some of its hashes."""

    summary: dict[str, Any]
    documents: dict[str, str]


def record(name: str, play: Play, world: World) -> Recording:
    stage = Stage(name, world)
    world.topic = stage.topic()
    try:
        play(stage)
        return _recording(stage)
    finally:
        for driver in world.drivers:
            driver.close()


def _recording(stage: Stage) -> Recording:
    found = {
        ("" if bucket == stage.world.bucket else "other bucket: ") + key: stage.world.client().get_object(
            Bucket=bucket, Key=key
        )
        for bucket in (stage.world.bucket, *stage.other_buckets)
        for key in stage.world.sizes("", bucket)
    }
    bodies = {key: answer["Body"].read() for key, answer in found.items()}
    names = _names(stage, bodies)
    documents = {f"state-{n}.json": names(state.decode()) for n, state in enumerate(stage.states, 1)}
    objects = {}
    for key in sorted(bodies):
        body = without_sync_marker(bodies[key])
        if key.startswith(STATE_FOLDER):
            body = names(body.decode()).encode()
            documents[names(key.removeprefix(STATE_FOLDER))] = body.decode()
        objects[names(key)] = _described(body, found[key], names)
    states = {name: _hash(text.encode()) for name, text in documents.items() if name.startswith("state-")}
    documents.pop("state.json", None)  # the last of the states
    return Recording({"objects": objects, "states": states, "problems": stage.problems}, documents)


def _names(stage: Stage, bodies: Mapping[str, bytes]) -> Names:
    names = Names()
    names.bucket(stage.world.bucket)
    for state in stage.states:
        names.state(json.loads(state))
    random = {key.rpartition(": ")[2] for key, body in bodies.items() if without_sync_marker(body) != body}
    for key in sorted(bodies):
        if key.startswith(f"{STATE_FOLDER}flushes/"):
            names.manifest(json.loads(bodies[key]), random)
    return names


def _described(body: bytes, answer: Mapping[str, Any], names: Names) -> dict[str, Any]:
    described = {
        "sha256": _hash(body),
        "bytes": len(body),
        "type": answer["ContentType"],
        "encoding": answer.get("ContentEncoding", ""),
        "storage class": answer.get("StorageClass", ""),
        "tags": answer.get("TagCount", 0),
        "metadata": {key: names(value) for key, value in sorted(answer["Metadata"].items())},
    }
    return {name: value for name, value in described.items() if value}


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def write(recordings: Mapping[str, Recording], folder: Path) -> None:
    summaries = {name: recording.summary for name, recording in recordings.items()}
    (folder / RECORDED.name).write_text(_readable(summaries))
    for name, recording in recordings.items():
        for path, text in recording.documents.items():
            file = folder / DOCUMENTS.name / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())


def _readable(summaries: Mapping[str, Any]) -> str:
    """One line for each object, so that a difference is one line, too."""
    cases = []
    for name, summary in sorted(summaries.items()):
        kinds = [
            f"  {json.dumps(kind)}: {{\n" + ",\n".join(_lines(summary[kind])) + "\n  }" for kind in sorted(summary)
        ]
        cases.append(f" {json.dumps(name)}: {{\n" + ",\n".join(kinds) + "\n }")
    return "{\n" + ",\n".join(cases) + "\n}\n"


def _lines(found: Mapping[str, Any]) -> list[str]:
    return [
        f"   {json.dumps(key, ensure_ascii=False)}: {json.dumps(value, sort_keys=True, ensure_ascii=False)}"
        for key, value in sorted(found.items())
    ]


def differences(recorded: Mapping[str, Any], now: Recording, documents: Path) -> list[str]:
    """What is not as it was recorded, each object and document by its name."""
    found = []
    for kind in ("objects", "states", "problems"):
        before, after = recorded[kind], now.summary[kind]
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                found.append(f"{kind} {name}: recorded {before.get(name)}, now {after.get(name)}")
    for name, text in now.documents.items():
        file = documents / name
        if file.exists() and (before := file.read_bytes().decode()) != text:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), f"recorded {name}", "now", n=1)
            found.append("\n".join(lines))
    return found
