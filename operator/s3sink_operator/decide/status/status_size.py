"""Keeps a status small, whatever a driver reports: it is stored with the resource and sent to all who watch it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LARGEST = 48 * 1024
"""Bytes of JSON."""
_FEWEST_PARTITIONS, _FEWEST_GAPS = 10, 5
_TEXT_LIMITS = (1024, 256, 64)
_NEVER_CUT = frozenset({"executors"})
"""A label selector that was cut would select other pods."""


def limited(status: Mapping[str, Any]) -> dict[str, Any]:
    """The status with shorter texts, then with fewer partitions and gaps, until it is small enough."""
    kept = dict(status)
    for longest in _TEXT_LIMITS:
        if _size(kept) <= LARGEST:
            return kept
        kept = {name: value if name in _NEVER_CUT else _cut(value, longest) for name, value in kept.items()}
    if _size(kept) > LARGEST:
        kept["offsets"] = kept.get("offsets", [])[:_FEWEST_PARTITIONS]
        gaps = kept.get("gaps", {})
        kept["gaps"] = {**gaps, "recent": gaps.get("recent", [])[:_FEWEST_GAPS]}
    return kept


def _size(value: Any) -> int:
    return len(json.dumps(value))


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value[:longest]
    if isinstance(value, Mapping):
        return {name: _cut(inner, longest) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cut(item, longest) for item in value]
    return value
