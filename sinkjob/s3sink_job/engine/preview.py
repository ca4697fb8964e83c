"""`s3sink plan`: what a driver would write now, and why.

It is the driver's own look at Kafka and its own planner, with books that store nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from s3sink_job.engine.books import Books
from s3sink_job.engine.driver import Driver
from s3sink_job.engine.ledger import ADOPT, Ledger
from s3sink_job.engine.routing import Encodings, Routing
from s3sink_job.flush.contact import Contact, due_reset
from s3sink_job.flush.keys import At, folder_hint, object_key
from s3sink_job.flush.manifest import Manifest, Slice
from s3sink_job.flush.plan import (
    Offsets,
    Plan,
    TopicPartition,
    Watch,
    behind_since,
    by_clock,
    object_length,
    partition_of,
)
from s3sink_job.flush.state import State, commit, published
from s3sink_job.spec import S3Sink
from s3sink_job.times import iso


class Rehearsal(Books):
    """Goes on as if everything had been stored."""

    def swap(self, state: State) -> State:
        self._state = state
        return state

    def commit(self, state: State, manifest: Manifest) -> State:
        return self.swap(published(commit(state, manifest)))


@dataclass(frozen=True)
class Preview:
    sink: S3Sink
    routing: Routing
    stored: State | None
    state: State
    contact: Contact
    plan: Plan
    now: float

    @property
    def encodings(self) -> Encodings:
        return self.routing.encodings(self.state.topics).at(int(self.now * 1000))

    def to_doc(self) -> dict[str, Any]:
        return {
            "sink": self.sink.id,
            "state": None if self.stored is None else f"at flush {self.stored.flush}",
            "publishing": self.stored.publishing if self.stored else None,
            "reset": self._reset,
            "paused": self.sink.spec.state != "Running",
            "notes": list(self.contact.notes),
            "left": self.plan.left,
            "throttled": self.plan.throttled,
            "partitions": [self._partition(at, offsets) for at, offsets in sorted(self.contact.known.items())],
            "problems": [
                {"topic": topic, "partition": partition, "reason": problem.reason, "message": problem.message}
                for (topic, partition), problem in sorted(self.contact.problems.items())
            ],
        }

    @property
    def _reset(self) -> str | None:
        """The nonce of the reset that is due."""
        wanted = self.sink.spec.reset
        due = wanted if self.stored is None else due_reset(wanted, self.stored)
        return due.nonce if due else None

    def _partition(self, at: TopicPartition, offsets: Offsets) -> dict[str, Any]:
        committed = self.state.offset(*at)
        doc: dict[str, Any] = {"topic": at[0], "partition": at[1], "committed": committed, "end": offsets.stable}
        doc |= {"lag": max(0, offsets.stable - committed)}
        slices = [part for part in self.plan.slices if part.at == at]
        if slices:
            doc |= {"reason": slices[0].reason, **self._written(at, slices)}
        elif doc["lag"] and at in self.contact.seen and not self.sink.spec.ends:
            when, reason = by_clock(behind_since(self.state, Watch(), at), self.routing.rules(None).of(at[0]))
            doc |= {"waitsFor": reason, "due": iso(when)}
        return doc

    def _written(self, at: TopicPartition, slices: list[Slice]) -> dict[str, Any]:
        known = partition_of(self.state, at)
        rules = self.routing.rules(None).of(at[0])
        length = 1 if rules.single else object_length(known, rules)[0]
        offsets = sum(part.end - part.start for part in slices)
        doc: dict[str, Any] = {
            "offsets": offsets,
            "slices": [{"from": part.start, "to": part.end} for part in slices],
            "objects": sum(-(-(part.end - part.start) // length) for part in slices),
            "keys": [self._key(part) for part in slices],
        }
        if split := self._split_by(at[0]):
            doc |= {"splitBy": split}
        bucket = self.routing.spec_of(at[0]).destination.bucket
        if bucket != self.sink.spec.destination.bucket:
            doc |= {"bucket": bucket}
        if known.written_per_offset is not None and known.read_per_offset is not None:
            doc |= {
                "bytes": round(offsets * known.written_per_offset),
                "readBytes": round(offsets * known.read_per_offset),
            }
        return doc

    def _split_by(self, topic: str) -> list[str]:
        """What records tell and offsets do not: each value makes an object of its own, so there may be more of them."""
        encoding = self.encodings.of(topic)
        if encoding.format == "Bytes":
            return []
        return ["folder"] * encoding.folders_vary + ["window"] * (encoding.window is not None)

    def _key(self, part: Slice) -> str:
        """Of the slice's first object, if its first offset holds a record; `*` stands for what the record tells."""
        encoding = self.encodings.of(part.topic)
        prefix = self.routing.spec_of(part.topic).destination.prefix
        folder = folder_hint(encoding.layout, part.topic, part.partition)
        at = At(part.topic, part.generation, part.partition, part.start)
        return object_key(prefix, encoding.layout, at, folder, encoding.extension)


def preview(driver: Driver, ledger: Ledger) -> Preview:
    """Reads the state and asks Kafka for offsets; nothing else, and nothing is written."""
    driver.routing.check()
    stored = ledger.look(driver.sink.metadata.annotations.get(ADOPT, ""))
    state = State(owner=ledger.owner) if stored is None else published(replace(stored, owner=ledger.owner))
    books = Rehearsal(ledger, state, driver.clock)
    contact, plan = driver.look(books)
    return Preview(driver.sink, driver.routing, stored, books.state, contact, plan, driver.clock())
