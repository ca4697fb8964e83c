"""A pipeline of Redpanda Connect (Benthos): a Kafka input and an aws_s3 output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from s3sink_job.convert.bloblang import INTERPOLATION, parts_of
from s3sink_job.convert.connect import kafka_property
from s3sink_job.convert.draft import PLACEHOLDER_TOPIC, Draft, plain
from s3sink_job.convert.path_template import folders_of
from s3sink_job.convert.rules import (
    Rule,
    apply,
    count,
    differs,
    flag,
    lost,
    only,
    positive,
    same,
    secret,
    to,
    unless_off,
)

SYSTEM = "Redpanda Connect"
INPUTS = ("kafka", "kafka_franz", "redpanda", "redpanda_common")
_S3 = "output.aws_s3"
_BATCHED = "is how the input groups records; spec.flush decides about objects"


def _period(text: str) -> str:
    if not re.fullmatch(r"(\d+(\.\d+)?(h|m|s|ms))+", text):
        raise ValueError("is not a time such as 30s")
    return text


def _input_table(name: str) -> dict[str, Rule]:
    at = f"input.{name}"
    return {
        f"{at}.checkpoint_limit": same(_BATCHED),
        f"{at}.commit_period": same("S3Sink commits with each flush"),
        f"{at}.max_processing_period": same("a flush is a Spark job, and no poll waits for it"),
        f"{at}.fetch_buffer_cap": same("S3Sink's memory is bounded by its pod"),
        f"{at}.extract_tracing_map": lost("S3Sink reads no traces from headers"),
        f"{at}.multi_header": same("headers with the same name are all kept"),
        f"{at}.auto_replay_nacks": same("S3Sink retries a flush until it is written"),
        f"{at}.client_id": differs("set it in spec.source.properties as client.id if you need it"),
        f"{at}.rack_id": differs("set it in spec.source.properties as client.rack if you need it"),
        f"{at}.target_version": same("Kafka's client finds the version itself"),
        f"{at}.consumer_group": differs("S3Sink has no consumer group; give it to s3sink takeover --group"),
        f"{at}.tls.skip_cert_verify": unless_off(lost("certificates are always verified; give the CA")),
        f"{at}.tls.root_cas_file": lost(
            "a file of that machine; put its PEM into a Secret, ssl.truststore.certificates"
        ),
        f"{at}.tls.root_cas": lost("put the PEM into a Secret, ssl.truststore.certificates (source.propertiesFrom)"),
        f"{at}.tls.enable_renegotiation": same("has no meaning here"),
    }


TABLE: dict[str, Rule] = {
    f"{_S3}.bucket": to("destination.bucket"),
    f"{_S3}.region": to("destination.region"),
    f"{_S3}.endpoint": to("destination.endpoint"),
    f"{_S3}.force_path_style_urls": to("destination.pathStyle", flag),
    f"{_S3}.credentials.id": secret("s3", "AWS_ACCESS_KEY_ID", "destination.credentials"),
    f"{_S3}.credentials.secret": secret("s3", "AWS_SECRET_ACCESS_KEY", "destination.credentials"),
    f"{_S3}.credentials.token": secret("s3", "AWS_SESSION_TOKEN", "destination.credentials"),
    f"{_S3}.credentials.from_ec2_role": same("is part of the default chain of AWS"),
    f"{_S3}.credentials.profile": unless_off(lost("S3Sink reads no profiles; use a Secret or the role of the pod")),
    f"{_S3}.credentials.role": unless_off(to("destination.assumeRole.arn")),
    f"{_S3}.credentials.role_external_id": unless_off(to("destination.assumeRole.externalId")),
    f"{_S3}.storage_class": to("destination.storageClass"),
    f"{_S3}.content_type": differs("the content type is that of the format"),
    f"{_S3}.content_encoding": differs("is set where the extension does not name the codec"),
    f"{_S3}.max_in_flight": to("destination.maxConnections", positive, "connections of the whole pod"),
    f"{_S3}.timeout": to("destination.timeouts.read", _period, "of one answer; there of the whole upload"),
    f"{_S3}.kms_key_id": to("destination.encryption.keyId"),
    f"{_S3}.checksum_algorithm": same("every part has a checksum"),
    f"{_S3}.batching.count": to("flush.records", positive),
    f"{_S3}.batching.byte_size": to(
        "flush.bytes", positive, "bytes of the object as written; there bytes of the records"
    ),
    f"{_S3}.batching.period": to("flush.interval", _period),
    f"{_S3}.batching.check": unless_off(lost("a flush is due by records, bytes or time, not by a query")),
    f"{_S3}.local_endpoint": same("has no meaning here"),
    "http.enabled": same("status and metrics are on /status and /metrics"),
    "output.label": same("is a name only"),
    "output.type": same("is the name of the part beside it"),
    "input.type": same("is the name of the part beside it"),
    "input.label": same("is a name only"),
    "shutdown_timeout": same("S3Sink finishes or abandons a flush; neither loses a record"),
    "shutdown_delay": same("S3Sink finishes or abandons a flush; neither loses a record"),
    **{key: rule for name in INPUTS for key, rule in _input_table(name).items()},
}
PATTERNS: Mapping[str, Rule] = {
    r"(http|logger|metrics|tracer)(\..*)?": differs(
        "logs go to standard error, metrics to /metrics; see docs/metrics.md"
    ),
    r"input\.\w+\.batching\..*": same(_BATCHED),
    r"output\.aws_s3\.metadata\..*": same("metadata of objects is S3Sink's own"),
    r"(pipeline|input|output)\.processors?(\[\d+\])?\..*|pipeline\.processors.*": lost(
        "S3Sink has no transform of records yet; keep this pipeline in front of a topic, or write records as they are"
    ),
    r"pipeline\.threads": same("S3Sink writes as many slices at once as it has cores"),
    r"(cache|rate_limit|processor|input|output|metrics)_resources.*|buffer.*": lost("S3Sink has no such part"),
}


def convert_redpanda(draft: Draft) -> None:
    name = next((name for name in INPUTS if any(key.startswith(f"input.{name}.") for key in draft.settings)), "kafka")
    _input(draft, f"input.{name}")
    _archive(draft)
    _path(draft)
    _tags(draft)
    _encryption(draft)
    batching = [key for key in draft.settings if key.startswith(f"{_S3}.batching.")]
    apply(draft, TABLE, PATTERNS)
    if not batching:
        draft.note("without batching each record is an object there; here spec.flush decides, an hour by default.")
    draft.note("the manifest takes records for JSON (source.value.format: Json); set String or Bytes if they are not.")


def _input(draft: Draft, at: str) -> None:
    for option in ("addresses", "seed_brokers"):
        key = f"{at}.{option}"
        if draft.has(key):
            draft.carry(key, "source.bootstrapServers", ",".join(_items(draft.settings[key])))
    key = f"{at}.topics"
    names = _items(draft.settings.get(key))
    pattern = draft.text(f"{at}.regexp_topics").lower() == "true"
    if pattern and names:
        draft.carry(key, "source.topicPattern", "|".join(names))
    elif names:
        topics = [name.partition(":")[0] for name in names]
        chosen = "certain partitions or offsets are not carried over" if topics != names else ""
        draft.carry(key, "source.topics", list(dict.fromkeys(topics)), chosen)
    else:
        draft.put("source.topics", [PLACEHOLDER_TOPIC])
        draft.note(f"the pipeline names no topics: replace {PLACEHOLDER_TOPIC} in spec.source.topics.")
    if f"{at}.regexp_topics" in draft.settings:
        draft.exact(f"{at}.regexp_topics", "spec.source.topicPattern" if pattern else "spec.source.topics")
    _start(draft, at)
    _login(draft, at)


def _start(draft: Draft, at: str) -> None:
    text = "only at first contact; see also s3sink takeover"
    key = f"{at}.start_from_oldest"
    if key in draft.settings:
        oldest = draft.text(key).lower() == "true"
        draft.carry(key, "source.startingOffsets", {"position": "Earliest" if oldest else "Latest"}, text)
    key = f"{at}.start_offset"
    if key in draft.settings:
        known = {"earliest": "Earliest", "latest": "Latest", "committed": "Earliest"}
        position = known.get(draft.text(key).lower(), "Earliest")
        draft.carry(key, "source.startingOffsets", {"position": position}, text)


def _login(draft: Draft, at: str) -> None:
    tls = draft.text(f"{at}.tls.enabled").lower() == "true"
    # kafka_franz has a list of logins, kafka has one.
    sasl = next((f"{at}.{option}" for option in ("sasl[0]", "sasl") if draft.has(f"{at}.{option}.mechanism")), "")
    mechanism = draft.text(f"{sasl}.mechanism") if sasl else ""
    if f"{at}.tls.enabled" in draft.settings:
        draft.exact(f"{at}.tls.enabled", "spec.source.properties[security.protocol]")
    protocol = {(True, True): "SASL_SSL", (True, False): "SSL", (False, True): "SASL_PLAINTEXT"}.get(
        (tls, mechanism not in {"", "none"})
    )
    if protocol:
        draft.put("source.properties", {"security.protocol": protocol})
    if mechanism and mechanism != "none":
        kafka_property(draft, f"{sasl}.mechanism", "sasl.mechanism", mechanism)
    for option in ("username", "user", "password", "token", "access_token"):
        if sasl and f"{sasl}.{option}" in draft.settings:
            kafka_property(draft, f"{sasl}.{option}", "sasl.jaas.config", "")
            draft.put("source.propertiesFrom", [{"secretRef": {"name": draft.secret_name("kafka")}}])


def _archive(draft: Draft) -> None:
    """Batches are made into one object by processors: an archive, perhaps a compression."""
    at = f"{_S3}.batching.processors"
    draft.put("format.type", "Json")
    draft.put("layout.extension", ".json")
    codecs = {"gzip": "Gzip", "zstd": "Zstd", "lz4": "Lz4", "bzip2": "Bzip2", "snappy": "Snappy"}
    for key in [key for key in draft.settings if key.startswith(at)]:
        value = draft.text(key).lower()
        if key.endswith(".archive.format"):
            match value:
                case "lines":
                    draft.exact(key, "spec.format.type: Json, a line for each record")
                case "json_array":
                    draft.different(key, "JSON lines; there an object is one array")
                case _:
                    draft.lost(key, "S3Sink writes no archives; JSON lines are used")
        elif key.endswith(".compress.algorithm") and value in codecs:
            if value == "snappy":
                draft.lost(key, "lines have no snappy; Zstd is used")
            draft.put("format.compression.codec", "Zstd" if value == "snappy" else codecs[value])
            draft.exact(key, f"spec.format.compression.codec: {codecs[value]}")
        elif key.endswith(".compress.level"):
            unless_off(to("format.compression.level", count), ("-1", ""))(draft, key, draft.settings[key])
        elif ".parquet_encode." in key:
            draft.put("format.type", "Parquet")
            draft.put("layout.extension", "")
            if key.endswith("default_compression") and value in {"snappy", "gzip", "zstd", "brotli"}:
                draft.carry(key, "format.compression.codec", value.title())
            else:
                draft.different(
                    key, "columns are those of the records; a schema can be set in spec.source.value.schema"
                )


def _path(draft: Draft) -> None:
    key = f"{_S3}.path"
    template = draft.text(key)
    if not template:
        return
    found = folders_of(parts_of(template))
    if found.prefix:
        draft.put("destination.prefix", found.prefix)
    draft.put("layout.partitionBy", list(found.items))
    if found.hive:
        draft.put("layout.hiveStyle", True)
    extension = re.search(r"(\.[a-z0-9]+)+$", INTERPOLATION.sub("", template))
    if extension:
        draft.put("layout.extension", extension[0])
    both = {"Topic", "Partition"} <= {item["type"] for item in found.items}
    name = "the first offset" if both else "topic+partition+offset"
    draft.different(key, "; ".join([f"the name {found.name} becomes {name}", *found.problems]))
    draft.origins["layout.partitionBy"] = key
    draft.origins["destination.prefix"] = key


def _tags(draft: Draft) -> None:
    at = f"{_S3}.tags."
    plain_tags = {}
    for key in [key for key in draft.settings if key.startswith(at)]:
        if "${!" in draft.text(key):
            draft.lost(key, "tags are the same for all objects; folders can have the value")
        else:
            plain_tags[key[len(at) :]] = draft.text(key)
            draft.exact(key, "spec.destination.tags")
    if plain_tags:
        draft.put("destination.tags", plain_tags)


def _encryption(draft: Draft) -> None:
    key, name = f"{_S3}.kms_key_id", f"{_S3}.server_side_encryption"
    if draft.has(key):
        draft.put("destination.encryption.type", "KMS")
        if draft.has(name):
            only(("aws:kms",), "spec.destination.encryption.type: KMS", "KMS is used, since a key is named")(
                draft, name, draft.settings[name]
            )
    elif draft.has(name):
        kinds = ("AES256",)
        if draft.text(name) in kinds:
            draft.carry(name, "destination.encryption.type", "AES256")
        else:
            draft.lost(name, "KMS needs the id of a key: set spec.destination.encryption {type: KMS, keyId: …}")
    elif key in draft.settings:
        draft.exact(key, "is empty there, and not set here")


def _items(value: Any) -> list[str]:
    if value is None:
        return []
    found = value if isinstance(value, list) else [value]
    return [item.strip() for text in found for item in plain(text).split(",") if item.strip()]
