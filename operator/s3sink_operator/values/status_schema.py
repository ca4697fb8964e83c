"""The part of a document that the schema of `status` allows.

The API server refuses a whole status for one wrong field, so what does not fit is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from s3sink_api.definition.status import STATUS

_HOUR = r"([01]\d|2[0-3]):[0-5]\d"
_TIMESTAMP = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}T{_HOUR}:[0-5]\d(\.\d{{1,9}})?(Z|[+-]{_HOUR})", re.ASCII)
_LARGEST_NUMBER = 2**63
_INVALID = object()


def valid_part(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without the fields that the schema does not know or whose value does not fit it."""
    kept = _valid(STATUS, document)
    return kept if isinstance(kept, dict) else {}


def is_timestamp(text: str) -> bool:
    """Whether the API server accepts it as a time."""
    if not _TIMESTAMP.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _valid(schema: Mapping[str, Any], value: Any) -> Any:
    match schema["type"], value:
        case "object", dict():
            known = schema["properties"]
            kept = {k: part for k, v in value.items() if k in known and (part := _valid(known[k], v)) is not _INVALID}
            return kept if all(name in kept for name in schema.get("required", ())) else _INVALID
        case "array", list():
            items = [part for item in value if (part := _valid(schema["items"], item)) is not _INVALID]
            return items[: schema["maxItems"]]
        case "string", str():
            return _valid_text(schema, value)
        case "integer", int() if not isinstance(value, bool) and abs(value) < _LARGEST_NUMBER:
            return value
        case "number", (int() | float()) if not isinstance(value, bool) and abs(value) < _LARGEST_NUMBER:
            return value
    return _INVALID


def _valid_text(schema: Mapping[str, Any], value: str) -> Any:
    if "enum" in schema:
        return value if value in schema["enum"] else _INVALID
    if schema.get("format") == "date-time":
        return value if is_timestamp(value) else _INVALID
    # The API server would replace half a surrogate pair, and the status would differ from ours for ever.
    return value.encode("utf-8", "replace").decode()[: schema["maxLength"]]
