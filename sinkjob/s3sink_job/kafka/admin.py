"""Look-ups of topics and offsets with Kafka's own AdminClient, through the JVM gateway.

Each call through the gateway takes a fraction of a millisecond, and a topic may have thousands of partitions: an answer
is fetched whole, as the text that Java makes of it, and taken apart here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from s3sink_job.errors import FinalError, S3SinkError, TransientError
from s3sink_job.flush.contact import Topic
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.statefile import NO_ID
from s3sink_job.flush.truncation import Validated
from s3sink_job.kafka.silent import Silent
from s3sink_job.kafka.validation import validate

REQUEST_TIMEOUT, API_TIMEOUT = "request.timeout.ms", "default.api.timeout.ms"
TIMEOUTS = {REQUEST_TIMEOUT: "15000", API_TIMEOUT: "20000"}
COURTESY_MS = 5_000
MOST_PATIENCE = 20.0
"""Seconds for partitions that did not answer before; less at first."""
UNKNOWN_TOPIC = "UnknownTopicOrPartitionException"
_OFFSET = re.compile(
    r"([\w.-]+)-(\d+)=ListOffsetsResultInfo\(offset=(-?\d+), timestamp=-?\d+, "
    r"leaderEpoch=Optional(?:\.empty|\[(\d+)\])\)",
    re.ASCII,
)
_LEADERLESS = re.compile(r"\(partition=(\d+), leader=none,")
FINAL = {
    "SaslAuthenticationException": "the broker refused the credentials: check the Secret in spec.source.propertiesFrom",
    "SslAuthenticationException": "the TLS handshake failed: check the certificates in spec.source.propertiesFrom",
    "TopicAuthorizationException": "the user may not read this topic: grant Describe and Read",
    "ClusterAuthorizationException": "the user may not describe the cluster",
    "GroupAuthorizationException": "the user may not use the consumer group: grant Read on it",
    "InvalidTopicException": "the topic name is not valid",
    "ConfigException": "a Kafka property is not valid: check spec.source.properties",
    "UnsupportedVersionException": "the broker is too old for this client",
}


class KafkaUnavailable(TransientError):
    reason = "KafkaUnavailable"


class Told(NamedTuple):
    """A partition's answer to a question about an offset."""

    offset: int
    leader_epoch: int | None


