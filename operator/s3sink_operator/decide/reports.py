"""A driver's report, cut down to what the resource's status may hold: a driver may be old, broken or lying."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from s3sink_operator.crd.status import STATUS
from s3sink_operator.model import Document, Report

_HOUR = r"([01]\d|2[0-3]):[0-5]\d"
_TIME = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}T{_HOUR}:[0-5]\d(\.\d{{1,9}})?(Z|[+-]{_HOUR})", re.ASCII)
_LARGEST = 2**63
_NOTHING = object()


def read_report(text: bytes | str) -> Document | str:
    """The report, or what is wrong with it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return "its report is not JSON"
    if not isinstance(document, dict):
        return "its report is not a JSON object"
    kept = fitting(STATUS, document)
    if not isinstance(kept, dict) or "phase" not in kept or "conditions" not in kept:
        return "its report lacks phase or conditions"
    if isinstance(at := document.get("reportedAt"), str) and _is_time(at):
        kept["reportedAt"] = at
    return kept


def fitting(schema: Mapping[str, Any], value: Any) -> Any:
    """The part of a value that the schema allows; the marker `_NOTHING` inside, absence outside."""
    kept = _fit(schema, value)
    return None if kept is _NOTHING else kept


def _fit(schema: Mapping[str, Any], value: Any) -> Any:
    match schema["type"], value:
        case "object", dict():
            known = schema["properties"]
            kept = {k: fit for k, v in value.items() if k in known and (fit := _fit(known[k], v)) is not _NOTHING}
            return kept if all(name in kept for name in schema.get("required", ())) else _NOTHING
        case "array", list():
            items = [fit for item in value if (fit := _fit(schema["items"], item)) is not _NOTHING]
            return items[: schema["maxItems"]]
        case "string", str():
            return _text(schema, value)
        case "integer", int() if not isinstance(value, bool) and abs(value) < _LARGEST:
            return value
        case "number", (int() | float()) if not isinstance(value, bool) and abs(value) < _LARGEST:
            return value
    return _NOTHING


def _text(schema: Mapping[str, Any], value: str) -> Any:
    if "enum" in schema:
        return value if value in schema["enum"] else _NOTHING
    if schema.get("format") == "date-time":
        return value if _is_time(value) else _NOTHING
    # Half a character would come back from the API server as another one, and the status would never be at rest.
    return value.encode("utf-8", "replace").decode()[: schema["maxLength"]]


def _is_time(text: str) -> bool:
    """What the API server takes for one: it refuses the whole status otherwise."""
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_fresh(report: Report, now: datetime, stale_after: float) -> bool:
    """Heard lately, and renewed lately. The driver's clock may be wrong; that it moves is what counts."""
    limit = timedelta(seconds=stale_after)
    return now - report.heard <= limit and now - (report.changed or report.heard) <= limit
