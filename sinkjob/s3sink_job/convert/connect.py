"""Keys that every connector of Kafka Connect has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from s3sink_api.spec.kafka_properties import SECRET_PROPERTIES, refused_property
from s3sink_job.convert.converters import convert_decoding
from s3sink_job.convert.draft import PLACEHOLDER_TOPIC, Draft, plain
from s3sink_job.convert.rules import (
    Rule,
    differs,
    flag,
    looks_secret,
    lost,
    one_of,
    positive,
    same,
    to,
    words,
)

_PARALLEL = (
    "S3Sink has no tasks: one Spark job writes as many slices at once as there are cores"
    " (spec.spark.driver.cores, or mode: Cluster)"
)
TABLE: Mapping[str, Rule] = {
    "connector.class": same("is the system that this manifest replaces"),
    "tasks.max": differs(_PARALLEL),
    "tasks.max.enforce": differs(_PARALLEL),
    "config.action.reload": same("S3Sink reads its Secrets again when they change"),
    "errors.retry.timeout": differs("spec.errors.retries decides, and a sink never gives up for good"),
    "errors.retry.delay.max.ms": differs("spec.errors.retries.maxBackoff is 60s unless you set it"),
    "errors.log.enable": differs("bad records are always counted and logged; nothing to set"),
    "errors.log.include.messages": to("errors.logRecords", flag),
    "errors.deadletterqueue.topic.replication.factor": to("errors.deadLetter.replicationFactor", positive),
    "errors.deadletterqueue.context.headers.enable": to("errors.deadLetter.headers", flag),
    "header.converter": differs("headers are bytes in Kafka, and are written as text where they are text"),
    "header.converter.schemas.enable": differs("headers are written as text where they are text"),
    "key.ignore": same("has no meaning for this connector"),
    "schema.ignore": same("has no meaning for this connector"),
}
PATTERNS: Mapping[str, Rule] = {
    r"confluent\.(topic|license|value|monitoring).*|confluent\.license": same("S3Sink needs no licence"),
    r"(producer|admin)\.override\..*": lost("dead letters use the connection of spec.source; there is no other one"),
    r"topic\.creation\..*": lost("S3Sink creates no topics but the one of dead letters"),
    r"reporter\..*": lost("S3Sink reports to /status and /metrics; results are not sent to a topic"),
    r"predicates(\..*)?": lost("belongs to transforms that were not carried over"),
}
_OVERRIDE = "consumer.override."
_ON_DISK = re.compile(r"ssl\.(truststore|keystore)\.(location|type)")
_FETCHING = re.compile(r"max\.poll\..*|heartbeat\.interval\.ms|session\.timeout\.ms|partition\.assignment\.strategy")


def convert_connector(draft: Draft) -> None:
    """Name, topics, converters, errors and the consumer's properties."""
    if draft.has("name"):
        shown = draft.text("name")
        if draft.name == shown:
            draft.exact("name", f"metadata.name: {draft.name}")
        else:
            draft.different("name", f"metadata.name: {draft.name}, since Kubernetes takes no other characters")
    _topics(draft)
    for part in ("key", "value"):
        convert_decoding(draft, part)
    _errors(draft)
    for key in [key for key in draft.settings if key.startswith(_OVERRIDE)]:
        _consumer_property(draft, key, draft.settings[key])


def _topics(draft: Draft) -> None:
    if draft.has("topics"):
        draft.carry("topics", "source.topics", words(draft.text("topics")))
    if draft.has("topics.regex"):
        if draft.has("topics"):
            draft.lost("topics.regex", "topics is set too, and only one of them can be; add its topics to the list")
        else:
            draft.carry("topics.regex", "source.topicPattern", draft.text("topics.regex"))
    if not draft.has("topics") and not draft.has("topics.regex"):
        draft.put("source.topics", [PLACEHOLDER_TOPIC])
        draft.note(f"the configuration names no topics: replace {PLACEHOLDER_TOPIC} in spec.source.topics.")


def _errors(draft: Draft) -> None:
    tolerance, topic = "errors.tolerance", "errors.deadletterqueue.topic.name"
    tolerates = draft.text(tolerance).strip().lower() == "all"
    of_letters = [key for key in draft.settings if key.startswith("errors.deadletterqueue.")]
    if draft.has(topic) and tolerates:
        limits = "S3Sink also stops a partition with more than 1,000 bad records or 10 % in a flush (maxPerFlush)"
        draft.carry(tolerance, "errors.records", "DeadLetter", limits)
        draft.carry(topic, "errors.deadLetter.topic", draft.text(topic))
        return
    for key in of_letters:
        draft.exact(key, "has no effect there without a topic and errors.tolerance=all, and is left out here")
    if draft.has(tolerance):
        limits = "S3Sink also stops a partition with more than 1,000 bad records or 10 % in a flush (maxPerFlush)"
        one_of("errors.records", {"none": "Fail", "all": "Skip"}, limits if tolerates else "")(
            draft, tolerance, draft.settings[tolerance]
        )


def _consumer_property(draft: Draft, key: str, value: Any) -> None:
    name, text = key.removeprefix(_OVERRIDE), plain(value)
    if name == "auto.offset.reset":
        offsets = {"earliest": {"position": "Earliest"}, "latest": {"position": "Latest"}}
        one_of("source.startingOffsets", offsets, "only at first contact; see also s3sink takeover")(draft, key, value)
    elif name == "isolation.level":
        known = {"read_committed": "ReadCommitted", "read_uncommitted": "ReadUncommitted"}
        one_of("source.isolation", known)(draft, key, value)
    elif name == "bootstrap.servers":
        draft.carry(key, "source.bootstrapServers", text)
    elif name == "group.id":
        draft.different(key, "S3Sink has no consumer group; give it to s3sink takeover --group")
    else:
        kafka_property(draft, key, name, text)


def kafka_property(draft: Draft, key: str, name: str, text: str) -> None:
    """A property of Kafka's client: into the manifest, or into a Secret."""
    if _ON_DISK.fullmatch(name):
        draft.lost(key, "a file of the worker; put PEM into a Secret, ssl.truststore.certificates or ssl.keystore.key")
    elif _FETCHING.fullmatch(name):
        draft.different(key, "S3Sink reads exact offset ranges and is no member of a group; left out")
    elif looks_secret(name) or re.fullmatch(SECRET_PROPERTIES[0], name.lower()) or "@" in text or "${" in text:
        draft.put("source.propertiesFrom", [{"secretRef": {"name": draft.secret_name("kafka")}}])
        draft.secret(key, "kafka", name, "source.propertiesFrom")
    elif why := refused_property(name, from_secret=False):
        draft.lost(key, why)
    else:
        properties = draft.value_at("source.properties") or {}
        draft.put("source.properties", {**properties, name: text})
        draft.origins[f"source.properties[{name}]"] = key
        draft.exact(key, f"spec.source.properties[{name}]")
