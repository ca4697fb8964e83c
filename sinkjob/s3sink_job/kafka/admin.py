"""Topics and offsets, read with Kafka's own AdminClient through the JVM gateway.

A call through the gateway takes a fraction of a millisecond, and a topic may have thousands of partitions. So an answer
is fetched whole, as the text of Java's toString, and parsed here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from s3sink_job.base.errors import FinalError, S3SinkError, TransientError
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.statefile import NO_ID
from s3sink_job.flush.truncation import OffsetValidation
from s3sink_job.kafka.unanswered_partitions import UnansweredPartitions
from s3sink_job.kafka.validation import validate

REQUEST_TIMEOUT, API_TIMEOUT = "request.timeout.ms", "default.api.timeout.ms"
TIMEOUTS = {REQUEST_TIMEOUT: "15000", API_TIMEOUT: "20000"}
SHORT_TIMEOUT_MS = 5_000
LONGEST_TIMEOUT = 20.0
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
    "TopicAuthorizationException": "the user may not read this topic: grant Describe and Read on it",
    "ClusterAuthorizationException": "the user may not describe the cluster",
    "GroupAuthorizationException": "the user may not use the consumer group: grant Read on it",
    "InvalidTopicException": "the topic name is not valid",
    "ConfigException": "a Kafka property is not valid: check spec.source.properties",
    "UnsupportedVersionException": "the broker is too old for this client",
}


class KafkaUnavailable(TransientError):
    reason = "KafkaUnavailable"


class ListedOffset(NamedTuple):
    """What Kafka returns for one partition."""

    offset: int
    leader_epoch: int | None


class Admin:
    """One AdminClient, kept open. `properties` may hold secrets."""

    def __init__(self, jvm: Any, properties: Mapping[str, str]) -> None:
        self.jvm = jvm
        self.properties = dict(properties)
        self.servers = properties["bootstrap.servers"]
        self._unanswered = UnansweredPartitions(time.monotonic)
        self._last_requests: tuple[tuple[TopicPartition, ...], Any, Any] = ((), None, None)
        """Partitions, and the requests for their earliest and latest offsets. The next ones are mostly the same."""
        # Only both or none: Kafka refuses an API timeout that is shorter than that of a request.
        timeouts = {} if TIMEOUTS.keys() & properties.keys() else TIMEOUTS
        try:
            self.client = jvm.org.apache.kafka.clients.admin.AdminClient.create(
                self.java_map({**timeouts, **properties})
            )
        except Py4JJavaError as error:
            # Nothing was sent yet, so a setting must be wrong.
            raise FinalError(
                f"Kafka's client rejected its settings: {root(error)}: {_message(error)}: "
                "check spec.source.properties and propertiesFrom",
                reason="KafkaSettings",
            ) from None

    def close(self) -> None:
        self.client.close(self.jvm.java.time.Duration.ofSeconds(1))

    def matching(self, pattern: str) -> set[str]:
        """Visible topics whose whole name matches the Java pattern; no internal ones."""
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
            text = f"topicPattern: {pattern!r} is not a regular expression of Java"
            raise FinalError(f"{text}: {str(error).splitlines()[0]}", reason="TopicPattern") from None

    def describe(self, topics: Iterable[str]) -> dict[str, Topic | None]:
        """Id and partitions of each topic; None for one that does not exist."""
        names = list(topics)
        futures = self.client.describeTopics(self.java_list(names)).topicNameValues()
        # Not by iterating in Java: an iterator ends with an exception, and those are slow in the gateway.
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
        """Topics from which Kafka may remove single records."""
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
        """`committed`: the readable end is the last stable offset; otherwise it is the high watermark.

        Partitions that do not answer are left out. From then on they are requested separately.
        """
        wanted = tuple(partitions)
        answering, unanswered = self._unanswered.split(wanted)
        found = self._offsets(answering, committed=committed)
        if unanswered:
            timeout = min(LONGEST_TIMEOUT, self._unanswered.longest_wait(unanswered))
            found |= self._offsets(unanswered, committed=committed, timeout_ms=int(timeout * 1000))
        if wanted and not found:
            # The partitions are not the cause: once Kafka answers, all of them are requested again.
            raise KafkaUnavailable(f"Kafka at {self.servers} returned no offsets of any partition; retrying")
        self._unanswered.update({*answering, *unanswered}, found)
        return {at: found[at] for at in wanted if at in found}

    def _offsets(
        self, wanted: tuple[TopicPartition, ...], *, committed: bool, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Offsets]:
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec
        requests = self._last_requests
        if requests[0] != wanted:
            keys = [self.partition(at) for at in wanted]
            requests = (wanted, self._request(keys, spec.earliest()), self._request(keys, spec.latest()))
        if timeout_ms is None:
            self._last_requests = requests
        _, first, last = requests
        earliest = self._list(wanted, first, committed=False, timeout_ms=timeout_ms)
        if len(earliest) < len(wanted):
            # No second timeout for partitions that did not answer.
            wanted = tuple(at for at in wanted if at in earliest)
            last = self._request(map(self.partition, wanted), spec.latest())
        # The stable end is read first, so that it never exceeds the high watermark that is read next.
        stable = self._list(wanted, last, committed=True, timeout_ms=timeout_ms) if committed else {}
        end = self._list(wanted, last, committed=False, timeout_ms=timeout_ms)
        # Of the first answer: the answer of a later leader is then validated against the earlier leader's log.
        epochs = {at: found.leader_epoch for at, found in (stable or end).items()}
        if behind := tuple(at for at, found in stable.items() if found.offset < end.get(at, found).offset):
            # Either a transaction is open, or records were written between the two requests: a third one shows which.
            stable |= self._list(behind, self._request(map(self.partition, behind), spec.latest()), committed=True)
        complete = [at for at in wanted if at in end and (at in stable or not committed)]
        return {
            at: Offsets(
                earliest[at].offset, min(stable.get(at, end[at]).offset, end[at].offset), end[at].offset, epochs[at]
            )
            for at in complete
        }

    def leader_epochs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Of the present leaders; None if the broker has none. Partitions that do not answer are left out."""
        wanted = tuple(partitions)
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        found = self._list(wanted, self._request(map(self.partition, wanted), spec), committed=False)
        return {at: listed.leader_epoch for at, listed in found.items()}

    def validate(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> OffsetValidation:
        """Whether the logs still have everything below these offsets that leaders of these epochs had."""
        return validate(self, offsets)

    def offsets_at(self, partitions: Iterable[TopicPartition], millis: int) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time; None if all records are older."""
        wanted = tuple(partitions)
        spec = self.jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(millis)
        found = self._list(wanted, self._request(map(self.partition, wanted), spec), committed=False)
        if silent := [f"{at[0]}-{at[1]}" for at in wanted if at not in found]:
            # Not the same as None: the caller would take all its records for older.
            raise KafkaUnavailable(f"Kafka at {self.servers} looked up no offset by time in {', '.join(silent)}")
        return {at: listed.offset if listed.offset >= 0 else None for at, listed in found.items()}

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

    def short_timeout(self, options: str) -> Any:
        """Options, by their Java name, of a request that must not delay the loop for long."""
        return getattr(self.jvm.org.apache.kafka.clients.admin, options)().timeoutMs(SHORT_TIMEOUT_MS)

    def partition(self, at: TopicPartition) -> Any:
        return self.jvm.org.apache.kafka.common.TopicPartition(*at)

    def _request(self, keys: Iterable[Any], spec: Any) -> Any:
        request = self.jvm.java.util.HashMap()
        for key in keys:
            request.put(key, spec)
        return request

    def _list(
        self, wanted: tuple[TopicPartition, ...], request: Any, *, committed: bool, timeout_ms: int | None = None
    ) -> dict[TopicPartition, ListedOffset]:
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
        found = {(name, int(p)): ListedOffset(int(o), int(e) if e else None) for name, p, o, e in _OFFSET.findall(text)}
        return found if found.keys() == set(wanted) else self._one_by_one(wanted, answer)

    def _one_by_one(self, wanted: tuple[TopicPartition, ...], answer: Any) -> dict[TopicPartition, ListedOffset]:
        """Slow, but it separates the partitions that failed from the others."""
        found: dict[TopicPartition, ListedOffset] = {}
        for at in wanted:
            try:
                listed = answer.partitionResult(self.partition(at)).get()
            except Py4JJavaError as error:
                failure = self.translate(error, f"offsets of {at[0]}-{at[1]}")
                if not failure.retryable:
                    raise failure from None
                continue
            epoch = listed.leaderEpoch()
            found[at] = ListedOffset(int(listed.offset()), int(epoch.get()) if epoch.isPresent() else None)
        return found

    def translate(self, error: Py4JJavaError, what: str) -> S3SinkError:
        kind = root(error)
        text = f"Kafka at {self.servers}, {what}: {kind}: {_message(error)}"
        if kind in FINAL:
            return FinalError(f"{text}: {FINAL[kind]}", reason=kind.removesuffix("Exception"))
        return KafkaUnavailable(text)


def _numbers(partitions: Any) -> tuple[int, ...]:
    """Kafka numbers partitions without gaps, so that the last number is mostly enough."""
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
