"""Whether an object is still what we asked for, and what it would mean to put it right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubernetes.utils import parse_quantity

from s3sink_operator.model import APPLIED, SPEC_HASH, Child, Document

_AMOUNTS = frozenset({"cpu", "memory", "ephemeral-storage", "sizeLimit"})
# Absent, the server takes these for true; anything else that is empty it leaves out.
_TRUE_UNLESS_SET = frozenset({"automountServiceAccountToken", "enableServiceLinks", "allowPrivilegeEscalation"})


def up_to_date(desired: Document, found: Child) -> bool:
    """Whether the object is what we asked for. What others added to it is theirs."""
    return _as_applied(desired, found) and _contains(found.document, desired)


def same_pods(desired: Document, found: Child) -> bool:
    """Whether what differs, if anything does, leaves the pods alone."""
    return _as_applied(desired, found) and _contains(pod_template(found.document), pod_template(desired))


def rolled_out(deployment: Child) -> bool:
    """Whether the pod that runs is of the newest template, and ready."""
    status, generation = deployment.document.get("status", {}), deployment.document["metadata"].get("generation", 0)
    replicas = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    return status.get("observedGeneration", -1) >= generation and replicas == [1, 1, 1]


def pod_template(workload: Document) -> Document:
    spec: Document = workload["spec"]
    template: Document = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    return template


def spec_hash(workload: Document) -> str:
    annotations = pod_template(workload)["metadata"].get("annotations") or {}
    return str(annotations.get(SPEC_HASH, ""))


def _as_applied(desired: Document, found: Child) -> bool:
    return bool(found.annotations.get(APPLIED) == desired["metadata"]["annotations"][APPLIED])


def _contains(found: Any, asked: Any, key: str = "") -> bool:
    if isinstance(asked, Mapping):
        return isinstance(found, Mapping) and all(_has(found, name, value) for name, value in asked.items())
    if isinstance(asked, list):
        return isinstance(found, list) and _contains_items(found, asked)
    return bool(found == asked) or (key in _AMOUNTS and _same_amount(found, asked))


def _has(found: Mapping[str, Any], name: str, asked: Any) -> bool:
    if name not in found:
        return not asked and name not in _TRUE_UNLESS_SET
    return _contains(found[name], asked, name)


def _contains_items(found: list[Any], asked: list[Any]) -> bool:
    # Two volume mounts may share a name, never a path.
    key = next((k for k in ("mountPath", "name") if asked and _all_have([*asked, *found], k)), None)
    if key is None:
        return len(found) == len(asked) and all(map(_contains, found, asked))
    return all(any(_contains(item, one) for item in found if item[key] == one[key]) for one in asked)


def _all_have(items: Iterable[Any], key: str) -> bool:
    return all(isinstance(item, Mapping) and key in item for item in items)


def _same_amount(found: Any, asked: Any) -> bool:
    """The server writes quantities in a way of its own."""
    try:
        return bool(parse_quantity(found) == parse_quantity(asked))  # type: ignore[no-untyped-call]
    except ValueError:
        return False
