"""Merges a sink's `podTemplate` into the pod that the operator makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3sink_operator.values.objects import Document

_MERGED_ITEMS = frozenset({"containers", "initContainers"})
_ITEM_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "env", "imagePullSecrets"), "name"),
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}


def merge_template(pod: Mapping[str, Any], template: Document) -> dict[str, Any]:
    """Merged as `kubectl apply` does it. Labels and annotations of the operator win."""
    ours, given = pod["metadata"], template.get("metadata", {})
    metadata = {
        section: {**given.get(section, {}), **ours.get(section, {})}
        for section in ("labels", "annotations")
        if given.get(section) or ours.get(section)
    }
    return {**pod, "metadata": metadata, "spec": _merged(pod["spec"], template.get("spec", {}))}


def _merged(base: Document, over: Document) -> dict[str, Any]:
    merged = dict(base)
    for name, value in over.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[name] = _merged(before, value)
        elif isinstance(before, list) and isinstance(value, list) and name in _ITEM_KEYS:
            merged[name] = _merged_items(name, before, value)
        else:
            merged[name] = value
    return merged


def _merged_items(name: str, base: list[Any], over: list[Any]) -> list[Any]:
    key = _ITEM_KEYS[name]
    items = {item.get(key): item for item in base}
    for item in over:
        before = items.get(item.get(key))
        items[item.get(key)] = _merged(before, item) if before is not None and name in _MERGED_ITEMS else item
    return list(items.values())
