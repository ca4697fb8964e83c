"""Airbyte's S3 destination. Its streams are topics here: S3Sink reads Kafka only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from s3sink_job.convert.draft import PLACEHOLDER_TOPIC, Draft
from s3sink_job.convert.rules import Rule, apply, count, differs, lost, same, secret, to, unless_off

SYSTEM = "Airbyte S3 destination"
WRAPPERS = ("connectionConfiguration", "connection_configuration", "configuration")
_AT = r"(?:(?:connectionConfiguration|connection_configuration|configuration)\.)?"
_DEFAULT_PATH = "${NAMESPACE}/${STREAM_NAME}/${YEAR}_${MONTH}_${DAY}_${EPOCH}_"
PATTERNS: Mapping[str, Rule] = {
    rf"{_AT}s3_bucket_name": to("destination.bucket"),
    rf"{_AT}s3_bucket_region": to("destination.region"),
    rf"{_AT}s3_endpoint": unless_off(to("destination.endpoint")),
    rf"{_AT}access_key_id": secret("s3", "AWS_ACCESS_KEY_ID", "destination.credentials"),
    rf"{_AT}secret_access_key": secret("s3", "AWS_SECRET_ACCESS_KEY", "destination.credentials"),
    rf"{_AT}role_arn": unless_off(to("destination.assumeRole.arn")),
    rf"{_AT}external_id": unless_off(to("destination.assumeRole.externalId")),
    rf"{_AT}file_name_pattern": unless_off(differs("the name is the date, the time in milliseconds and a number")),
    rf"{_AT}format\.(?:\w+\.)?(page_size_kb|block_size_mb|max_padding_size_mb|dictionary_page_size_kb)": same(
        "is a detail of the writer; see spec.format.parquet"
    ),
    rf"{_AT}format\.(?:\w+\.)?dictionary_encoding": same("is on; see spec.format.parquet.dictionary"),
    rf"{_AT}format\.(?:\w+\.)?part_size_mb": same("parts are as large as S3 needs them"),
    r"name|(destination|workspace|definition)_id|destinationId|workspaceId": same("is a name in Airbyte"),
    r"destinationDefinitionId|destinationName": same("is a name in Airbyte"),
    rf"{_AT}destination_type|destinationType|icon": same("is a name in Airbyte"),
    r"schedule\..*|schedule_type": differs("set spec.schedule, such as 0 * * * *"),
    r"streams\[\d+\]\.(cursor_field|primary_key|destination_sync_mode|cursorField|primaryKey)": lost(
        "S3Sink appends every record of the topic; there is no cursor and no key"
    ),
}


def convert_airbyte(draft: Draft) -> None:
    at = next((f"{name}." for name in WRAPPERS if any(key.startswith(f"{name}.") for key in draft.settings)), "")
    namespace = _streams(draft)
    _path(draft, at, namespace)
    _format(draft, f"{at}format.")
    draft.put("run", "Scheduled")
    draft.put("schedule", "0 * * * *")
    draft.note("Airbyte's schedule is a setting of the connection: spec.schedule is once an hour here; change it.")
    draft.note("Airbyte reads sources of its own, and S3Sink reads Kafka: each stream has to be a topic of this name.")
    apply(draft, {}, PATTERNS)


def _streams(draft: Draft) -> str:
    """Topics are the streams; the namespace is a folder before them."""
    names, namespaces = [], []
    for key, value in draft.settings.items():
        if re.fullmatch(r"streams\[\d+\]\.name", key):
            names.append(str(value))
            draft.exact(key, "a topic in spec.source.topics")
        elif re.fullmatch(r"(streams\[\d+\]\.)?namespace", key):
            namespaces.append(str(value))
        elif re.fullmatch(r"(streams\[\d+\]\.)?(sync_mode|syncMode)", key):
            _sync_mode(draft, key, str(value))
        elif key == "streams" and isinstance(value, list):
            names += map(str, value)
            draft.exact(key, "spec.source.topics")
    one = namespaces[0] if len(set(namespaces)) == 1 else ""
    for key in [key for key in draft.settings if re.fullmatch(r"(streams\[\d+\]\.)?namespace", key)]:
        if one:
            draft.exact(key, "a folder of spec.destination.prefix")
        else:
            draft.lost(key, "streams of several namespaces are sinks of their own here; convert each namespace")
    if not names:
        names = [PLACEHOLDER_TOPIC]
        draft.note(f"the destination names no streams: replace {PLACEHOLDER_TOPIC} in spec.source.topics.")
    draft.put("source.topics", list(dict.fromkeys(names)))
    return one


def _sync_mode(draft: Draft, key: str, value: str) -> None:
    if "refresh" in value.lower() or "overwrite" in value.lower():
        text = "a run replaces what this sink wrote before, and nothing else below the path"
        draft.carry(key, "mode", "FullRefresh", text)
    else:
        draft.exact(key, "spec.mode: Append")


def _path(draft: Draft, at: str, namespace: str) -> None:
    folder = draft.text(f"{at}s3_bucket_path").strip("/")
    if f"{at}s3_bucket_path" in draft.settings:
        draft.exact(f"{at}s3_bucket_path", "the first folders of spec.destination.prefix")
    key = f"{at}s3_path_format"
    template = draft.text(key) or _DEFAULT_PATH
    items: list[dict[str, Any]] = []
    prefix = [folder]
    problems: list[str] = []
    for segment in template.rstrip("/").split("/")[: None if template.endswith("/") else -1]:
        _segment(segment, prefix, items, problems, namespace)
    if {"type": "Topic"} not in items:
        items.append({"type": "Topic"})
        problems.append("the folder of the topic is added")
    draft.put("destination.prefix", "/".join(filter(None, prefix)))
    draft.put("layout.partitionBy", items)
    draft.put("layout.objectName", "Upload")
    if key in draft.settings:
        text = "; ".join(["names are <date>_<milliseconds>_<number>", *problems])
        same_name = not problems and re.search(r"\$\{YEAR\}_\$\{MONTH\}_\$\{DAY\}_\$\{EPOCH\}_?$", template)
        draft.exact(key, text) if same_name else draft.different(key, text)


_TIMES = {"YEAR": "yyyy", "MONTH": "MM", "DAY": "dd", "HOUR": "HH", "MINUTE": "mm"}


def _segment(segment: str, prefix: list[str], items: list[dict[str, Any]], problems: list[str], namespace: str) -> None:
    if segment == "${NAMESPACE}":
        prefix.append(namespace)
    elif segment == "${STREAM_NAME}":
        items.append({"type": "Topic"})
    elif found := re.fullmatch(r"([A-Za-z_]+=)?\$\{(YEAR|MONTH|DAY|HOUR|MINUTE)\}", segment):
        pattern = (f"'{found[1]}'" if found[1] else "") + _TIMES[found[2]]
        last = items[-1] if items and items[-1]["type"] == "Time" else None
        if last:
            last["format"] += f"/{pattern}"
        else:
            items.append({"type": "Time", "source": "Wallclock", "format": pattern})
    elif "${" not in segment and not items:
        prefix.append(segment)
    elif segment:
        problems.append(f"the folder {segment} is left out")


def _format(draft: Draft, at: str) -> None:
    key = _within(draft, at, "format_type")
    given = draft.text(key, "CSV").upper()
    kinds = {"CSV": "Csv", "JSONL": "Json", "AVRO": "Avro", "PARQUET": "Parquet"}
    kind = kinds.get(given, "Csv")
    draft.put("format.type", kind)
    draft.put("format.columns.meta", "Airbyte")
    if key in draft.settings:
        if given in kinds:
            draft.carry(key, "format.type", kind)
        else:
            draft.lost(key, f"is none of {', '.join(kinds)}; Csv is used")
    flattening = _within(draft, at, "flattening")
    flat = "root" in draft.text(flattening).lower() or kind in {"Avro", "Parquet"}
    if flat:
        draft.put("format.columns.flatten", True)
    if flattening in draft.settings:
        draft.exact(flattening, f"spec.format.columns.flatten: {str(flat).lower()}")
    _compression(draft, at, kind)
    draft.note("metadata columns are _airbyte_ab_id and _airbyte_emitted_at; newer releases of Airbyte have others.")


def _within(draft: Draft, at: str, *names: str) -> str:
    """The key with one of the names. Terraform has a section with the format's name around them."""
    ends = tuple(f".{name}" for name in names)
    found = [key for key in draft.settings if key.startswith(at) and key.endswith(ends)]
    return found[0] if found else f"{at}{names[0]}"


def _compression(draft: Draft, at: str, kind: str) -> None:
    codecs = {
        "no compression": "None",
        "uncompressed": "None",
        "null": "None",
        "gzip": "Gzip",
        "snappy": "Snappy",
        "zstandard": "Zstd",
        "zstd": "Zstd",
        "lz4": "Lz4",
        "brotli": "Brotli",
        "deflate": "Deflate",
        "bzip2": "Bzip2",
        "xz": "Xz",
    }
    key = _within(draft, at, "compression_type", "codec", "compression_codec")
    if key not in draft.settings:
        draft.note("newer releases of Airbyte compress CSV and JSONL by default: if your objects end in .gz, set Gzip.")
        return
    given = draft.text(key).lower()
    if given in codecs:
        draft.carry(key, "format.compression.codec", codecs[given])
    else:
        draft.lost(key, "is a codec that S3Sink does not write; see docs/formats.md")
    level = _within(draft, at, "compression_level")
    if level in draft.settings:
        to("format.compression.level", count)(draft, level, draft.settings[level])
