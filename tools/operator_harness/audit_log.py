"""Reads the API server's audit log: the requests of a ServiceAccount, and the rights that they used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cluster import Cluster
from tools.cluster.control_plane import AUDIT_LOG

DENIED = frozenset({401, 403})


@dataclass(frozen=True, order=True)
class Right:
    """A verb on a resource, with its subresource if it has one; `group` is empty for the core one."""

    group: str
    resource: str
    verb: str


@dataclass(frozen=True)
class Asked:
    right: Right
    namespace: str
    name: str
    code: int


def asked(cluster: Cluster, user: str) -> list[Asked]:
    """Every request of this user for an object, oldest first."""
    log = cluster.kubeconfig.parent / "log" / AUDIT_LOG
    return [entry for event in _events(log) if event["user"]["username"] == user for entry in _read(event)]


def used(requests: Iterable[Asked]) -> set[Right]:
    """The rights that these requests used, also if the object did not exist."""
    return {right for request in requests if request.code not in DENIED for right in _took(request)}


def granted(rules: Iterable[Mapping[str, Any]]) -> set[Right]:
    """The rights in the rules of a Role or ClusterRole."""
    return {
        Right(group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _events(log: Path) -> Iterator[dict[str, Any]]:
    # The last line may be incomplete.
    whole = log.read_text().rpartition("\n")[0]
    return (json.loads(line) for line in whole.splitlines())


def _read(event: Mapping[str, Any]) -> Iterator[Asked]:
    about = event.get("objectRef")
    if about is None or "resource" not in about:
        return
    resource = "/".join(part for part in (about["resource"], about.get("subresource", "")) if part)
    right = Right(about.get("apiGroup", ""), resource, event["verb"])
    code = event.get("responseStatus", {}).get("code", 0)
    yield Asked(right, about.get("namespace", ""), about.get("name", ""), code)


def _took(request: Asked) -> Iterator[Right]:
    yield request.right
    if (request.right.verb, request.code) == ("patch", 201):
        # Server-side apply created the object.
        yield Right(request.right.group, request.right.resource, "create")
