"""Quix Streams' FileSink with an S3Destination, its parameters as YAML or JSON."""

from __future__ import annotations

from collections.abc import Mapping

from s3sink_job.convert.draft import PLACEHOLDER_TOPIC, Draft
from s3sink_job.convert.rules import Rule, apply, differs, lost, positive, same, secret, to, unless_off

SYSTEM = "Quix FileSink"
_DEST = r"(?:FileSink\.)?destination\.(?:S3Destination\.)?"


def _seconds(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("is not a number of seconds") from None
    if number <= 0:
        raise ValueError("is not above 0")
    return f"{round(number * 1000)}ms" if number % 1 else f"{int(number)}s"


PATTERNS: Mapping[str, Rule] = {
    rf"{_DEST}bucket": to("destination.bucket"),
    rf"{_DEST}aws_access_key_id": secret("s3", "AWS_ACCESS_KEY_ID", "destination.credentials"),
    rf"{_DEST}aws_secret_access_key": secret("s3", "AWS_SECRET_ACCESS_KEY", "destination.credentials"),
    rf"{_DEST}aws_session_token": secret("s3", "AWS_SESSION_TOKEN", "destination.credentials"),
    rf"{_DEST}region_name": to("destination.region"),
    rf"{_DEST}endpoint_url": to("destination.endpoint"),
    rf"{_DEST}verify": unless_off(same("certificates are always verified"), ()),
    rf"{_DEST}use_ssl": differs("the scheme of spec.destination.endpoint decides"),
    rf"{_DEST}(config|boto_config)\..*": lost("other arguments of boto3 are not carried over; see spec.destination"),
    r"(?:FileSink\.)?directory": to("destination.prefix", lambda text: text.strip("./")),
    r"(?:Application\.)?broker_address": to("source.bootstrapServers"),
    r"(?:Application\.)?consumer_group": differs("S3Sink has no consumer group; give it to s3sink takeover --group"),
    r"(?:Application\.)?commit_interval": to("flush.interval", _seconds),
    r"(?:Application\.)?commit_every": to("flush.records", positive),
    r"(?:Application\.)?(processing_guarantee|state_dir|loglevel|auto_create_topics|use_changelog_topics)": differs(
        "is a setting of the Quix application; S3Sink is exactly once by spec.delivery"
    ),
    r"(?:FileSink\.)?(on_client_connect_success|on_client_connect_failure)": lost("S3Sink calls no functions"),
}


def convert_quix(draft: Draft) -> None:
    _topics(draft)
    _format(draft)
    _start(draft)
    if not any(draft.has(key) for key in ("Application.commit_interval", "commit_interval")):
        draft.put("flush.interval", "5s")
        draft.note(
            "commit_interval is 5 s there by default: spec.flush.interval: 5s. A longer one makes fewer objects."
        )
    apply(draft, {}, PATTERNS)


def _topics(draft: Draft) -> None:
    key = next((key for key in ("topic", "topics", "Topic.name", "topic.name") if draft.has(key)), None)
    if key is None:
        draft.put("source.topics", [PLACEHOLDER_TOPIC])
        draft.note(f"the parameters name no topic: replace {PLACEHOLDER_TOPIC} in spec.source.topics.")
        return
    value = draft.settings[key]
    topics = [str(item) for item in (value if isinstance(value, list) else [value])]
    renamed = [name for name in topics if "-" in name]
    draft.carry(key, "source.topics", topics)
    if renamed:
        names = [{"topic": name, "as": name.replace("-", "_")} for name in renamed]
        draft.put("layout.topicNames", names)
        draft.note("Quix writes _ for - in the folder of a topic: spec.layout.topicNames.")
    for part, default in (("value", "json"), ("key", "bytes")):
        option = f"{part}_deserializer"
        kinds = {"json": "Json", "bytes": "Bytes", "string": "String", "str": "String"}
        given = next((name for name in (option, f"topic.{option}", f"Topic.{option}") if draft.has(name)), None)
        kind = draft.text(given or "", default).lower()
        if given and kind not in kinds:
            draft.lost(given, f"is none of {', '.join(kinds)}; set spec.source.{part} yourself")
        elif given:
            draft.carry(given, f"source.{part}.format", kinds[kind])
        elif part == "key":
            draft.put("source.key.format", "String")


def _format(draft: Draft) -> None:
    """`json`, `parquet`, or a class with options: `{JSONFormat: {compress: true}}`."""
    keys = [key for key in draft.settings if key.removeprefix("FileSink.").split(".")[0] == "format"]
    shown = " ".join(f"{key} {draft.text(key)}" for key in keys).lower()
    kind = "Parquet" if "parquet" in shown else "Json"
    draft.put("format.type", kind)
    draft.put("format.columns.meta", "Quix")
    if kind == "Parquet":
        draft.put("format.columns.flatten", True)
    for key in keys:
        option, value = key.rsplit(".", 1)[-1], draft.text(key).lower()
        if option in {"compress", "compression"} and kind == "Json":
            on = value in {"true", "gzip"}
            draft.carry(key, "format.compression.codec", "Gzip" if on else "None")
        elif option == "compression_type":
            codec = {
                "none": "None",
                "gzip": "Gzip",
                "snappy": "Snappy",
                "zstd": "Zstd",
                "lz4": "Lz4",
                "brotli": "Brotli",
            }
            draft.carry(key, "format.compression.codec", codec.get(value, "Snappy"))
        elif option == "file_extension":
            to("layout.extension")(draft, key, draft.settings[key])
        elif option in {"format", "type", "name"}:
            text = (
                "_value is one column of text; there the fields of the value are columns" if kind == "Parquet" else ""
            )
            draft.carry(key, "format.type", kind, text)
        else:
            draft.lost(key, "is an option of Quix's writer; see spec.format")
    if kind == "Parquet" and not draft.value_at("format.compression.codec"):
        draft.put("format.compression.codec", "Snappy")


def _start(draft: Draft) -> None:
    key = next((key for key in ("Application.auto_offset_reset", "auto_offset_reset") if draft.has(key)), None)
    if key is None:
        draft.put("source.startingOffsets", {"position": "Latest"})
        draft.note("auto_offset_reset is latest there by default: spec.source.startingOffsets: {position: Latest}.")
        return
    position = "Earliest" if draft.text(key).lower() == "earliest" else "Latest"
    text = "only at first contact; see also s3sink takeover"
    draft.carry(key, "source.startingOffsets", {"position": position}, text)
