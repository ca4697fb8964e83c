"""Format, codec and rotation of Confluent's S3 sink."""

from __future__ import annotations

from s3sink_job.convert.draft import Draft
from s3sink_job.convert.rules import (
    count,
    milliseconds,
    to,
    unless_off,
)

_FORMATS = {
    "ParquetFormat": "Parquet",
    "AvroFormat": "Avro",
    "JsonFormat": "Json",
    "ByteArrayFormat": "Bytes",
    "PARQUET": "Parquet",
    "AVRO": "Avro",
    "JSON": "Json",
    "BYTES": "Bytes",
}
CODECS = {
    "none": "None",
    "null": "None",
    "uncompressed": "None",
    "snappy": "Snappy",
    "gzip": "Gzip",
    "zstd": "Zstd",
    "lz4": "Lz4",
    "brotli": "Brotli",
    "deflate": "Deflate",
    "bzip2": "Bzip2",
    "xz": "Xz",
}
IN_NAMES = {"Snappy": ".snappy", "Gzip": ".gz", "Zstd": ".zstd", "Lz4": ".lz4", "Brotli": ".br", "None": ""}


def convert_format(draft: Draft) -> None:
    key = "format.class" if "format.class" in draft.settings else "output.data.format"
    given = draft.text(key)
    name = given.rsplit(".", 1)[-1]
    own = "." in given and not given.startswith("io.confluent.")
    kind = "" if own else _FORMATS.get(name, _FORMATS.get(name.upper(), ""))
    if not kind:
        known = ", ".join(sorted(set(_FORMATS.values())))
        if key in draft.settings:
            draft.lost(key, f"S3Sink has no format like this; Json is used. It has {known}")
        else:
            draft.note("format.class is not set, and the connector needs it: spec.format.type: Json.")
        kind = "Json"
    if key in draft.settings:
        text = "one object for each record; there a file has several records" if kind == "Bytes" else ""
        draft.carry(key, "format.type", kind, text)
    elif "output.data.format" not in draft.settings:
        draft.put("format.type", kind)
    codec = _codec(draft, kind)
    if codec:
        draft.put("format.compression.codec", codec)
    match kind:
        case "Parquet":
            draft.put("layout.extension", f"{IN_NAMES[codec or 'Snappy']}.parquet")
        case "Json":
            draft.put("layout.extension", ".json.gz" if codec == "Gzip" else ".json")


def _codec(draft: Draft, kind: str) -> str:
    """The codec of the format, and the account of the keys of others."""
    keys = {
        "Parquet": "parquet.codec",
        "Avro": "avro.codec",
        "Json": "s3.compression.type",
        "Bytes": "s3.compression.type",
    }
    found = {"Parquet": "Snappy"}.get(kind, "None")
    for owner in ("parquet.codec", "avro.codec", "s3.compression.type"):
        if owner not in draft.settings:
            continue
        if owner != keys[kind]:
            draft.exact(owner, f"has no effect there with {kind}")
            continue
        given = draft.text(owner).lower()
        if given in CODECS:
            found = CODECS[given]
            draft.exact(owner, f"spec.format.compression.codec: {found}")
            draft.origins["format.compression"] = owner
        else:
            draft.lost(owner, f"is none of {', '.join(CODECS)}; {found} is used")
    level = "s3.compression.level"
    if level in draft.settings:
        if draft.text(level) == "-1":
            draft.exact(level, "the default level of the codec")
        elif found == "Gzip":
            to("format.compression.level", count)(draft, level, draft.settings[level])
        else:
            draft.exact(level, "has no effect there without gzip")
    return found


def convert_rotation(draft: Draft) -> None:
    window, schedule = "rotate.interval.ms", "rotate.schedule.interval.ms"
    if draft.has(window):
        text = "windows begin at multiples of it; there a window begins with its first record"
        unless_off(to("flush.recordWindow", milliseconds, text), ("", "-1"))(draft, window, draft.settings[window])
    if draft.has(schedule):
        zone = draft.text("timezone", "UTC") or "UTC"
        unless_off(to("flush.aligned", milliseconds), ("", "-1"))(draft, schedule, draft.settings[schedule])
        if zone.upper() not in {"UTC", "GMT", "ETC/UTC"} and draft.value_at("flush.aligned"):
            draft.put("flush.timezone", zone)
    if not draft.value_at("flush.aligned"):
        draft.note(
            "spec.flush.interval is 1h by default: S3Sink also flushes what waits for an hour."
            " The connector waits for flush.size or its rotation; set a longer interval for the same."
        )
