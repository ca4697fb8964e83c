"""Look-ups of topics and offsets with Kafka's own AdminClient, through the JVM gateway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from s3sink_job.errors import FinalError, S3SinkError, TransientError
from s3sink_job.flush.contact import Topic
from s3sink_job.flush.plan import Offsets, TopicPartition

REQUEST_TIMEOUT, API_TIMEOUT = "request.timeout.ms", "default.api.timeout.ms"
TIMEOUTS = {REQUEST_TIMEOUT: "15000", API_TIMEOUT: "20000"}
UNKNOWN_TOPIC = "UnknownTopicOrPartitionException"
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
        self._jvm = jvm
        self._servers = properties["bootstrap.servers"]
        config = jvm.java.util.HashMap()
        # The two go together: Kafka refuses an API time-out that is shorter than a request's.
        timeouts = {} if TIMEOUTS.keys() & properties.keys() else TIMEOUTS
        for key, value in {**timeouts, **properties}.items():
            config.put(key, value)
        try:
            self._client = jvm.org.apache.kafka.clients.admin.AdminClient.create(config)
        except Py4JJavaError as error:
            # Nothing was sent yet: only a setting can be wrong.
            raise FinalError(
                f"Kafka's client refused its settings: {_root(error)}: {_message(error)}: "
                "check spec.source.properties and propertiesFrom",
                reason="KafkaSettings",
            ) from None

    def close(self) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(1))

    def describe(self, topics: Iterable[str]) -> dict[str, Topic | None]:
        """Id and partitions of each topic; None for one that does not exist."""
        wanted = self._jvm.java.util.ArrayList()
        for topic in topics:
            wanted.add(topic)
        futures = self._client.describeTopics(wanted).topicNameValues()
        return {topic: self._describe(topic, futures.get(topic)) for topic in wanted}

    def _describe(self, topic: str, future: Any) -> Topic | None:
        try:
            description = future.get()
        except Py4JJavaError as error:
            if _root(error) == UNKNOWN_TOPIC:
                return None
            raise self._translate(error, f"describe topic {topic}") from None
        partitions = tuple(sorted(int(p.partition()) for p in description.partitions()))
        return Topic(id=str(description.topicId().toString()), partitions=partitions)

    def compacted(self, topics: Iterable[str]) -> set[str]:
        """The topics that Kafka may thin out, record by record."""
        kafka = self._jvm.org.apache.kafka
        kind = kafka.common.config.ConfigResource
        resources = {name: kind(kind.Type.TOPIC, name) for name in topics}
        wanted = self._jvm.java.util.ArrayList()
        for resource in resources.values():
            wanted.add(resource)
        try:
            answer = self._client.describeConfigs(wanted).all().get()
            policies = {n: str(answer.get(r).get("cleanup.policy").value()) for n, r in resources.items()}
        except Py4JJavaError as error:
            raise self._translate(error, "describe topic settings (needs DescribeConfigs on the topics)") from None
        return {name for name, policy in policies.items() if "compact" in policy}

    def offsets(self, partitions: Iterable[TopicPartition], *, committed: bool) -> dict[TopicPartition, Offsets]:
        """`committed` takes the last stable offset as the readable end, otherwise the high watermark.

        Partitions that Kafka cannot tell of now, such as those without a leader, are left out.
        """
        wanted = list(partitions)
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        earliest = self._list(wanted, spec.earliest(), committed=False)
        # The stable end is asked for first: it can then never lie beyond the end we report.
        stable = self._list(wanted, spec.latest(), committed=True) if committed else {}
        end = self._list(wanted, spec.latest(), committed=False)
        told = [at for at in wanted if at in earliest and at in end and (at in stable or not committed)]
        return {at: Offsets(earliest[at], stable.get(at, end[at]), end[at]) for at in told}

    def offsets_at(self, partitions: Iterable[TopicPartition], millis: int) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time; None where no record is that young."""
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(millis)
        found = self._list(list(partitions), spec, committed=False)
        return {at: offset if offset >= 0 else None for at, offset in found.items()}

    def _list(self, wanted: list[TopicPartition], spec: Any, *, committed: bool) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        request = self._jvm.java.util.HashMap()
        keys = {at: self._jvm.org.apache.kafka.common.TopicPartition(*at) for at in wanted}
        for key in keys.values():
            request.put(key, spec)
        level = self._jvm.org.apache.kafka.common.IsolationLevel
        isolation = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(isolation)
        answer = self._client.listOffsets(request, options)
        found: dict[TopicPartition, int] = {}
        failure: S3SinkError | None = None
        for at, key in keys.items():
            try:
                found[at] = int(answer.partitionResult(key).get().offset())
            except Py4JJavaError as error:
                failure = self._translate(error, f"offsets of {at[0]}-{at[1]}")
                if not failure.retryable:
                    raise failure from None
        if failure is not None and not found:
            raise failure
        return found

    def _translate(self, error: Py4JJavaError, what: str) -> S3SinkError:
        kind = _root(error)
        text = f"Kafka at {self._servers}, {what}: {kind}: {_message(error)}"
        if kind in FINAL:
            return FinalError(f"{text}: {FINAL[kind]}", reason=kind.removesuffix("Exception"))
        return KafkaUnavailable(text)


def _cause(error: Py4JJavaError) -> Any:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return cause


def _root(error: Py4JJavaError) -> str:
    return str(_cause(error).getClass().getSimpleName())


def _message(error: Py4JJavaError) -> str:
    return str(_cause(error).getMessage())
