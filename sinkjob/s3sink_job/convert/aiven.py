"""Aiven's S3 sink: a table of its keys, and its templates of names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from s3sink_job.convert import connect
from s3sink_job.convert.draft import Draft, plain
from s3sink_job.convert.path_template import Part, Text, Variable, folders_of
from s3sink_job.convert.rules import (
    Rule,
    apply,
    constant_backoff,
    count,
    differs,
    flag,
    lost,
    milliseconds,
    only,
    positive,
    same,
    secret,
    size,
    to,
    words,
)
from s3sink_job.convert.smts import convert_transforms

SYSTEM = "Aiven S3 sink"
_VARIABLE = re.compile(r"\{\{\s*([a-z_]+)\s*(?::([a-z]+)=([A-Za-z]+))?\s*\}\}")
_DEFAULT_TEMPLATE = "{{topic}}-{{partition}}-{{start_offset}}"
_UNITS = {"yyyy": "yyyy", "YYYY": "yyyy", "MM": "MM", "dd": "dd", "HH": "HH"}


def _encryption(draft: Draft, key: str, value: Any) -> None:
    if plain(value).upper() == "AES256":
        draft.carry(key, "destination.encryption.type", "AES256")
    else:
        draft.lost(key, "KMS needs the id of a key: set spec.destination.encryption {type: KMS, keyId: …}")


_OLD = {
    "aws_access_key_id": "aws.access.key.id",
    "aws_secret_access_key": "aws.secret.access.key",
    "aws_s3_endpoint": "aws.s3.endpoint",
    "aws_s3_region": "aws.s3.region",
    "aws_s3_bucket": "aws.s3.bucket.name",
    "aws_s3_prefix": "aws.s3.prefix",
    "output_compression": "file.compression.type",
    "output_fields": "format.output.fields",
}
"""Names of old releases."""
_NEW: Mapping[str, Rule] = {
    "aws.access.key.id": secret("s3", "AWS_ACCESS_KEY_ID", "destination.credentials"),
    "aws.secret.access.key": secret("s3", "AWS_SECRET_ACCESS_KEY", "destination.credentials"),
    "aws.s3.bucket.name": to("destination.bucket"),
    "aws.s3.endpoint": to("destination.endpoint"),
    "aws.s3.region": to("destination.region", lambda text: text.lower().replace("_", "-")),
}
TABLE: Mapping[str, Rule] = {
    **connect.TABLE,
    **_NEW,
    **{old: _NEW[new] for old, new in _OLD.items() if new in _NEW},
    "aws.credential.provider": only(
        ("", "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"),
        "the default chain of AWS",
        "S3Sink loads no classes; use a Secret (destination.credentials) or the role of the pod",
    ),
    "aws.sts.role.arn": to("destination.assumeRole.arn"),
    "aws.sts.role.external.id": to("destination.assumeRole.externalId"),
    "aws.sts.role.session.name": to("destination.assumeRole.sessionName"),
    "aws.sts.role.session.duration": differs("the session is renewed before it ends; its length is the role's"),
    "aws.sts.config.endpoint": to("destination.assumeRole.endpoint"),
    "aws.s3.part.size.bytes": to("destination.partSize", size),
    "aws.s3.backoff.delay.ms": to("errors.requestRetries.backoff", milliseconds),
    "aws.s3.backoff.max.delay.ms": lost(
        "requests of S3Sink have no longest delay of their own; errors.retries follows"
    ),
    "aws.s3.backoff.max.retries": to("errors.requestRetries.max", count),
    "kafka.retry.backoff.ms": constant_backoff,
    "aws.s3.sse.algorithm": _encryption,
    "file.max.records": to("flush.records", lambda text: positive(text) if text != "0" else 2**53),
    "aws.s3.fetch.page.size": same("is a setting of the source"),
}


def convert_aiven(draft: Draft) -> None:
    convert_transforms(draft)
    connect.convert_connector(draft)
    _times(draft)
    _template(draft)
    _format(draft)
    draft.put("flush.interval", "1m")
    draft.note(
        "the connector writes what it has at each offset.flush.interval.ms of the Connect worker, 60 s by default:"
        " spec.flush.interval: 1m. A longer one makes fewer objects."
    )
    if not draft.has(_either(draft, "aws.s3.endpoint")):
        draft.default(_either(draft, "aws.s3.region"), "destination.region", "us-east-1")
    apply(draft, TABLE, connect.PATTERNS)


def _either(draft: Draft, name: str) -> str:
    """The key that is set: the present name, or that of old releases."""
    old = next((old for old, new in _OLD.items() if new == name), name)
    return name if name in draft.settings or old not in draft.settings else old


def _times(draft: Draft) -> None:
    for key in ("timestamp.timezone", "file.name.timestamp.timezone"):
        if key in draft.settings:
            draft.exact(key, "timezone of the Time items, where folders have a time")
    for key in ("timestamp.source", "file.name.timestamp.source"):
        if key in draft.settings:
            wall = draft.text(key).lower() == "wallclock"
            text = "source: Wallclock of the Time items; the clock is read once for a flush"
            draft.different(key, text) if wall else draft.exact(key, "source: Record of the Time items")


def _template(draft: Draft) -> None:
    key, prefix_key = "file.name.template", _either(draft, "aws.s3.prefix")
    prefixes = [name for name in (prefix_key, "file.name.prefix") if draft.has(name)]
    before = "".join(draft.text(name) for name in prefixes)
    template = draft.text(key) or _DEFAULT_TEMPLATE
    if re.search(r"\{\{\s*key\s*[:}]", template):
        draft.lost(
            key,
            "with {{key}} a file has the last record of a key and is written over; S3Sink keeps every record."
            " Topic and partition are used",
        )
        template = _DEFAULT_TEMPLATE
    found = folders_of(_parts(draft, before + template))
    if found.prefix:
        draft.put("destination.prefix", found.prefix)
    for name in prefixes:
        draft.exact(name, f"spec.destination.prefix: {found.prefix}")
    draft.put("layout.partitionBy", list(found.items))
    if found.hive:
        draft.put("layout.hiveStyle", True)
    both = {"Topic", "Partition"} <= {item["type"] for item in found.items}
    padded = re.search(r"start_offset\s*:\s*padding\s*=\s*true", template)
    draft.put("layout.padding.offset", 19 if padded else 0)
    digits = ", with 19 digits and not 20" if padded else ""
    style = f"{'the offset' if both else 'topic+partition+offset'}{digits}"
    text = "; ".join([f"the name {found.name} becomes {style}", *found.problems])
    if key in draft.settings:
        draft.different(key, text)
    else:
        draft.note(f"file.name.template is {_DEFAULT_TEMPLATE} there by default: {text}.")


def _parts(draft: Draft, template: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    for match in _VARIABLE.finditer(template):
        parts += [Text(template[at : match.start()]), _variable(draft, match)]
        at = match.end()
    return [*parts, Text(template[at:])]


def _variable(draft: Draft, match: re.Match[str]) -> Variable:
    name, _, value = match.groups()
    match_source = draft.text("timestamp.source") or draft.text("file.name.timestamp.source") or "wallclock"
    item: dict[str, Any] = {}
    if name in {"topic", "partition"}:
        item = {"type": name.title()}
    elif name in {"utc_date", "local_date"}:
        item = {"type": "Time", "source": "Wallclock", "format": "yyyy-MM-dd"}
    elif name == "timestamp" and value in _UNITS:
        source = "Record" if match_source.lower() == "event" else "Wallclock"
        item = {"type": "Time", "source": source, "format": _UNITS[value]}
        zone = draft.text("timestamp.timezone") or draft.text("file.name.timestamp.timezone")
        if zone:
            item["timezone"] = zone
    return Variable(match[0], item)


def _format(draft: Draft) -> None:
    kind = draft.text("format.output.type", "csv").lower()
    fields_key = _either(draft, "format.output.fields")
    fields = words(draft.text(fields_key, "value"))
    wrapped = _flag(draft, "format.output.envelope", True)
    name = {"jsonl": "Json", "json": "Json", "parquet": "Parquet", "avro": "Avro", "csv": "Csv"}.get(kind, "Json")
    plain_text = kind == "csv" and fields == ["value"]
    if plain_text:
        name = "Text"
    draft.put("format.type", name)
    encoded = draft.text("format.output.fields.value.encoding", "base64").lower() != "none"
    as_lines = "the value as a line of text; there it is base64" if encoded else "the value as a line"
    as_columns = "columns of the value and Kafka's own; there key and value are base64"
    texts = {"json": "JSON lines; there a file is one array", "csv": as_lines if plain_text else as_columns}
    if "format.output.type" in draft.settings:
        difference = texts.get(kind, "")
        known = kind in {"jsonl", "json", "parquet", "avro", "csv"}
        if not known:
            draft.lost("format.output.type", "is none of csv, json, jsonl, parquet and avro; Json is used")
        draft.carry("format.output.type", "format.type", name, difference)
    else:
        draft.note(f"format.output.type is csv there by default: spec.format.type: {name}, {texts['csv']}.")
    _fields(draft, fields_key, fields, name, wrapped)
    _compression(draft, name)
    key = "format.output.fields.value.encoding"
    if key in draft.settings:
        fine = draft.text(key).lower() == "none" or name in {"Json", "Parquet", "Avro"}
        text = "the value as it is" if fine else "the value is written as text, not as base64"
        draft.exact(key, text) if fine else draft.different(key, text)


def _fields(draft: Draft, key: str, fields: list[str], name: str, wrapped: bool) -> None:
    """Which parts of a record are written."""
    if name in {"Json", "Parquet", "Avro"} and (wrapped or fields != ["value"]):
        meta = bool({"offset", "timestamp"} & set(fields))
        parts = {part: part in fields for part in ("key", "value", "headers")}
        draft.put("format.envelope", {"enabled": True, **parts, "metadata": meta})
        if "headers" in fields:
            draft.put("format.envelope.headersAs", "Map")
        text = "offset and timestamp are in metadata, beside topic and partition" if meta else ""
        shown = f"spec.format.envelope with {', '.join(fields)}"
        if key in draft.settings:
            draft.different(key, f"{shown}; {text}") if text else draft.exact(key, shown)
        else:
            draft.note("format.output.fields is value there by default, in an envelope: spec.format.envelope.")
    elif name == "Csv":
        draft.put("format.columns.meta", "Kafka")
        if key in draft.settings:
            draft.different(key, "columns of Kafka (format.columns.meta), then those of the value")
    elif key in draft.settings:
        draft.exact(key, "the value alone")


def _flag(draft: Draft, key: str, default: bool) -> bool:
    if key not in draft.settings:
        return default
    try:
        value = flag(draft.text(key))
    except ValueError as error:
        draft.lost(key, f"the value {error}; {str(default).lower()} is the default")
        return default
    draft.exact(key, "spec.format.envelope" if value else "the value without an envelope")
    return value


def _compression(draft: Draft, name: str) -> None:
    key = _either(draft, "file.compression.type")
    codecs = {"none": "None", "gzip": "Gzip", "snappy": "Snappy", "zstd": "Zstd"}
    given = draft.text(key, "gzip").lower()
    if given not in codecs or (given == "snappy" and name not in {"Parquet", "Avro"}):
        draft.lost(key, f"{name} has no such codec; Zstd is used. Readers that cannot: Gzip")
        given = "zstd"
    if given == "gzip" and name == "Avro":
        draft.lost(key, "Avro has no gzip; Deflate is used")
        draft.put("format.compression.codec", "Deflate")
        return
    draft.put("format.compression.codec", codecs[given])
    if key in draft.settings:
        draft.exact(key, f"spec.format.compression.codec: {codecs[given]}")
        draft.origins["format.compression"] = key
    else:
        draft.note("file.compression.type is gzip there by default: spec.format.compression.codec: Gzip.")
