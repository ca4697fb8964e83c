"""What the resource describes and no code does yet: refused by name, never ignored.

One line per field. A feature that lands takes its line away, or adds its value to `built`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_job.spec.problems import FieldError

_ABSENT = object()
SUPPLIED = "source.value.schema"


@dataclass(frozen=True)
class NotBuilt:
    """Any value outside of `built` is refused, unless the format is one that it is built for."""

    path: str
    instead: str
    built: tuple[Any, ...] = ()
    but_for: tuple[str, ...] = ()


_OMIT = "leave it out"
_COLUMNS = ("Parquet", "Avro", "Orc", "Csv")
_WITH_COLUMNS = "Parquet, Avro, Orc or Csv"

NOT_BUILT: tuple[NotBuilt, ...] = (
    NotBuilt("spec.mode", "use Append", ("Append",)),
    NotBuilt("spec.source.key.format", "use String, Bytes or Json", ("String", "Bytes", "Json")),
    NotBuilt("spec.source.key.schemaRegistry", _OMIT),
    NotBuilt("spec.source.key.schema", _OMIT, ("",)),
    NotBuilt("spec.source.value.format", "use Json, String or Bytes", ("Json", "String", "Bytes")),
    NotBuilt("spec.source.value.schemaRegistry", _OMIT),
    NotBuilt("spec.source.value.schema", f"use it with {_WITH_COLUMNS}, or leave it out", ("",), but_for=_COLUMNS),
    NotBuilt("spec.destination.assumeRoleArn", "give the role through the pod's credential chain", ("",)),
    NotBuilt("spec.destination.encryption.type", "use AES256 or KMS", ("AES256", "KMS")),
    NotBuilt("spec.layout.onMissingValue", "use Default or Fail", ("Default", "Fail")),
    NotBuilt("spec.format.schemaEvolution.mode", _OMIT, ("Backward",)),
    NotBuilt("spec.format.schemaEvolution.onChange", _OMIT, ("Merge",)),
    NotBuilt("spec.transform", "write the records as they are"),
    NotBuilt("spec.errors.records", "use Fail or Skip", ("Fail", "Skip")),
    NotBuilt("spec.errors.deadLetter", "use errors.records: Fail or Skip"),
    NotBuilt("spec.errors.logRecords", _OMIT, (False,)),
)


def not_built(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """An error for every field of the document that asks for what no code does yet."""
    kind = _value_at(document, "spec.format.type")
    for row in NOT_BUILT:
        yield from _refused(row, row.path, _value_at(document, row.path), _kind(kind))
    routes = _value_at(document, "spec.routes")
    for index, route in enumerate(routes if isinstance(routes, list) else ()):
        own = _value_at(route, "format.type")
        for row in NOT_BUILT:
            path = row.path.removeprefix("spec.")
            yield from _refused(row, f"spec.routes[{index}].{path}", _value_at(route, path), _kind(kind, own))
            if (
                path == SUPPLIED
                and own is not _ABSENT
                and any(_refused(row, "", _value_at(document, row.path), str(own)))
            ):
                message = f"{own} with {SUPPLIED} is not built yet; use {_WITH_COLUMNS}"
                yield FieldError(f"spec.routes[{index}].format.type", message)


def _refused(row: NotBuilt, path: str, value: Any, kind: str) -> Iterator[FieldError]:
    if value is not _ABSENT and value not in row.built and kind not in row.but_for:
        yield FieldError(path, f"{_named(row, value)}not built yet; {row.instead}")


def _kind(*kinds: Any) -> str:
    """The last that is set; Parquet if none is."""
    return next((str(kind) for kind in reversed(kinds) if kind is not _ABSENT), "Parquet")


def _named(row: NotBuilt, value: Any) -> str:
    enumeration = bool(row.built) and all(isinstance(known, str) and known.isalnum() for known in row.built)
    return f"{value} is " if enumeration and isinstance(value, str) else ""


def _value_at(document: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(document, Mapping) or name not in document:
            return _ABSENT
        document = document[name]
    return document
