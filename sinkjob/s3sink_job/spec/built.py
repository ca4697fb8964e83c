"""What the resource describes and no code does yet: refused by name, never ignored.

One line per field. A feature that lands takes its line away, or adds its value to `built`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_job.spec.problems import FieldError

_ABSENT = object()


@dataclass(frozen=True)
class NotBuilt:
    """Any value outside of `built` is refused, unless the format is the one it is built for."""

    path: str
    instead: str
    built: tuple[Any, ...] = ()
    but_for: str = ""


_OMIT = "leave it out"
_DEFAULT_LAYOUT = "leave it out: objects go to <prefix>/<topic>/<partition>/<offset>"

NOT_BUILT: tuple[NotBuilt, ...] = (
    NotBuilt("spec.mode", "use Append", ("Append",)),
    NotBuilt("spec.reset", "make another S3Sink, with its own prefix and statePrefix, for a fresh start"),
    NotBuilt("spec.source.key.format", "use String, Bytes or Json", ("String", "Bytes", "Json")),
    NotBuilt("spec.source.key.schemaRegistry", _OMIT),
    NotBuilt("spec.source.key.schema", _OMIT, ("",)),
    NotBuilt("spec.source.value.format", "use Json, String or Bytes", ("Json", "String", "Bytes")),
    NotBuilt("spec.source.value.schemaRegistry", _OMIT),
    NotBuilt("spec.source.value.schema", "use it with Parquet, or leave it out", ("",), but_for="Parquet"),
    NotBuilt("spec.destination.assumeRoleArn", "give the role through the pod's credential chain", ("",)),
    NotBuilt("spec.destination.encryption.type", "use AES256 or KMS", ("AES256", "KMS")),
    NotBuilt("spec.layout.partitionBy", _DEFAULT_LAYOUT, ([{"type": "Topic"}, {"type": "Partition"}],)),
    NotBuilt("spec.layout.hiveStyle", _DEFAULT_LAYOUT, (False,)),
    NotBuilt("spec.layout.onMissingValue", _DEFAULT_LAYOUT, ("Default",)),
    NotBuilt("spec.layout.objectName", _DEFAULT_LAYOUT, ("Offset",)),
    NotBuilt("spec.layout.padding.offset", _DEFAULT_LAYOUT, (19,)),
    NotBuilt("spec.layout.padding.partition", _DEFAULT_LAYOUT, (0,)),
    NotBuilt("spec.layout.suffix", _DEFAULT_LAYOUT, ("",)),
    NotBuilt("spec.layout.extension", "leave it out: it follows from format and codec", ("",)),
    NotBuilt("spec.format.type", "set Parquet, Json or Text", ("Parquet", "Json", "Text")),
    NotBuilt("spec.format.compression.codec", "use None, Gzip or Zstd", ("None", "Gzip", "Zstd"), but_for="Parquet"),
    NotBuilt("spec.format.csv.header", _OMIT, (True,)),
    NotBuilt("spec.format.csv.delimiter", _OMIT, (",",)),
    NotBuilt("spec.format.csv.quote", _OMIT, ("Minimal",)),
    NotBuilt("spec.format.columns.meta", "use None, Kafka or Quix", ("None", "Kafka", "Quix")),
    NotBuilt("spec.format.columns.flatten", _OMIT, (False,)),
    NotBuilt("spec.format.envelope.enabled", "use columns.meta: Kafka with Json", (False,)),
    NotBuilt("spec.format.envelope.key", _OMIT, (True,)),
    NotBuilt("spec.format.envelope.value", _OMIT, (True,)),
    NotBuilt("spec.format.envelope.headers", _OMIT, (True,)),
    NotBuilt("spec.format.envelope.metadata", _OMIT, (True,)),
    NotBuilt("spec.format.schemaEvolution.mode", _OMIT, ("Backward",)),
    NotBuilt("spec.format.schemaEvolution.onChange", _OMIT, ("Merge",)),
    NotBuilt("spec.nullValues", "use Write", ("Write",)),
    NotBuilt("spec.transform", "write the records as they are"),
    NotBuilt("spec.routes", "use one S3Sink for each route", ([],)),
    NotBuilt("spec.errors.records", "use Fail or Skip", ("Fail", "Skip")),
    NotBuilt("spec.errors.deadLetter", "use errors.records: Fail or Skip"),
    NotBuilt("spec.errors.logRecords", _OMIT, (False,)),
)


def not_built(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """An error for every field of the document that asks for what no code does yet."""
    kind = _value_at(document, "spec.format.type")
    for row in NOT_BUILT:
        value = _value_at(document, row.path)
        if row.but_for and row.but_for == ("Parquet" if kind is _ABSENT else kind):
            continue
        if value is not _ABSENT and value not in row.built:
            yield FieldError(row.path, f"{_named(row, value)}not built yet; {row.instead}")


def _named(row: NotBuilt, value: Any) -> str:
    enumeration = bool(row.built) and all(isinstance(known, str) and known.isalnum() for known in row.built)
    return f"{value} is " if enumeration and isinstance(value, str) else ""


def _value_at(document: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(document, Mapping) or name not in document:
            return _ABSENT
        document = document[name]
    return document
