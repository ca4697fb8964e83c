"""What Kafka still has of lost objects: ranges to read again, ranges that are gone for good, and what has to wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from s3sink_job.engine.topics import Topics
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.contact import GIVEN_UP_AFTER, Topic
from s3sink_job.flush.manifest import Gap, GapReason, Manifest, ObjectEntry, SourceLog
from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import State, same_topic
from s3sink_job.flush.truncation import Validated
from s3sink_job.kafka.admin import Admin


@dataclass(frozen=True)
class Lost:
    """A lost object. `place` is its number in the manifest of its flush."""

    place: int
    entry: ObjectEntry

    @property
    def at(self) -> TopicPartition:
        return self.entry.topic, self.entry.partition


@dataclass(frozen=True)
class Left:
    """The part of a lost object's range that Kafka still has: `[start, stop)`. Empty if it has nothing."""

    lost: Lost
    start: int
    stop: int
    gaps: tuple[Gap, ...] = ()
    """The parts that are gone."""


@dataclass
class Findings:
    left: list[Left] = field(default_factory=list)
    waiting: dict[TopicPartition, tuple[Problem, bool]] = field(default_factory=dict)
    """What has to wait: the problem, and whether it may pass by itself."""
    logs: dict[str, SourceLog] = field(default_factory=dict)
    """The logs that are read now."""


def what_is_left(
    state: State,
    manifest: Manifest,
    lost: Iterable[Lost],
    admin: Admin,
    topics: Topics,
    now: float,
    *,
    skip_lost: bool,
) -> Findings:
    found, by_topic = Findings(), dict[str, list[Lost]]()
    for one in lost:
        by_topic.setdefault(one.entry.topic, []).append(one)
    for name, own in by_topic.items():
        try:
            topic = admin.describe([name])[name]
            if topic is None and not topics.given_up(name, now, GIVEN_UP_AFTER if skip_lost else None):
                found.waiting |= dict.fromkeys((one.at for one in own), (_missing(name, len(own)), False))
                continue
            if topic is not None and _same_log(state, manifest, name, topic, own):
                bounds = _bounds(manifest, name, topic, own, admin, found)
            else:
                bounds = dict.fromkeys((one.at for one in own), (0, 0))
        except S3SinkError as error:
            problem = Problem(error.reason, str(error))
            found.waiting |= dict.fromkeys((one.at for one in own), (problem, error.retryable))
            continue
        for one in own:
            if one.at in bounds:
                _judge(found, one, *bounds[one.at], now, skip_lost=skip_lost)
    return found


def _same_log(state: State, manifest: Manifest, name: str, topic: Topic, lost: list[Lost]) -> bool:
    """Whether the topic is the one that was read."""
    if name in manifest.logs:
        return same_topic(topic.id, manifest.logs[name].id)
    # An older release wrote the manifest: only the generation tells.
    known = state.topics.get(name)
    generations = {one.entry.generation for one in lost}
    return known is not None and same_topic(topic.id, known.id) and generations == {known.generation}


def _bounds(
    manifest: Manifest, name: str, topic: Topic, lost: list[Lost], admin: Admin, found: Findings
) -> dict[TopicPartition, tuple[int, int]]:
    """By partition: the offsets whose records are still those that were read."""
    ends: dict[TopicPartition, int] = {}
    for one in lost:
        ends[one.at] = max(one.entry.last + 1, ends.get(one.at, 0))
    seen = admin.offsets(ends, committed=False)
    log = manifest.logs.get(name)
    epochs = {at: log.epochs.get(at[1]) if log else None for at in ends}
    asked = {at: (ends[at], e) for at, o in seen.items() if (e := epochs[at]) is not None and e != o.leader_epoch}
    told = admin.validate(asked) if asked else Validated()
    for at in ends.keys() - seen.keys() | told.unknown.keys():
        found.waiting[at] = (_unavailable(at), True)
    found.logs[name] = SourceLog(
        topic.id, {at[1]: o.leader_epoch for at, o in seen.items() if o.leader_epoch is not None}
    )
    # Where the broker cannot say what of the log is left, nothing of it can be trusted.
    limits = {at: told.cut[at] or 0 if at in told.cut else end for at, end in ends.items()}
    return {at: (o.earliest, limits[at]) for at, o in seen.items() if at not in found.waiting}


def _judge(found: Findings, lost: Lost, earliest: int, end: int, now: float, *, skip_lost: bool) -> None:
    entry = lost.entry
    start = min(max(entry.first, earliest), entry.last + 1)
    stop = max(start, min(entry.last + 1, end))
    gone = [(first, last) for first, last in ((entry.first, start), (stop, entry.last + 1)) if first < last]
    if gone and not skip_lost:
        text = f"{entry.key}: its upload was aborted before it was published, and Kafka no longer has all its records"
        todo = "set spec.source.onDataLoss to Skip to record a gap and to write what is left"
        found.waiting[lost.at] = (Problem("DataLoss", f"{text}: {todo}"), False)
        return
    place = (entry.topic, entry.generation, entry.partition)
    gaps = tuple(Gap(*place, first, last, GapReason.UPLOAD_LOST, now) for first, last in gone)
    found.left.append(Left(lost, start, stop, gaps))


def _missing(name: str, count: int) -> Problem:
    text = f"topic {name} does not exist (any more), and {count} objects of it have to be written again"
    return Problem("TopicMissing", f"{text}. To give them up, leave it out of spec.source.topics or topicPattern")


def _unavailable(at: TopicPartition) -> Problem:
    text = f"{at[0]}-{at[1]}: Kafka does not tell its offsets, and lost objects of it have to be written again"
    return Problem(UNAVAILABLE, f"{text}; trying again")
