"""Confluent's S3 sink, in Kafka Connect and as S3_SINK of Confluent Cloud: a table of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3sink_job.convert import connect
from s3sink_job.convert.confluent_cloud import cloud_codec, convert_cloud_input, convert_cloud_logins
from s3sink_job.convert.confluent_format import convert_format, convert_rotation
from s3sink_job.convert.confluent_layout import convert_partitioner
from s3sink_job.convert.draft import Draft, plain
from s3sink_job.convert.rules import (
    Rule,
    apply,
    constant_backoff,
    count,
    differs,
    flag,
    lost,
    milliseconds,
    one_of,
    only,
    positive,
    same,
    secret,
    size,
    to,
    unless_off,
)
from s3sink_job.convert.smts import convert_transforms

SYSTEM = "Confluent S3 sink"
DEFAULT_PREFIX = "topics"


def _tags(draft: Draft, key: str, value: Any) -> None:
    pairs = [pair.split(":", 1) for pair in plain(value).split(",") if pair.strip()]
    if not all(len(pair) == 2 for pair in pairs):
        draft.lost(key, "is not a list of key:value; set spec.destination.tags yourself")
        return
    draft.carry(key, "destination.tags", {name.strip(): text.strip() for name, text in pairs})


def _provider(draft: Draft, key: str, value: Any) -> None:
    name = plain(value).rsplit(".", 1)[-1].split("$")[-1]
    if name in {
        "DefaultAWSCredentialsProviderChain",
        "DefaultCredentialsProvider",
        "InstanceProfileCredentialsProvider",
    }:
        draft.exact(key, "spec.destination.credentials is left out: the default chain of AWS")
    elif name in {"EnvironmentVariableCredentialsProvider", "WebIdentityTokenCredentialsProvider"}:
        draft.exact(key, "is part of the default chain of AWS")
    elif "AssumeRole" in name:
        draft.exact(key, "spec.destination.assumeRole")
    else:
        draft.lost(key, "S3Sink loads no classes; use a Secret (destination.credentials) or the role of the pod")


def _encryption(draft: Draft, key: str, value: Any) -> None:
    match plain(value).strip().lower():
        case "":
            draft.exact(key, "no encryption is asked for; the bucket's own setting holds")
        case "aes256":
            draft.carry(key, "destination.encryption.type", "AES256")
        case "aws:kms" if draft.has("s3.sse.kms.key.id"):
            draft.carry(key, "destination.encryption.type", "KMS")
        case "aws:kms":
            draft.lost(key, "without s3.sse.kms.key.id; set the default encryption of the bucket, or name a key")
        case _:
            draft.lost(key, "is neither AES256 nor aws:kms; set the default encryption of the bucket")


def _kms_key(draft: Draft, key: str, value: Any) -> None:
    if draft.text("s3.ssea.name").lower() == "aws:kms":
        draft.carry(key, "destination.encryption.keyId", plain(value))
    else:
        draft.exact(key, "has no effect there without s3.ssea.name=aws:kms")


_OWN_KEYS = lost(
    "S3Sink writes no objects of keys and headers; spec.format.envelope has them beside the value, in the same object"
)


_ACLS = {
    "private": "Private",
    "public-read": "PublicRead",
    "public-read-write": "PublicReadWrite",
    "authenticated-read": "AuthenticatedRead",
    "aws-exec-read": "AwsExecRead",
    "bucket-owner-read": "BucketOwnerRead",
    "bucket-owner-full-control": "BucketOwnerFullControl",
}


def _of_role(field: str) -> Rule:
    """Without a role there is nothing to set."""

    def rule(draft: Draft, key: str, value: Any) -> None:
        if draft.has("s3.credentials.provider.sts.role.arn"):
            draft.carry(key, f"destination.assumeRole.{field}", plain(value))
        else:
            draft.exact(key, "has no effect there without a role")

    return rule


def _customer_key(draft: Draft, key: str, value: Any) -> None:
    draft.put("destination.encryption", {"type": "CustomerKey", "secretRef": {"name": draft.secret_name("sse")}})
    draft.secret(key, "sse", "SSE_CUSTOMER_KEY", "destination.encryption")


def _of_stored(switch: str) -> Rule:
    def rule(draft: Draft, key: str, value: Any) -> None:
        if draft.text(switch).lower() == "true":
            _OWN_KEYS(draft, key, value)
        else:
            draft.exact(key, f"has no effect there without {switch}")

    return rule


TABLE: Mapping[str, Rule] = {
    **connect.TABLE,
    "s3.bucket.name": to("destination.bucket"),
    "s3.region": to("destination.region"),
    "store.url": to("destination.endpoint"),
    "s3.path.style.access.enabled": to("destination.pathStyle", flag),
    "s3.credentials.provider.class": _provider,
    "s3.credentials.provider.sts.role.arn": to("destination.assumeRole.arn"),
    "s3.credentials.provider.sts.role.session.name": _of_role("sessionName"),
    "s3.credentials.provider.sts.role.external.id": _of_role("externalId"),
    "aws.access.key.id": secret("s3", "AWS_ACCESS_KEY_ID", "destination.credentials"),
    "aws.secret.access.key": secret("s3", "AWS_SECRET_ACCESS_KEY", "destination.credentials"),
    "s3.part.size": to("destination.partSize", size),
    "s3.part.retries": to("errors.requestRetries.max", count),
    "s3.retry.backoff.ms": to("errors.requestRetries.backoff", milliseconds),
    "retry.backoff.ms": constant_backoff,
    "s3.ssea.name": _encryption,
    "s3.sse.kms.key.id": _kms_key,
    "s3.sse.customer.key": _customer_key,
    "s3.acl.canned": unless_off(one_of("destination.acl", _ACLS), ("", "null")),
    "s3.object.tagging": unless_off(lost("objects have no tags with offsets; the name has the first one")),
    "s3.object.tagging.key.value.pairs": _tags,
    "s3.object.behavior.on.tagging.error": same("tags are part of the upload, and fail with it"),
    "s3.proxy.url": unless_off(to("destination.proxy.url")),
    "s3.proxy.user": unless_off(secret("proxy", "username", "destination.proxy.credentialsFrom")),
    "s3.proxy.password": unless_off(secret("proxy", "password", "destination.proxy.credentialsFrom")),
    "s3.wan.mode": unless_off(
        lost("accelerated endpoints are not supported; set destination.endpoint if you need one")
    ),
    "s3.http.send.expect.continue": same("is a detail of the client"),
    "s3.elastic.buffer.enable": same("S3Sink's memory is bounded by its pod"),
    "s3.elastic.buffer.init.capacity": same("S3Sink's memory is bounded by its pod"),
    "s3.send.digest": same("every part has a checksum"),
    "s3.schema.partition.affix.type": unless_off(lost("folders by the name of the schema are not supported")),
    "schema.compatibility": one_of(
        "format.schemaEvolution.mode", {"NONE": "None", "BACKWARD": "Backward", "FORWARD": "Forward", "FULL": "Full"}
    ),
    "schema.cache.size": same("S3Sink keeps every schema that it has read"),
    "schema.cache.config": same("S3Sink keeps every schema that it has read"),
    "enhanced.avro.schema.support": same("names of records and enums stay as they are in the schema"),
    "connect.meta.data": same("no properties of Kafka Connect are added to schemas"),
    "allow.optional.map.keys": same("keys of maps are text"),
    "schema.generator.class": same("S3Sink makes the schema of an object itself"),
    "storage.class": only(
        ("io.confluent.connect.s3.storage.S3Storage",), "S3", "S3Sink writes to S3 and compatible stores only"
    ),
    "behavior.on.null.values": one_of("nullValues", {"fail": "Fail", "ignore": "Skip", "write": "Separate"}),
    "report.null.values.to.dlq": unless_off(
        differs("a tombstone with nullValues: Fail is a bad record (errors.records)")
    ),
    "tombstone.encoded.partition": differs("tombstones that are written are in the folder _tombstones"),
    "store.kafka.keys": unless_off(_OWN_KEYS),
    "store.kafka.headers": unless_off(_OWN_KEYS),
    "keys.format.class": _of_stored("store.kafka.keys"),
    "headers.format.class": _of_stored("store.kafka.headers"),
    "json.decimal.format": only(("NUMERIC",), "decimals are JSON numbers", "decimals are JSON numbers, not base64"),
    "format.bytearray.extension": to("layout.extension"),
    "format.bytearray.separator": lost("Bytes writes one object for each record; Text writes lines"),
    "enable.conditional.writes": same("names are never written twice"),
    "max.files.scan.limit": same("S3Sink does not list objects to find its place"),
    "max.write.duration.ms": same("a flush is a Spark job, and no poll waits for it"),
    "partitioner.max.open.files": same("the number of open folders does not grow memory"),
    "rotate.file.on.partition.change": differs("each folder has its objects, and all are written in one flush"),
    "shutdown.timeout.ms": same("S3Sink finishes or abandons a flush; neither loses a record"),
    "flush.size": to("flush.records", positive),
    "compression.codec": cloud_codec,
    "directory.delim": only(("/",), "folders are separated by /", "folders are separated by /"),
    "file.delim": only(("+",), "names have +", "the name is topic+partition+offset"),
    "filename.offset.zero.pad.width": to("layout.padding.offset", count),
    "kafka.auth.mode": differs("see docs/manifest.md for logins: spec.source.propertiesFrom"),
    "kafka.service.account.id": differs("see docs/manifest.md for logins: spec.source.propertiesFrom"),
    "authentication.method": differs("keys are a Secret (destination.credentials), a role is the pod's"),
    "provider.integration.id": lost("is a role that Confluent Cloud knows; set spec.destination.assumeRole.arn"),
    "cloud.environment": same("S3Sink runs where you run it"),
    "cloud.provider": same("S3Sink runs where you run it"),
}
PATTERNS: Mapping[str, Rule] = {
    **connect.PATTERNS,
    r"s3\.credentials\.provider\..*": lost("S3Sink loads no classes; use a Secret or the role of the pod"),
    r"csfle\..*": unless_off(lost("S3Sink does not decrypt fields")),
    r"(key\.|value\.|reference\.)?subject\.name\.strategy|schema\.context\.name": same(
        "records name their schema by its id"
    ),
    r"max\.poll\.(interval\.ms|records)|auto\.restart\.on\.user\.error": differs(
        "S3Sink reads exact offset ranges, and restarts by itself; left out"
    ),
    r"hive\..*": lost("S3Sink registers no tables; see docs/layouts.md for tables over its folders"),
    r"s3\.sse\..*": lost("see spec.destination.encryption"),
}


def convert_confluent(draft: Draft) -> None:
    convert_transforms(draft)
    convert_cloud_logins(draft)
    connect.convert_connector(draft)
    convert_cloud_input(draft)
    _prefix(draft)
    convert_format(draft)
    convert_partitioner(draft)
    convert_rotation(draft)
    if draft.value_at("nullValues") and "behavior.on.null.values" in draft.settings:
        draft.exact("behavior.on.null.values", "a transform drops tombstones before: spec.nullValues: Skip")
    elif "behavior.on.null.values" not in draft.settings and not draft.value_at("nullValues"):
        draft.put("nullValues", "Fail")
        draft.note("a tombstone is an error there by default: spec.nullValues: Fail. Skip is often wanted.")
    if draft.text("schema.compatibility", "NONE").upper() == "NONE" and draft.value_at("format.type") in {
        *("Parquet", "Avro"),
    }:
        draft.put("format.schemaEvolution.onChange", "Roll")
        draft.put("format.schemaEvolution.mode", "None")
    if not draft.has("store.url"):
        draft.default("s3.region", "destination.region", "us-west-2")
    apply(draft, TABLE, PATTERNS)


def _prefix(draft: Draft) -> None:
    if "topics.dir" in draft.settings:
        given = draft.text("topics.dir")
        clean = "/".join(part for part in given.split("/") if part)
        if clean:
            draft.carry(
                "topics.dir", "destination.prefix", clean, "" if clean == given else "slashes at the ends are left out"
            )
        else:
            draft.exact("topics.dir", "spec.destination.prefix is left out")
    else:
        draft.put("destination.prefix", DEFAULT_PREFIX)
        draft.note(f"topics.dir is {DEFAULT_PREFIX} there by default: spec.destination.prefix: {DEFAULT_PREFIX}.")
