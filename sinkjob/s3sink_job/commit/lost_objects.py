"""What Kafka still has of lost objects: ranges to read again, ranges that are gone for good, and what has to wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from s3sink_job.base.errors import S3SinkError
from s3sink_job.flush.kafka_metadata import Topic, TopicPartition
from s3sink_job.flush.manifest import Gap, GapReason, Manifest, ObjectEntry, SourceLog
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.flush.topic_changes import GIVEN_UP_AFTER
from s3sink_job.flush.truncation import OffsetValidation
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.topics import Topics


@dataclass(frozen=True)
class LostObject:
    """An object whose upload somebody aborted between commit and publish."""

    index: int
    """Among the objects of its flush's manifest."""
    entry: ObjectEntry

    @property
    def at(self) -> TopicPartition:
        return self.entry.topic, self.entry.partition


@dataclass(frozen=True)
class Remainder:
    """The part `[start, stop)` of a lost object's range that Kafka still has; empty if it has nothing."""

    lost: LostObject
    start: int
    stop: int
    gaps: tuple[Gap, ...] = ()
    """The parts that are gone."""

    @property
    def empty(self) -> bool:
        return self.start >= self.stop


@dataclass
class RepairPlan:
    remainders: list[Remainder] = field(default_factory=list)
    blocked: dict[TopicPartition, tuple[Problem, bool]] = field(default_factory=dict)
    """Partitions that have to wait: the problem, and whether it may go away by itself."""
    source_logs: dict[str, SourceLog] = field(default_factory=dict)
    """The logs that are read for the repair."""


def plan_repair(
    state: SinkState,
    manifest: Manifest,
    lost: Iterable[LostObject],
    admin: Admin,
    topics: Topics,
    now: float,
    *,
    skip_lost: bool,
) -> RepairPlan:
    """`skip_lost`: records that Kafka no longer has become gaps; otherwise the partition waits."""
    plan, by_topic = RepairPlan(), dict[str, list[LostObject]]()
    for one in lost:
        by_topic.setdefault(one.entry.topic, []).append(one)
    for name, own in by_topic.items():
        try:
            topic = admin.describe([name])[name]
            if topic is None and not topics.given_up(name, now, GIVEN_UP_AFTER if skip_lost else None):
                plan.blocked |= dict.fromkeys((one.at for one in own), (_missing(name, len(own)), False))
                continue
            if topic is not None and _same_log(state, manifest, name, topic, own):
                bounds = _bounds(manifest, name, topic, own, admin, plan)
            else:
                bounds = dict.fromkeys((one.at for one in own), (0, 0))
        except S3SinkError as error:
            problem = Problem(error.reason, str(error))
            plan.blocked |= dict.fromkeys((one.at for one in own), (problem, error.retryable))
            continue
        for one in own:
            if one.at in bounds:
                _plan_object(plan, one, *bounds[one.at], now, skip_lost=skip_lost)
    return plan


def _same_log(state: SinkState, manifest: Manifest, name: str, topic: Topic, lost: list[LostObject]) -> bool:
    """Whether the topic is the one that the flush read."""
    if name in manifest.logs:
        return same_topic(topic.id, manifest.logs[name].id)
    # The manifest of an older release has no topic ids: only generations can be compared.
    known = state.topics.get(name)
    generations = {one.entry.generation for one in lost}
    return known is not None and same_topic(topic.id, known.id) and generations == {known.generation}


def _bounds(
    manifest: Manifest, name: str, topic: Topic, lost: list[LostObject], admin: Admin, plan: RepairPlan
) -> dict[TopicPartition, tuple[int, int]]:
    """By partition: the offsets whose records are still those that the flush read."""
    ends: dict[TopicPartition, int] = {}
    for one in lost:
        ends[one.at] = max(one.entry.last + 1, ends.get(one.at, 0))
    seen = admin.offsets(ends, committed=False)
    log = manifest.logs.get(name)
    epochs = {at: log.epochs.get(at[1]) if log else None for at in ends}
    asked = {at: (ends[at], e) for at, o in seen.items() if (e := epochs[at]) is not None and e != o.leader_epoch}
    validated = admin.validate(asked) if asked else OffsetValidation()
    for at in ends.keys() - seen.keys() | validated.unanswered.keys():
        plan.blocked[at] = (_unavailable(at), True)
    plan.source_logs[name] = SourceLog(
        topic.id, {at[1]: o.leader_epoch for at, o in seen.items() if o.leader_epoch is not None}
    )
    # Where the broker does not know the point of truncation, nothing of the log can be trusted.
    limits = {at: validated.truncated[at] or 0 if at in validated.truncated else end for at, end in ends.items()}
    return {at: (o.earliest, limits[at]) for at, o in seen.items() if at not in plan.blocked}


def _plan_object(plan: RepairPlan, lost: LostObject, earliest: int, end: int, now: float, *, skip_lost: bool) -> None:
    entry = lost.entry
    start = min(max(entry.first, earliest), entry.last + 1)
    stop = max(start, min(entry.last + 1, end))
    gone = [(first, last) for first, last in ((entry.first, start), (stop, entry.last + 1)) if first < last]
    if gone and not skip_lost:
        text = f"{entry.key}: its upload was aborted before it was published, and Kafka no longer has all its records"
        todo = "Set spec.source.onDataLoss to Skip to record a gap and to write the remaining records"
        plan.blocked[lost.at] = (Problem("DataLoss", f"{text}. {todo}"), False)
        return
    place = (entry.topic, entry.generation, entry.partition)
    gaps = tuple(Gap(*place, first, last, GapReason.UPLOAD_LOST, now) for first, last in gone)
    plan.remainders.append(Remainder(lost, start, stop, gaps))


def _missing(name: str, count: int) -> Problem:
    text = f"topic {name} does not exist, but {count} of its objects have to be written again"
    return Problem("TopicMissing", f"{text}. To give them up, remove the topic from spec.source.topics or topicPattern")


def _unavailable(at: TopicPartition) -> Problem:
    text = f"{at[0]}-{at[1]}: Kafka does not return offsets, but lost objects have to be written again from it"
    return Problem(UNAVAILABLE, f"{text}; retrying")
