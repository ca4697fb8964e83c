"""Fields and values of the resource that are not built yet. They are refused by name, never ignored.

One line for each field. A new feature removes its line, or adds its value to `built`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_api.formats import DEFAULT_FORMAT, formats_where, inputs_where
from s3sink_api.spec.field_errors import FieldError, alternatives
from s3sink_api.spec.source import Key, Value

_ABSENT = object()
_DEFAULT_INPUTS = {"source.key": Key().format, "source.value": Value().format}


@dataclass(frozen=True)
class NotBuilt:
    """Any value that is not in `built` is refused, unless the output format is in `but_for`."""

    path: str
    instead: str
    built: tuple[Any, ...] = ()
    but_for: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    """Input formats. If set, the field is built for all others."""

    @property
    def field(self) -> str:
        return self.path.removeprefix("spec.")


_OMIT = "leave it out"
_COLUMNS = formats_where(lambda traits: traits.rows == "Columns")
_WITH_COLUMNS = alternatives(_COLUMNS)
_COLUMNS_BY_SCHEMA = inputs_where(lambda traits: traits.inline_schema == "JSON Schema" and not traits.typed)

_SCHEMA = NotBuilt(
    "spec.source.value.schema",
    f"use it with {_WITH_COLUMNS}, or leave it out",
    ("",),
    but_for=_COLUMNS,
    only_with=_COLUMNS_BY_SCHEMA,
)

NOT_BUILT: tuple[NotBuilt, ...] = (
    NotBuilt("spec.source.key.schema", _OMIT, ("",), only_with=_COLUMNS_BY_SCHEMA),
    _SCHEMA,
)


def not_built(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """An error for every field of the document that is not built yet."""
    spec = _value_at(document, "spec")
    kind = _value_at(spec, "format.type")
    for row in NOT_BUILT:
        if _refuses(row, spec, _kind(kind)):
            yield _error(row, row.path, spec)
    routes = _value_at(spec, "routes")
    for index, route in enumerate(routes if isinstance(routes, list) else ()):
        own = _value_at(route, "format.type")
        for row in NOT_BUILT:
            if _refuses(row, route, _kind(kind, own)):
                yield _error(row, f"spec.routes[{index}].{row.field}", route)
        if own is not _ABSENT and _value_at(route, "source.value") is _ABSENT and _refuses(_SCHEMA, spec, str(own)):
            message = f"{own} with {_SCHEMA.field} is not built yet; use {_WITH_COLUMNS}"
            yield FieldError(f"spec.routes[{index}].format.type", message)


def _refuses(row: NotBuilt, sections: Any, kind: str) -> bool:
    """`sections` are those of the spec or of a route, `kind` is the output format."""
    value = _value_at(sections, row.field)
    if value is _ABSENT or value in row.built or kind in row.but_for:
        return False
    if not row.only_with:
        return True
    part = row.field.removesuffix(".schema")
    given = _value_at(sections, f"{part}.format")
    return (_DEFAULT_INPUTS[part] if given is _ABSENT else given) in row.only_with


def _error(row: NotBuilt, path: str, sections: Any) -> FieldError:
    return FieldError(path, f"{_named(row, _value_at(sections, row.field))}not built yet; {row.instead}")


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
