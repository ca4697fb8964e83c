"""A YAML document as plain JSON, as it would come from the API server."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from s3sink_api.spec.error_messages import path
from s3sink_api.spec.field_errors import FieldError
from s3sink_api.spec.field_locations import Location, fields
from s3sink_api.spec.sink import Metadata

_DEEPEST = 64
_MOST_VALUES = 100_000
_LARGEST = 2**63
_DROPPED = object()


class JsonDocument:
    """One document. Nulls, and values that JSON does not have, become errors and are left out."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.errors: list[FieldError] = []
        self._values = 0
        kept = {key: value for key, value in document.items() if key != "status"}
        if isinstance(kept.get("metadata"), Mapping):
            kept["metadata"] = _known_metadata(kept["metadata"])
        self.document: dict[str, Any] = self._mapping(kept, ())

    def _read(self, value: Any, parts: Location) -> Any:
        self._values += 1
        # Anchors may repeat a value, or make it hold itself.
        if len(parts) > _DEEPEST or self._values > _MOST_VALUES:
            return self._refuse(parts[:3], "is too large or too deeply nested; make the document smaller")
        match value:
            case None if "podTemplate" not in parts[:-1]:
                return self._refuse(parts, "must not be null; leave the field out")
            case None | bool():
                return value
            case str():
                return self._text(value, parts)
            case int() if abs(value) < _LARGEST:
                return value
            case float() if value.is_integer() and abs(value) < _LARGEST:
                # Where kubectl reads the file, 5.0 is 5.
                return int(value)
            case float() if math.isfinite(value):
                return value
            case int() | float():
                return self._refuse(parts, "is a number out of range")
            case datetime():
                return value.isoformat().replace("+00:00", "Z")
            case date():
                return value.isoformat()
            case Mapping():
                return self._mapping(value, parts)
            case list() | tuple():
                items = (self._read(item, (*parts, index)) for index, item in enumerate(value))
                # A null keeps the place of what was refused, so that later items keep their numbers.
                return [None if item is _DROPPED else item for item in items]
            case _:
                return self._refuse(parts, f"must be plain YAML, got {type(value).__name__}")

    def _mapping(self, value: Mapping[Any, Any], parts: Location) -> dict[str, Any]:
        read = {}
        for key, item in value.items():
            if not isinstance(key, str) or not _is_unicode(key):
                self._refuse((*parts, repr(key)), "must have text as its key; write it in quotes")
            elif (kept := self._read(item, (*parts, key))) is not _DROPPED:
                read[key] = kept
        return read

    def _text(self, value: str, parts: Location) -> Any:
        return value if _is_unicode(value) else self._refuse(parts, "must be Unicode text")

    def _refuse(self, parts: Location, message: str) -> object:
        self.errors.append(FieldError(path(parts), message))
        return _DROPPED


def _known_metadata(metadata: Mapping[Any, Any]) -> dict[Any, Any]:
    # The API server adds keys of its own, and writes nulls where it means nothing.
    known = fields(Metadata)
    return {key: value for key, value in metadata.items() if key in known and value is not None}


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
