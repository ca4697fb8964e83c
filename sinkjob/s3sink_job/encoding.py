"""How records become bytes, as plain data: what a task needs of the spec, and what a manifest remembers.

A manifest keeps it so that an object whose upload was lost can be written again just as it was meant,
whatever the spec says by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from s3sink_job.spec import Spec

EXTENSIONS = {"Json": ".jsonl", "Text": ".txt"}
CODEC_EXTENSIONS = {"None": "", "Gzip": ".gz", "Zstd": ".zst"}
CONTENT_TYPES = {"Json": "application/x-ndjson", "Text": "text/plain; charset=utf-8"}


@dataclass(frozen=True)
class Encoding:
    format: str
    codec: str
    level: int | None
    meta: str
    key: str
    value: str

    @property
    def extension(self) -> str:
        return EXTENSIONS[self.format] + CODEC_EXTENSIONS[self.codec]

    @property
    def content_type(self) -> str:
        """Of the content below the compression: readers go by the extension for that, as they do elsewhere."""
        return CONTENT_TYPES[self.format]

    @property
    def columns(self) -> tuple[str, ...]:
        """The Kafka columns this needs beside topic, partition and offset. Each costs time: take no more."""
        match self.meta:
            case "Kafka":
                return ("key", "value", "timestamp", "headers")
            case "Quix":
                return ("key", "value", "timestamp")
            case _:
                return ("value",)

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
    )


def encoding_from_doc(doc: Mapping[str, Any]) -> Encoding:
    return Encoding(**doc)
