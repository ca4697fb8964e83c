"""What the watches told of every sink, and what the API server answered to our own writes: the newest of both.

Documents are kept as JSON text without what nobody reads: as Python objects a thousand sinks would take ten
times the memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3sink_operator.facts import child_from, pod_from, resource_from
from s3sink_operator.model import SINK_LABEL, Child, Document, Key, Pod, Resource

SINK, POD = "S3Sink", "Pod"
_REMEMBERED = 1000
_UNREAD = ("managedFields", "selfLink")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Place = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(frozen=True)
class _Held:
    version: int
    uid: str
    content: bytes | Pod


@dataclass(frozen=True)
class Seen:
    """One sink, with all that belongs to it."""

    resource: Resource
    children: tuple[Child, ...]
    pods: tuple[Pod, ...]


@dataclass
class Store:
    """Safe to use from several threads."""

    _held: dict[Key, dict[Place, _Held]] = field(default_factory=dict)
    _where: dict[Place, Key] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    """The last of what was deleted: an answer to a write of ours from before that may come later."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def put(self, kind: str, document: Document, key: Key | None = None) -> Key | None:
        """The sink this is news of; None if it is nobody's, or known already. `key` where the label may be missing."""
        metadata = document["metadata"]
        place = (kind, metadata["namespace"], metadata["name"])
        with self._lock:
            key = key or _owner(kind, document) or self._where.get(place)
            if key is None:
                return None
            known, version = self._held.get(key, {}).get(place), _version(metadata)
            if known is not None and known.uid == metadata["uid"] and version <= known.version:
                return None
            if version <= self._gone.get(metadata["uid"], -1):
                return None
            content = pod_from(document) if kind == POD else _compact(document)
            self._held.setdefault(key, {})[place] = _Held(version, metadata["uid"], content)
            self._where[place] = key
            return key

    def drop(self, kind: str, document: Document) -> Key | None:
        """The sink this is news of. What was made again since stays."""
        metadata = document["metadata"]
        place = (kind, metadata["namespace"], metadata["name"])
        with self._lock:
            self._gone[metadata["uid"]] = _version(metadata)
            if len(self._gone) > _REMEMBERED:
                del self._gone[next(iter(self._gone))]
            known = self._known(place)
            if known is None or known.uid != metadata["uid"]:
                return None
            return self._remove(place)

    def lose(self, kind: str, key: Key, name: str) -> None:
        """It was not there when we looked for it."""
        with self._lock:
            self._remove((kind, key.namespace, name))

    def keep_only(self, kind: str, listed: Iterable[tuple[str, str, str]], version: int) -> list[Key]:
        """Drops what a list of (namespace, name, uid) lacks and is not younger than it. The sinks this is news of."""
        there = set(listed)
        with self._lock:
            gone = [
                place
                for place in self._where
                if place[0] == kind
                and (known := self._known(place)) is not None
                and known.version <= version
                and (place[1], place[2], known.uid) not in there
            ]
            return [key for place in gone if (key := self._remove(place)) is not None]

    def see(self, key: Key) -> Seen | None:
        """None if there is no such sink."""
        with self._lock:
            held = dict(self._held.get(key, {}))
        sink = held.pop((SINK, key.namespace, key.name), None)
        if sink is None or isinstance(sink.content, Pod):
            return None
        children, pods = [], []
        for (kind, _, _), one in held.items():
            if isinstance(one.content, Pod):
                pods.append(one.content)
            else:
                children.append(child_from(kind, json.loads(one.content)))
        return Seen(resource_from(json.loads(sink.content)), tuple(children), tuple(pods))

    def pods(self, key: Key) -> tuple[Pod, ...]:
        with self._lock:
            held = self._held.get(key, {})
            return tuple(one.content for one in held.values() if isinstance(one.content, Pod))

    def holds(self, kind: str, namespace: str, name: str) -> bool:
        with self._lock:
            return (kind, namespace, name) in self._where

    def sinks(self) -> list[Key]:
        with self._lock:
            return sorted(key for (kind, _, _), key in self._where.items() if kind == SINK)

    def statuses(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        for key in self.sinks():
            with self._lock:
                known = self._known((SINK, key.namespace, key.name))
            if known is not None and isinstance(known.content, bytes):
                yield key, json.loads(known.content).get("status") or {}

    def _known(self, place: Place) -> _Held | None:
        key = self._where.get(place)
        return None if key is None else self._held[key].get(place)

    def _remove(self, place: Place) -> Key | None:
        key = self._where.pop(place, None)
        if key is not None:
            del self._held[key][place]
            if not self._held[key]:
                del self._held[key]
        return key


def _owner(kind: str, document: Document) -> Key | None:
    metadata = document["metadata"]
    name = metadata["name"] if kind == SINK else (metadata.get("labels") or {}).get(SINK_LABEL)
    return Key(metadata["namespace"], name) if name else None


def _version(metadata: Document) -> int:
    """Comparable, by Kubernetes' own word since 1.35; and before it always was a number that rises."""
    return int(metadata["resourceVersion"])


def _compact(document: Document) -> bytes:
    metadata = {k: v for k, v in document["metadata"].items() if k not in _UNREAD}
    if _LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != _LAST_APPLIED}
    return json.dumps({**document, "metadata": metadata}, separators=(",", ":")).encode()
