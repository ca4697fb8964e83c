"""Fields and values of the resource that are not built yet. They are refused by name, never ignored.

One line for each field. A new feature removes its line, or adds its value to `built`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_api.formats import DEFAULT_FORMAT, formats_where, inputs_where
from s3sink_api.spec.field_errors import FieldError, alternatives

_ABSENT = object()
INLINE_SCHEMA = "source.value.schema"


@dataclass(frozen=True)
class NotBuilt:
    """Any value that is not in `built` is refused, unless the output format is in `but_for`."""

    path: str
    instead: str
    built: tuple[Any, ...] = ()
    but_for: tuple[str, ...] = ()


_OMIT = "leave it out"
_COLUMNS = formats_where(lambda traits: traits.rows == "Columns")
_WITH_COLUMNS = alternatives(_COLUMNS)
_INPUTS = inputs_where(lambda traits: traits.built)
_INPUT = f"use {alternatives(_INPUTS)}"

NOT_BUILT: tuple[NotBuilt, ...] = (
    NotBuilt("spec.mode", "use Append", ("Append",)),
    NotBuilt("spec.source.key.format", _INPUT, _INPUTS),
    NotBuilt("spec.source.key.schemaRegistry", _OMIT),
    NotBuilt("spec.source.key.schema", _OMIT, ("",)),
    NotBuilt("spec.source.value.format", _INPUT, _INPUTS),
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
    """An error for every field of the document that is not built yet."""
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
                path == INLINE_SCHEMA
                and own is not _ABSENT
                and any(_refused(row, "", _value_at(document, row.path), str(own)))
            ):
                message = f"{own} with {INLINE_SCHEMA} is not built yet; use {_WITH_COLUMNS}"
                yield FieldError(f"spec.routes[{index}].format.type", message)


def _refused(row: NotBuilt, path: str, value: Any, kind: str) -> Iterator[FieldError]:
    if value is not _ABSENT and value not in row.built and kind not in row.but_for:
        yield FieldError(path, f"{_named(row, value)}not built yet; {row.instead}")


def _kind(*kinds: Any) -> str:
    """The last that is set, or the default."""
    return next((str(kind) for kind in reversed(kinds) if kind is not _ABSENT), DEFAULT_FORMAT)


def _named(row: NotBuilt, value: Any) -> str:
    enumeration = bool(row.built) and all(isinstance(known, str) and known.isalnum() for known in row.built)
    return f"{value} is " if enumeration and isinstance(value, str) else ""


def _value_at(document: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(document, Mapping) or name not in document:
            return _ABSENT
        document = document[name]
    return document
