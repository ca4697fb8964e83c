"""`s3sink plan`: what a driver would write now, and why.

It uses the driver's observer and planner, with a committer that stores nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from s3sink_api.spec import S3Sink
from s3sink_job.base.times import iso
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.takeover import adopt_from
from s3sink_job.flush.ending_offsets import describe_end
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Manifest, Slice
from s3sink_job.flush.plan import PartitionTimes, Plan, lagging_since
from s3sink_job.flush.refresh import as_if_finished, replaced_totals
from s3sink_job.flush.resets import pending_reset
from s3sink_job.flush.rules import due_by_time, offsets_per_object
from s3sink_job.flush.state import SinkState, partition_of
from s3sink_job.flush.topic_changes import TopicChanges
from s3sink_job.flush.transitions import commit, published
from s3sink_job.layout.keys import ObjectSource, folder_hint, object_key
from s3sink_job.task.routing import Encodings, Routing


class DryRunCommitter(Committer):
    """Continues as if everything had been stored."""

    def swap(self, state: SinkState) -> SinkState:
        self._state = state
        return state

    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        return self.swap(published(commit(state, manifest)))


@dataclass(frozen=True)
class Preview:
    sink: S3Sink
    routing: Routing
    stored: SinkState | None
    state: SinkState
    changes: TopicChanges
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
            "refresh": self._refresh,
            "end": describe_end(end) if (end := self.sink.spec.source.ending_offsets) else None,
            "paused": self.sink.spec.state != "Running",
            "notes": list(self.changes.notes),
            "left": self.plan.left,
            "throttled": self.plan.throttled,
            "partitions": [self._partition(at, offsets) for at, offsets in sorted(self.changes.known.items())],
            "problems": [
                {"topic": topic, "partition": partition, "reason": problem.reason, "message": problem.message}
                for (topic, partition), problem in sorted(self.changes.problems.items())
            ],
        }

    @property
    def _refresh(self) -> dict[str, Any] | None:
        """What a run that begins now would replace, and the run that is not finished; None if there is neither."""
        unfinished = self.stored.refresh if self.stored and self.stored.refresh else None
        doc: dict[str, Any] = {}
        if unfinished is not None and unfinished.unfinished:
            doc["unfinished"] = {"run": unfinished.run, "phase": str(unfinished.phase)}
        if self.sink.spec.mode == "FullRefresh":
            former = replaced_totals(self.state)
            doc["replaces"] = {"objects": former.objects, "records": former.records, "bytes": former.bytes}
        return doc or None

    @property
    def _reset(self) -> str | None:
        """The nonce of the reset that is due."""
        wanted = self.sink.spec.reset
        due = wanted if self.stored is None else pending_reset(wanted, self.stored)
        return due.nonce if due else None

    def _partition(self, at: TopicPartition, offsets: Offsets) -> dict[str, Any]:
        committed = self.state.offset(*at)
        doc: dict[str, Any] = {"topic": at[0], "partition": at[1], "committed": committed, "end": offsets.stable}
        doc |= {"lag": max(0, offsets.stable - committed)}
        slices = [part for part in self.plan.slices if part.at == at]
        if slices:
            doc |= {"reason": slices[0].reason, **self._written(at, slices)}
        elif doc["lag"] and at in self.changes.seen and not self.sink.spec.ends:
            when, reason = due_by_time(
                lagging_since(self.state, PartitionTimes(), at), self.routing.rules(None).of(at[0])
            )
            doc |= {"waitsFor": reason, "due": iso(when)}
        return doc

    def _written(self, at: TopicPartition, slices: list[Slice]) -> dict[str, Any]:
        known = partition_of(self.state, at)
        rules = self.routing.rules(None).of(at[0])
        length = 1 if rules.single else offsets_per_object(known, rules)[0]
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
        """What depends on records, not on offsets. Each value gets its own objects, so there may be more of them."""
        encoding = self.encodings.of(topic)
        if encoding.format.one_record_objects:
            return []
        return ["folder"] * encoding.folders_vary + ["window"] * (encoding.grouping.window is not None)

    def _key(self, part: Slice) -> str:
        """Of the slice's first object, if its first offset has a record. `*` stands for what depends on the record."""
        encoding = self.encodings.of(part.topic)
        prefix = self.routing.spec_of(part.topic).destination.prefix
        folder = folder_hint(encoding.layout, part.topic, part.partition)
        at = ObjectSource(part.topic, part.generation, part.partition, part.start)
        return object_key(prefix, encoding.layout, at, folder, encoding.extension)


def preview(driver: Driver, ledger: Ledger) -> Preview:
    """Reads the state and the offsets in Kafka. Writes nothing."""
    driver.routing.check()
    stored = ledger.load_checked(adopt_from(driver.sink.metadata))
    state = SinkState(owner=ledger.owner) if stored is None else published(replace(stored, owner=ledger.owner))
    committer = DryRunCommitter(ledger, as_if_finished(state), driver.clock)
    driver.refresh.abandon_other(committer)
    observation = driver.observer.observe(committer)
    plan = driver.planner.plan(committer.state, observation)
    return Preview(driver.sink, driver.routing, stored, committer.state, observation.changes, plan, driver.clock())