class Admin:
    """One AdminClient, kept open. `properties` may hold secrets."""

    def __init__(self, jvm: Any, properties: Mapping[str, str]) -> None:
        self.jvm = jvm
        self.properties = dict(properties)
        self.servers = properties["bootstrap.servers"]
        self._silent = Silent(time.monotonic)
        self._standing: tuple[tuple[TopicPartition, ...], Any, Any] = ((), None, None)
        """The last question about offsets, for earliest and latest: the next look asks the same."""
        # The two go together: Kafka refuses an API time-out that is shorter than a request's.
        timeouts = {} if TIMEOUTS.keys() & properties.keys() else TIMEOUTS
        try:
            self.client = jvm.org.apache.kafka.clients.admin.AdminClient.create(
                self.java_map({**timeouts, **properties})
            )
        except Py4JJavaError as error:
            # Nothing was sent yet: only a setting can be wrong.
            raise FinalError(
                f"Kafka's client refused its settings: {root(error)}: {_message(error)}: "
                "check spec.source.properties and propertiesFrom",
                reason="KafkaSettings",
            ) from None

    def close(self) -> None:
        self.client.close(self.jvm.java.time.Duration.ofSeconds(1))

    def matching(self, pattern: str) -> set[str]:
        """Topics that the user may see and whose whole name matches, as Java understands it; no internal ones."""
        sets, matches = self.jvm.java.util.HashSet, self._compiled(pattern).asMatchPredicate()
        try:
            names = self.client.listTopics().names().get()
        except Py4JJavaError as error:
            raise self.translate(error, "list the topics") from None
        others, found = sets(names), sets(names)
        others.removeIf(matches)
        found.removeAll(others)
        return set(str(self.jvm.java.lang.String.join("\n", found)).split())

    def matches(self, pattern: str, name: str) -> bool:
        return bool(self._compiled(pattern).matcher(name).matches())

    def _compiled(self, pattern: str) -> Any:
        try:
            return self.jvm.java.util.regex.Pattern.compile(pattern)
        except IllegalArgumentException as error:
            text = f"topicPattern: Java does not take {pattern!r} as a regular expression"
            raise FinalError(f"{text}: {str(error).splitlines()[0]}", reason="TopicPattern") from None

    def describe(self, topics: Iterable[str]) -> dict[str, Topic | None]:
        """Id and partitions of each topic; None for one that does not exist."""
        names = list(topics)
        futures = self.client.describeTopics(self.java_list(names)).topicNameValues()
        # Not by the Java list: the end of its iterator is an exception, and those cross the gateway slowly.
        return {name: self._describe(name, futures.get(name)) for name in names}

    def _describe(self, topic: str, future: Any) -> Topic | None:
        try:
            description = future.get()
        except Py4JJavaError as error:
            if root(error) == UNKNOWN_TOPIC:
                return None
            raise self.translate(error, f"describe topic {topic}") from None
        topic_id, text = str(description.topicId().toString()), str(description.toString())
        return Topic(
            id="" if topic_id == NO_ID else topic_id,
            partitions=_numbers(description.partitions()),
            leaderless=frozenset(map(int, _LEADERLESS.findall(text))),
        )

    def compacted(self, topics: Iterable[str]) -> set[str]:
        """The topics that Kafka may thin out, record by record."""
        kafka = self.jvm.org.apache.kafka
        kind = kafka.common.config.ConfigResource
        resources = {name: kind(kind.Type.TOPIC, name) for name in topics}
        try:
            answer = self.client.describeConfigs(self.java_list(resources.values())).all().get()
            policies = {n: str(answer.get(r).get("cleanup.policy").value()) for n, r in resources.items()}
        except Py4JJavaError as error:
            raise self.translate(error, "describe topic settings (needs DescribeConfigs on the topics)") from None
        return {name for name, policy in policies.items() if "compact" in policy}

    def offsets(self, partitions: Iterable[TopicPartition], *, committed: bool) -> dict[TopicPartition, Offsets]:
        """`committed` takes the last stable offset as the readable end, otherwise the high watermark.

        Partitions that Kafka cannot tell of now are left out. They are asked for by themselves from then on, so that
        the others need not wait for them.
        """
        wanted = tuple(partitions)
        quick, slow = self._silent.split(wanted)
        found = self._offsets(quick, committed=committed)
        if slow:
            patience = int(min(MOST_PATIENCE, self._silent.waited(slow)) * 1000)
            found |= self._offsets(slow, committed=committed, timeout_ms=patience)
        if wanted and not found:
            # It is not the partitions: once Kafka answers, all of them are asked for again.
            raise KafkaUnavailable(f"Kafka at {self.servers} does not tell the offsets of any partition")
        self._silent.heard({*quick, *slow}, found)
        return {at: found[at] for at in wanted if at in found}

    def _offsets(
        self, wanted: tuple[TopicPartition, ...], *, committed: bool, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Offsets]:
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec
        question = self._standing
        if question[0] != wanted:
            keys = [self.partition(at) for at in wanted]
            question = (wanted, self._request(keys, spec.earliest()), self._request(keys, spec.latest()))
        if timeout_ms is None:
            self._standing = question
        _, first, last = question
        earliest = self._list(wanted, first, committed=False, timeout_ms=timeout_ms)
        if len(earliest) < len(wanted):
            # Whoever did not answer is not waited for again.
            wanted = tuple(at for at in wanted if at in earliest)
            last = self._request(map(self.partition, wanted), spec.latest())
        # The stable end is asked for first: it can then never lie beyond the end we report.
        stable = self._list(wanted, last, committed=True, timeout_ms=timeout_ms) if committed else {}
        end = self._list(wanted, last, committed=False, timeout_ms=timeout_ms)
        # Of the first answer: what a later leader said is then checked against the earlier one's log.
        epochs = {at: told.leader_epoch for at, told in (stable or end).items()}
        if held := tuple(at for at, told in stable.items() if told.offset < end.get(at, told).offset):
            # What was written between the two looks is no open transaction: a third one tells them apart.
            stable |= self._list(held, self._request(map(self.partition, held), spec.latest()), committed=True)
        told = [at for at in wanted if at in end and (at in stable or not committed)]
        return {
            at: Offsets(
                earliest[at].offset, min(stable.get(at, end[at]).offset, end[at].offset), end[at].offset, epochs[at]
            )
            for at in told
        }

    def leader_epochs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Of the present leaders; None where the broker does not tell. Partitions without an answer are left out."""
        wanted = tuple(partitions)
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        found = self._list(wanted, self._request(map(self.partition, wanted), spec), committed=False)
        return {at: told.leader_epoch for at, told in found.items()}

    def validate(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> Validated:
        """Whether the logs still have what was read below these offsets, by the leaders of these epochs."""
        return validate(self, offsets)

    def offsets_at(self, partitions: Iterable[TopicPartition], millis: int) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time; None where no record is that young."""
        wanted = tuple(partitions)
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(millis)
        found = self._list(wanted, self._request(map(self.partition, wanted), spec), committed=False)
        return {at: told.offset if told.offset >= 0 else None for at, told in found.items()}

    def java_list(self, items: Iterable[Any]) -> Any:
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def java_map(self, items: Mapping[str, str]) -> Any:
        made = self.jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made

    def courtesy(self, options: str) -> Any:
        """The options, by their Java name, of a question that must not hold up the loop for long."""
        return getattr(self.jvm.org.apache.kafka.clients.admin, options)().timeoutMs(COURTESY_MS)

    def partition(self, at: TopicPartition) -> Any:
        return self.jvm.org.apache.kafka.common.TopicPartition(*at)

    def _request(self, keys: Iterable[Any], spec: Any) -> Any:
        request = self.jvm.java.util.HashMap()
        for key in keys:
            request.put(key, spec)
        return request

    def _list(
        self, wanted: tuple[TopicPartition, ...], request: Any, *, committed: bool, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Told]:
        if not wanted:
            return {}
        level = self.jvm.org.apache.kafka.common.IsolationLevel
        isolation = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        options = self.jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(isolation)
        answer = self.client.listOffsets(request, options if timeout_ms is None else options.timeoutMs(timeout_ms))
        try:
            text = str(answer.all().get().toString())
        except Py4JJavaError:
            return self._one_by_one(wanted, answer)
        found = {(name, int(p)): Told(int(o), int(e) if e else None) for name, p, o, e in _OFFSET.findall(text)}
        return found if found.keys() == set(wanted) else self._one_by_one(wanted, answer)

    def _one_by_one(self, wanted: tuple[TopicPartition, ...], answer: Any) -> dict[TopicPartition, Told]:
        """Slow, and what it takes to tell the partitions that failed from the others."""
        found: dict[TopicPartition, Told] = {}
        for at in wanted:
            try:
                told = answer.partitionResult(self.partition(at)).get()
            except Py4JJavaError as error:
                failure = self.translate(error, f"offsets of {at[0]}-{at[1]}")
                if not failure.retryable:
                    raise failure from None
                continue
            epoch = told.leaderEpoch()
            found[at] = Told(int(told.offset()), int(epoch.get()) if epoch.isPresent() else None)
        return found

    def translate(self, error: Py4JJavaError, what: str) -> S3SinkError:
        kind = root(error)
        text = f"Kafka at {self.servers}, {what}: {kind}: {_message(error)}"
        if kind in FINAL:
            return FinalError(f"{text}: {FINAL[kind]}", reason=kind.removesuffix("Exception"))
        return KafkaUnavailable(text)


def _numbers(partitions: Any) -> tuple[int, ...]:
    """Kafka numbers partitions without holes: the last number tells all, unless it does not."""
    count = int(partitions.size())
    if count and int(partitions.get(count - 1).partition()) == count - 1:
        return tuple(range(count))
    return tuple(sorted(int(p.partition()) for p in partitions))


def _cause(error: Py4JJavaError) -> Any:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return cause


def root(error: Py4JJavaError) -> str:
    return str(_cause(error).getClass().getSimpleName())


def _message(error: Py4JJavaError) -> str:
    return str(_cause(error).getMessage())
