"""Look-ups of topics and offsets with Kafka's own AdminClient, through the JVM gateway.

Each call through the gateway takes a fraction of a millisecond, and a topic may have thousands of partitions: an answer
is fetched whole, as the text that Java makes of it, and taken apart here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from s3sink_job.errors import FinalError, S3SinkError, TransientError
from s3sink_job.flush.contact import Topic
from s3sink_job.flush.plan import Offsets, TopicPartition

REQUEST_TIMEOUT, API_TIMEOUT = "request.timeout.ms", "default.api.timeout.ms"
TIMEOUTS = {REQUEST_TIMEOUT: "15000", API_TIMEOUT: "20000"}
COURTESY_MS = 5_000
UNKNOWN_TOPIC = "UnknownTopicOrPartitionException"
_OFFSET = re.compile(r"([\w.-]+)-(\d+)=ListOffsetsResultInfo\(offset=(-?\d+),", re.ASCII)
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


class Admin:
    """One AdminClient, kept open. `properties` may hold secrets."""

    def __init__(self, jvm: Any, properties: Mapping[str, str]) -> None:
        self.jvm = jvm
        self.servers = properties["bootstrap.servers"]
        self._standing: tuple[tuple[TopicPartition, ...], Any, Any] = ((), None, None)
        """The last question about offsets, for earliest and latest: the next look asks the same."""
        config = jvm.java.util.HashMap()
        # The two go together: Kafka refuses an API time-out that is shorter than a request's.
        timeouts = {} if TIMEOUTS.keys() & properties.keys() else TIMEOUTS
        for key, value in {**timeouts, **properties}.items():
            config.put(key, value)
        try:
            self.client = jvm.org.apache.kafka.clients.admin.AdminClient.create(config)
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
        return Topic(id=str(description.topicId().toString()), partitions=_numbers(description.partitions()))

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

        Partitions that Kafka cannot tell of now, such as those without a leader, are left out.
        """
        wanted = tuple(partitions)
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec
        if self._standing[0] != wanted:
            keys = [self.partition(at) for at in wanted]
            self._standing = (wanted, self._request(keys, spec.earliest()), self._request(keys, spec.latest()))
        _, first, last = self._standing
        earliest = self._list(wanted, first, committed=False)
        # The stable end is asked for first: it can then never lie beyond the end we report.
        stable = self._list(wanted, last, committed=True) if committed else {}
        end = self._list(wanted, last, committed=False)
        if held := tuple(at for at, offset in stable.items() if offset < end.get(at, offset)):
            # What was written between the two looks is no open transaction: a third one tells them apart.
            again = self._list(held, self._request(map(self.partition, held), spec.latest()), committed=True)
            stable |= {at: min(offset, end[at]) for at, offset in again.items()}
        told = [at for at in wanted if at in earliest and at in end and (at in stable or not committed)]
        return {at: Offsets(earliest[at], stable.get(at, end[at]), end[at]) for at in told}

    def offsets_at(self, partitions: Iterable[TopicPartition], millis: int) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time; None where no record is that young."""
        wanted = tuple(partitions)
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(millis)
        found = self._list(wanted, self._request(map(self.partition, wanted), spec), committed=False)
        return {at: offset if offset >= 0 else None for at, offset in found.items()}

    def java_list(self, items: Iterable[Any]) -> Any:
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
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

    def _list(self, wanted: tuple[TopicPartition, ...], request: Any, *, committed: bool) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        level = self.jvm.org.apache.kafka.common.IsolationLevel
        isolation = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        options = self.jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(isolation)
        answer = self.client.listOffsets(request, options)
        try:
            text = str(answer.all().get().toString())
        except Py4JJavaError:
            return self._one_by_one(wanted, answer)
        found = {(topic, int(partition)): int(offset) for topic, partition, offset in _OFFSET.findall(text)}
        return found if found.keys() == set(wanted) else self._one_by_one(wanted, answer)

    def _one_by_one(self, wanted: tuple[TopicPartition, ...], answer: Any) -> dict[TopicPartition, int]:
        """Slow, and what it takes to tell the partitions that failed from the others."""
        found: dict[TopicPartition, int] = {}
        failure: S3SinkError | None = None
        for at in wanted:
            try:
                found[at] = int(answer.partitionResult(self.partition(at)).get().offset())
            except Py4JJavaError as error:
                failure = self.translate(error, f"offsets of {at[0]}-{at[1]}")
                if not failure.retryable:
                    raise failure from None
        if failure is not None and not found:
            raise failure
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
