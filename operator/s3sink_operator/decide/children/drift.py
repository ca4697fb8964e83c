"""Whether an object is still what the operator applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubernetes.utils import parse_quantity

from s3sink_api.labels import APPLIED
from s3sink_operator.decide.children.workloads import pod_template
from s3sink_operator.values.objects import Child, Document

_QUANTITIES = frozenset({"cpu", "memory", "ephemeral-storage", "sizeLimit"})
# Absent means true for these. Anything else that is empty the API server leaves out.
_TRUE_IF_ABSENT = frozenset({"automountServiceAccountToken", "enableServiceLinks", "allowPrivilegeEscalation"})


def up_to_date(desired: Document, found: Child) -> bool:
    """Whether the object holds all that we apply. Fields that others added do not matter."""
    return _as_applied(desired, found) and _contains(found.document, desired)


def same_pods(desired: Document, found: Child) -> bool:
    """Whether applying would leave the pods alone."""
    return _as_applied(desired, found) and _contains(pod_template(found.document), pod_template(desired))


def _as_applied(desired: Document, found: Child) -> bool:
    return bool(found.annotations.get(APPLIED) == desired["metadata"]["annotations"][APPLIED])


def _contains(found: Any, desired: Any, key: str = "") -> bool:
    if isinstance(desired, Mapping):
        return isinstance(found, Mapping) and all(_has(found, name, value) for name, value in desired.items())
    if isinstance(desired, list):
        return isinstance(found, list) and _contains_items(found, desired)
    return bool(found == desired) or (key in _QUANTITIES and _same_quantity(found, desired))


def _has(found: Mapping[str, Any], name: str, desired: Any) -> bool:
    if name not in found:
        return not desired and name not in _TRUE_IF_ABSENT
    return _contains(found[name], desired, name)


def _contains_items(found: list[Any], desired: list[Any]) -> bool:
    # Two volume mounts may share a name, never a path.
    key = next((k for k in ("mountPath", "name") if desired and _all_have([*desired, *found], k)), None)
    if key is None:
        return len(found) == len(desired) and all(map(_contains, found, desired))
    return all(any(_contains(item, one) for item in found if item[key] == one[key]) for one in desired)


def _all_have(items: Iterable[Any], key: str) -> bool:
    return all(isinstance(item, Mapping) and key in item for item in items)


def _same_quantity(found: Any, desired: Any) -> bool:
    """The API server rewrites quantities: 1024Mi becomes 1Gi."""
    try:
        return bool(parse_quantity(found) == parse_quantity(desired))  # type: ignore[no-untyped-call]
    except ValueError:
        return False
