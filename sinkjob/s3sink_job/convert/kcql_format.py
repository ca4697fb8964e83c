"""STOREAS, the envelope and the codec of KCQL statements."""

from __future__ import annotations

from collections.abc import Mapping

from s3sink_job.convert.draft import Draft
from s3sink_job.convert.kcql_sections import Sections, taken
from s3sink_job.convert.rules import flag

_FORMATS: Mapping[str, tuple[str, str]] = {
    "JSON": ("Json", ".json"),
    "AVRO": ("Avro", ""),
    "PARQUET": ("Parquet", ""),
    "TEXT": ("Text", ".text"),
    "CSV": ("Csv", ""),
    "BYTES": ("Bytes", ".bytes"),
}
_CODECS = {
    "UNCOMPRESSED": "None",
    "SNAPPY": "Snappy",
    "GZIP": "Gzip",
    "LZ4": "Lz4",
    "BROTLI": "Brotli",
    "BZIP2": "Bzip2",
    "ZSTD": "Zstd",
    "DEFLATE": "Deflate",
    "XZ": "Xz",
}
_CODECS_OF = {
    "Parquet": ("Snappy", "Gzip", "Lz4", "Brotli", "Zstd"),
    "Avro": ("Snappy", "Bzip2", "Zstd", "Deflate", "Xz"),
    "Json": ("Gzip",),
}
"""What the connector's writers have."""


def convert_format(sections: Sections, properties: dict[str, str]) -> None:
    given = sections.statement.store_as or "JSON"
    kind, _, option = given.upper().partition("_")
    if kind not in _FORMATS or (option and (kind, option) != ("CSV", "WITHHEADERS")):
        known = ", ".join([*_FORMATS, "CSV_WITHHEADERS"])
        sections.enter("STOREAS", "Lost", f"is none of {known}; Json is used. Set spec.format.type yourself")
        kind, option = "JSON", ""
    name, extension = _FORMATS[kind]
    sections.format["type"] = name
    if name == "Csv":
        sections.format["csv"] = {"header": bool(option)}
    if extension:
        sections.layout["extension"] = extension
    if sections.statement.store_as:
        sections.enter("STOREAS", "Exact", f"spec.format.type: {name}")
    _envelope(sections, properties, name)


def _envelope(sections: Sections, properties: dict[str, str], kind: str) -> None:
    wrapped = taken(sections, properties, "store.envelope", flag)
    parts = {
        part: value
        for part in ("key", "headers", "value", "metadata")
        if (value := taken(sections, properties, f"store.envelope.fields.{part}", flag)) is not None
    }
    if wrapped is None and parts:
        for part in parts:
            text = "has no effect there without store.envelope"
            sections.enter(f"PROPERTIES store.envelope.fields.{part}", "Exact", text)
        return
    if wrapped:
        fields = {"keyAs": "Fields"} if sections.key_has_fields else {}
        sections.format["envelope"] = {"enabled": True, **parts, "headersAs": "Map", **fields}
        if kind in {"Json", "Avro", "Parquet"}:
            sections.enter("PROPERTIES store.envelope", "Exact", "spec.format.envelope.enabled")
        else:
            del sections.format["envelope"]
            sections.enter("PROPERTIES store.envelope", "Lost", f"{kind} has no envelope; use JSON, AVRO or PARQUET")
    elif wrapped is not None:
        sections.enter("PROPERTIES store.envelope", "Exact", "spec.format.envelope is off")
    for part, value in parts.items():
        path = f"spec.format.envelope.{part}: {str(value).lower()}"
        sections.enter(f"PROPERTIES store.envelope.fields.{part}", "Exact", path)


def convert_compression(draft: Draft, statements: list[Sections]) -> None:
    """There the codec is set once, and each format takes those that it has. Without one nothing is compressed."""
    key, level = "connect.s3.compression.codec", "connect.s3.compression.level"
    codec = _CODECS.get(draft.text(key).upper(), "None")
    number = draft.text(level)
    used = False
    for sections in statements:
        kind = sections.format["type"]
        fits = codec in _CODECS_OF.get(kind, ())
        used = used or fits
        if fits:
            leveled = number.isdecimal() and kind == "Avro" and codec in {"Deflate", "Xz", "Zstd"}
            sections.format["compression"] = {"codec": codec, **({"level": int(number)} if leveled else {})}
            if kind == "Json" and codec == "Gzip":
                sections.layout["extension"] = ".json.gz"
        elif kind in {"Avro", "Parquet"}:
            sections.format["compression"] = {"codec": "None"}
    if key in draft.settings:
        _report_codec(draft, key, codec, used)
    if level in draft.settings:
        set_somewhere = any("level" in sections.format.get("compression", {}) for sections in statements)
        draft.exact(level, "spec.format.compression.level" if set_somewhere else "has no effect there with this codec")


def _report_codec(draft: Draft, key: str, codec: str, used: bool) -> None:
    if draft.text(key).upper() not in _CODECS:
        draft.lost(key, f"is none of {', '.join(_CODECS)}; nothing is compressed")
    elif used or codec == "None":
        draft.exact(key, f"spec.format.compression.codec: {codec}")
    else:
        draft.lost(key, "the format has no such codec there; nothing is compressed")
