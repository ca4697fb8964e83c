"""How records become bytes, as plain data: what a task needs of the spec, and what a manifest remembers.

A manifest keeps it so that an object whose upload was lost can be written again just as it was meant,
whatever the spec says by then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from s3sink_job.spec import Spec, columns_of

EXTENSIONS = {"Json": ".jsonl", "Text": ".txt", "Parquet": ".parquet"}
CODEC_EXTENSIONS = {"None": "", "Gzip": ".gz", "Zstd": ".zst"}
CONTENT_TYPES = {
    "Json": "application/x-ndjson",
    "Text": "text/plain; charset=utf-8",
    "Parquet": "application/vnd.apache.parquet",
}


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

    @property
    def extension(self) -> str:
        """The codec's is left out where the format compresses within: its readers ask the file."""
        if self.format == "Parquet":
            return EXTENSIONS[self.format]
        return EXTENSIONS[self.format] + CODEC_EXTENSIONS[self.codec]

    @property
    def content_type(self) -> str:
        """Of the content below the compression: readers go by the extension for that, as they do elsewhere."""
        return CONTENT_TYPES[self.format]

    @property
    def columns(self) -> tuple[str, ...]:
        """The Kafka columns this needs beside topic, partition and offset. Each costs time: take no more."""
        columns = {"Kafka": ("key", "value", "timestamp", "headers"), "Quix": ("key", "value", "timestamp")}
        wanted = columns.get(self.meta, ("value",))
        return (*wanted, "timestamp") if self.window and "timestamp" not in wanted else wanted

    def to_doc(self) -> dict[str, Any]:
        return asdict(self)


def encoding_of(spec: Spec) -> Encoding:
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
    )


def encoding_from_doc(doc: Mapping[str, Any]) -> Encoding:
    return Encoding(**doc)


def _supplied(spec: Spec) -> str:
    value = spec.source.value
    return json.dumps(columns_of(value.schema)) if value.format == "Json" and value.schema else ""
