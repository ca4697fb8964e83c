"""The topics that a restore writes to: whether they take the records and keep them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.kafka.admin import Admin, KafkaUnavailable
from s3sink_job.kafka.topic_settings import create_topic, topic_settings
from s3sink_job.restore.plan import RestorePlan, RestoreSlice
from s3sink_job.restore.reading_task import TakenTimes

NEW_TOPIC = {
    # With a retention, records would be deleted at once by their old timestamps.
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    # Records may have been larger than the default of a broker.
    "max.message.bytes": str(100 * 2**20),
}
NAMES = (
    *NEW_TOPIC,
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms",
)
CREATION_TIMEOUT = 20.0
SETTLING_TIMEOUT = 30.0
"""Transactions of other producers may stay open for longer. They are not waited for."""


@dataclass(frozen=True)
class TargetTopic:
    name: str
    topic: Topic
    settings: Mapping[str, str]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [(self.name, partition) for partition in self.topic.partitions]

    @property
    def compacted(self) -> bool:
        return "compact" in self.settings.get("cleanup.policy", "")

    @property
    def deletes(self) -> bool:
        return "delete" in self.settings.get("cleanup.policy", "delete")

    def taken_times(self, now: int) -> TakenTimes:
        """`now` in milliseconds."""
        retention = self._limit("retention.ms") if self.deletes else None
        before = self._limit("message.timestamp.before.max.ms") or self._limit("message.timestamp.difference.max.ms")
        after = self._limit("message.timestamp.after.max.ms") or self._limit("message.timestamp.difference.max.ms")
        limits = [(now - retention, "retention.ms", retention, "deletes it")] if retention is not None else []
        limits += [(now - before, "message.timestamp.before.max.ms", before, "refuses it")] if before else []
        oldest = max(limits, default=None)
        return TakenTimes(
            oldest=oldest[0] if oldest else None,
            newest=now + after if after else None,
            why_oldest=f"topic {self.name} {oldest[3]} ({oldest[1]} is {oldest[2]}). {self._raise(oldest[1])}"
            if oldest
            else "",
            why_newest=f"topic {self.name} refuses it. {self._raise('message.timestamp.after.max.ms')}",
        )

    def _raise(self, name: str) -> str:
        return f"Raise {name} of the topic, and run the same command again: it resumes"

    def _limit(self, name: str) -> int | None:
        """None if there is none, or one that is longer than any time."""
        value = int(self.settings.get(name, "-1"))
        return None if value < 0 or value >= 2**62 else value


class Targets:
    def __init__(self, admin: Admin, plan: RestorePlan, sizes: Mapping[str, int]) -> None:
        """`sizes`: by topic, the partitions of a new one."""
        self._admin, self._plan, self._sizes = admin, plan, sizes
        self.missing: list[str] = []
        """Topics that do not exist yet."""

    def find(self, *, create: bool, replication: int | None) -> dict[str, TargetTopic]:
        """Refuses topics that would change or lose records. Creates those that do not exist, if it is told to."""
        topics = self._admin.describe(sorted(self._plan.topics))
        self.missing = [name for name, topic in topics.items() if topic is None]
        if create:
            for name in self.missing:
                topics[name] = self._create(name, replication)
        found = {name: self._target(name, topic) for name, topic in topics.items() if topic is not None}
        for target in found.values():
            self._check(target)
        return found

    def ends(self, targets: Mapping[str, TargetTopic]) -> dict[TopicPartition, Offsets]:
        wanted = [at for target in targets.values() for at in target.partitions]
        found = self._admin.offsets(wanted, committed=True) if wanted else {}
        if silent := [f"{topic}-{partition}" for topic, partition in wanted if (topic, partition) not in found]:
            raise KafkaUnavailable(f"Kafka at {self._admin.servers} returned no offsets of {', '.join(silent)}")
        return found

    def settled_ends(self, targets: Mapping[str, TargetTopic]) -> dict[TopicPartition, Offsets]:
        """Once the brokers have ended the last transactions, which takes moments after their commit."""
        deadline = time.monotonic() + SETTLING_TIMEOUT
        while True:
            found = self.ends(targets)
            if all(one.stable == one.end for one in found.values()) or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    def _create(self, name: str, replication: int | None) -> Topic:
        partitions = max(self._plan.topics[name], self._sizes.get(name, 1))
        failure = create_topic(self._admin, name, partitions, replication, NEW_TOPIC)
        if failure is not None:
            raise _not_created(name, failure)
        deadline = time.monotonic() + CREATION_TIMEOUT
        while (found := self._admin.describe([name])[name]) is None or len(found.partitions) < 1:
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"topic {name} was created, but the brokers do not list it yet; run it again")
            time.sleep(0.2)
        return found

    def _target(self, name: str, topic: Topic) -> TargetTopic:
        return TargetTopic(name, topic, topic_settings(self._admin, name, NAMES))

    def _check(self, target: TargetTopic) -> None:
        name, needed = target.name, self._plan.topics[target.name]
        if target.settings.get("message.timestamp.type") == "LogAppendTime":
            raise FinalError(
                f"topic {name} has message.timestamp.type LogAppendTime: its records would get the time of writing. "
                "Set it to CreateTime, at least until the restore is done",
                reason="LogAppendTime",
            )
        if not self._plan.by_key and len(target.topic.partitions) < needed:
            raise FinalError(
                f"topic {name} has {len(target.topic.partitions)} partitions, and the records are of {needed}. Create "
                "it with as many, or use --partition-by-key",
                reason="TooFewPartitions",
            )
        own = [part for part in self._plan.slices if part.topic == name]
        limit = int(target.settings.get("retention.bytes", "-1"))
        if target.deletes and limit >= 0 and (too_long := _longer_than(own, limit, by_key=self._plan.by_key)):
            raise FinalError(
                f"topic {name} keeps {limit:,} bytes of each partition (retention.bytes), and would delete the first "
                f"records: {too_long}. Raise it",
                reason="RetentionTooShort",
            )


def refuse_records(ends: Mapping[TopicPartition, Offsets]) -> None:
    """Raises if a topic has records."""
    for (topic, partition), offsets in ends.items():
        if offsets.end > offsets.earliest:
            raise FinalError(
                f"topic {topic} is not empty: partition {partition} has the offsets {offsets.earliest} to "
                f"{offsets.end - 1}. Use another topic (--to-topic), or --append to write behind them",
                reason="TargetNotEmpty",
            )


def _longer_than(slices: list[RestoreSlice], limit: int, *, by_key: bool) -> str:
    if by_key:
        return ""  # which partition gets how much is not known
    return next((f"{part} has about {part.read:,}" for part in slices if part.read > limit), "")


def _not_created(name: str, failure: S3SinkError) -> S3SinkError:
    text = f"{failure}. Create topic {name} yourself, or grant Create on it"
    return type(failure)(text, reason=failure.reason)
