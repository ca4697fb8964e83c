"""How records become bytes, as plain data: what a task needs of the spec, and what a manifest remembers.

A manifest keeps it so that an object whose upload was lost can be written again just as it was meant,
whatever the spec says by then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from s3sink_job.layout import DEFAULT_LAYOUT, Layout, layout_from_doc, layout_of
from s3sink_job.spec import Spec, columns_of

EXTENSIONS = {
    "Json": ".jsonl",
    "Csv": ".csv",
    "Text": ".txt",
    "Bytes": ".bin",
    "Parquet": ".parquet",
    "Avro": ".avro",
    "Orc": ".orc",
}
CODEC_EXTENSIONS = {
    "None": "",
    "Gzip": ".gz",
    "Lz4": ".lz4",
    "Zstd": ".zst",
    "Brotli": ".br",
    "Bzip2": ".bz2",
    "Xz": ".xz",
}
CONTENT_TYPES = {
    "Json": "application/x-ndjson",
    "Csv": "text/csv; charset=utf-8",
    "Text": "text/plain; charset=utf-8",
    "Bytes": "application/octet-stream",
    "Parquet": "application/vnd.apache.parquet",
    "Avro": "application/avro",
    "Orc": "application/vnd.apache.orc",
}
CONTENT_CODINGS = {"Gzip": "gzip", "Zstd": "zstd", "Brotli": "br"}
COMPRESS_WITHIN = frozenset({"Parquet", "Avro", "Orc"})
WITH_COLUMNS = frozenset({"Parquet", "Avro", "Orc", "Csv"})
"""Formats whose rows have columns of their own; the others write a value as it comes, or as one line."""
KAFKA_COLUMNS = ("key", "value", "timestamp", "headers")
META_COLUMNS = {"Kafka": ("key", "timestamp", "headers"), "Quix": ("key", "timestamp"), "Airbyte": ("timestamp",)}
ENVELOPE = ("key", "value", "headers", "metadata")
SINCE_0_2 = ("header", "delimiter", "quote", "flatten", "envelope", "nulls", "layout")
"""Fields that 0.1.0 does not know, and would stumble over."""


@dataclass(frozen=True)
class Encoding:
    format: str
    codec: str
    level: int | None
    meta: str
    key: str
    value: str
    row_group_bytes: int = 64 * 2**20
    dictionary: bool = True
    statistics: bool = True
    window: float | None = None
    """Seconds of record time that an object may span, and whose multiples it may not cross."""
    supplied: str = ""
    """The columns that the spec asks for, as JSON; without any they are inferred."""
    header: bool = True
    delimiter: str = ","
    quote: str = "Minimal"
    flatten: bool = False
    envelope: tuple[str, ...] = ()
    """The parts of it that are written, in the order of `ENVELOPE`; none means that there is no envelope."""
    nulls: str = "Write"
    """What becomes of tombstones, as `spec.nullValues` says."""
    layout: Layout = DEFAULT_LAYOUT

    @property
    def extension(self) -> str:
        """The codec's is left out where the format compresses within: its readers ask the file."""
        if self.layout.extension:
            return self.layout.extension
        if self.format in COMPRESS_WITHIN:
            return EXTENSIONS[self.format]
        return EXTENSIONS[self.format] + CODEC_EXTENSIONS[self.codec]

    @property
    def content_encoding(self) -> str:
        """Told only where the name does not: clients would unpack it on the way, and then again by the name."""
        own = self.layout.extension
        if self.format in COMPRESS_WITHIN or not own or own.endswith(CODEC_EXTENSIONS[self.codec]):
            return ""
        return CONTENT_CODINGS.get(self.codec, "")

    @property
    def content_type(self) -> str:
        """Of the content below the compression: readers go by the extension for that, as they do elsewhere."""
        return CONTENT_TYPES[self.format]

    @property
    def columns(self) -> tuple[str, ...]:
        """The Kafka columns this needs beside topic, partition and offset. Each costs time: take no more."""
        wanted = {"value", *META_COLUMNS.get(self.meta, ()), *self.layout.columns}
        for part in self.envelope:
            wanted |= {"timestamp"} if part == "metadata" else {part}
        if self.window:
            wanted.add("timestamp")
        return tuple(name for name in KAFKA_COLUMNS if name in wanted)

    @property
    def folders_vary(self) -> bool:
        """Whether records of one slice may go to different folders."""
        return not self.layout.constant or self.nulls == "Separate"

    @property
    def grouped(self) -> bool:
        """Whether records of one slice may go to different objects at a time."""
        return self.folders_vary or self.window is not None

    def to_doc(self) -> dict[str, Any]:
        """Without the fields that 0.1.0 does not know and nobody asked for, so that it reads on after a rollback."""
        # The usual layout does not go by the flush's time, and the manifest has that as well.
        timeless = replace(self, layout=replace(self.layout, stamp=0))
        unused = {name for name in SINCE_0_2 if getattr(timeless, name) == getattr(Encoding, name)}
        return {name: value for name, value in asdict(self).items() if name not in unused}


def encoding_of(spec: Spec) -> Encoding:
    envelope = spec.format.envelope
    return Encoding(
        format=spec.format.type,
        codec=spec.format.codec,
        level=spec.format.level,
        meta=spec.format.columns.meta,
        key=spec.source.key.format,
        value=spec.source.value.format,
        row_group_bytes=spec.format.parquet.row_group_bytes,
        dictionary=spec.format.parquet.dictionary,
        statistics=spec.format.parquet.statistics,
        window=spec.flush.record_window,
        supplied=_supplied(spec),
        header=spec.format.csv.header,
        delimiter=spec.format.csv.delimiter,
        quote=spec.format.csv.quote,
        flatten=spec.format.columns.flatten,
        envelope=tuple(part for part in ENVELOPE if envelope.enabled and getattr(envelope, part)),
        nulls=spec.null_values,
        layout=layout_of(spec.layout),
    )


def encoding_from_doc(doc: Mapping[str, Any]) -> Encoding:
    """Of a manifest, which may be older than some of the fields."""
    given = {**doc, "envelope": tuple(doc.get("envelope", ()))}
    if "layout" in doc:
        given["layout"] = layout_from_doc(doc["layout"])
    return Encoding(**given)


def known_to_0_1(doc: Mapping[str, Any]) -> bool:
    """Whether 0.1.0 makes the same objects of it. It would not notice itself: a `meta` that it lacks is none to it."""
    codecs = doc.get("format") == "Parquet" or doc.get("codec") in {"None", "Gzip", "Zstd"}
    formats = doc.get("format") in {"Parquet", "Json", "Text"} and doc.get("meta") in {"None", "Kafka", "Quix"}
    return codecs and formats and not any(name in doc for name in SINCE_0_2)


def _supplied(spec: Spec) -> str:
    value = spec.source.value
    return json.dumps(columns_of(value.schema)) if value.format == "Json" and value.schema else ""
