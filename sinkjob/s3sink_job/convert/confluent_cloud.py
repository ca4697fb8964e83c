"""Names of Confluent Cloud's own S3_SINK."""

from __future__ import annotations

from typing import Any

from s3sink_job.convert.confluent_format import CODECS, IN_NAMES
from s3sink_job.convert.draft import Draft, plain
from s3sink_job.convert.rules import (
    looks_secret,
)


def cloud_codec(draft: Draft, key: str, value: Any) -> None:
    """`JSON - gzip`, `PARQUET - zstd`: Confluent Cloud's names."""
    name = plain(value).lower().rsplit("-", 1)[-1].strip()
    if name not in CODECS:
        draft.lost(key, f"is none of {', '.join(CODECS)}; set spec.format.compression yourself")
        return
    draft.carry(key, "format.compression.codec", CODECS[name])
    if draft.value_at("format.type") == "Json" and CODECS[name] == "Gzip":
        draft.put("layout.extension", ".json.gz")
    if draft.value_at("format.type") == "Parquet":
        draft.put("layout.extension", f"{IN_NAMES.get(CODECS[name], '')}.parquet")


def convert_cloud_logins(draft: Draft) -> None:
    """Confluent Cloud's own names: an API key is a login by SASL/PLAIN."""
    for key in ("kafka.api.key", "kafka.api.secret"):
        if draft.has(key):
            draft.put("source.propertiesFrom", [{"secretRef": {"name": draft.secret_name("kafka")}}])
            draft.put("source.properties", {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"})
            draft.secret(key, "kafka", "sasl.jaas.config", "source.propertiesFrom")


def convert_cloud_input(draft: Draft) -> None:
    formats = {
        "JSON": "Json",
        "JSON_SR": "JsonSchema",
        "AVRO": "Avro",
        "PROTOBUF": "Protobuf",
        "STRING": "String",
        "BYTES": "Bytes",
    }
    for key, part in (("input.data.format", "value"), ("input.key.format", "key")):
        if not draft.has(key):
            continue
        kind = formats.get(draft.text(key).upper(), "")
        if kind in {"JsonSchema", "Avro", "Protobuf"}:
            draft.lost(
                key, f"{kind} needs spec.source.{part}.schemaRegistry, which is not in the configuration; set both"
            )
        elif kind:
            draft.carry(key, f"source.{part}.format", kind)
    for key in [key for key in draft.settings if key.startswith("schema.registry.") and looks_secret(key)]:
        draft.lost(key, "set spec.source.value.schemaRegistry.credentialsFrom to a Secret with username and password")
