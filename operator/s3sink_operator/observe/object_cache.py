"""All sinks and their children, in memory: from the watches, and from the answers to our own writes.

Documents are kept as JSON text without fields that nobody reads. As Python objects they take ten times the memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from s3sink_api.group import KIND
from s3sink_api.labels import SINK_LABEL
from s3sink_operator.observe.api_client import ListedObject
from s3sink_operator.observe.parse_objects import parse_child, parse_pod, parse_sink
from s3sink_operator.values.objects import Child, Document, Pod, SinkKey, SinkResource

SINK, POD = KIND, "Pod"
_REMEMBERED_DELETIONS = 1000
_UNREAD = ("managedFields", "selfLink")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ObjectKey(NamedTuple):
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class _Entry:
    version: int
    uid: str
    content: bytes | Pod


@dataclass(frozen=True)
class CachedSink:
    """One sink with everything that belongs to it."""

    resource: SinkResource
    children: tuple[Child, ...]
    pods: tuple[Pod, ...]


@dataclass
class ObjectCache:
    """Safe to use from several threads. Of two versions of an object the one with the higher resourceVersion counts."""

    _entries: dict[SinkKey, dict[ObjectKey, _Entry]] = field(default_factory=dict)
    _sinks: dict[ObjectKey, SinkKey] = field(default_factory=dict)
    """The sink of each object."""
    _deleted: dict[str, int] = field(default_factory=dict)
    """Versions of the last deletions, by uid: an older answer to a write of ours may arrive after them."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def update(self, kind: str, document: Document, sink: SinkKey | None = None) -> SinkKey | None:
        """The sink that changed; None if the object is of no sink, or not newer. `sink` if the label may be missing."""
        metadata = document["metadata"]
        key = _key(kind, metadata)
        with self._lock:
            sink = sink or _sink_of(kind, document) or self._sinks.get(key)
            if sink is None:
                return None
            known, version = self._entries.get(sink, {}).get(key), _version(metadata)
            if known is not None and known.uid == metadata["uid"] and version <= known.version:
                return None
            if version <= self._deleted.get(metadata["uid"], -1):
                return None
            content = parse_pod(document) if kind == POD else _compact(document)
            self._entries.setdefault(sink, {})[key] = _Entry(version, metadata["uid"], content)
            self._sinks[key] = sink
            return sink

    def delete(self, kind: str, document: Document) -> SinkKey | None:
        """The sink that changed. An object that was created again since then stays."""
        metadata = document["metadata"]
        key = _key(kind, metadata)
        with self._lock:
            self._deleted[metadata["uid"]] = _version(metadata)
            if len(self._deleted) > _REMEMBERED_DELETIONS:
                del self._deleted[next(iter(self._deleted))]
            known = self._find(key)
            if known is None or known.uid != metadata["uid"]:
                return None
            return self._remove(key)

    def forget(self, kind: str, sink: SinkKey, name: str) -> None:
        """For an object that a request did not find."""
        with self._lock:
            self._remove(ObjectKey(kind, sink.namespace, name))

    def keep_only(self, kind: str, listed: Iterable[ListedObject], version: int) -> list[SinkKey]:
        """Removes what a list lacks, unless it is newer than the list. The sinks that changed."""
        there = set(listed)
        with self._lock:
            gone = [
                key
                for key in self._sinks
                if key.kind == kind
                and (known := self._find(key)) is not None
                and known.version <= version
                and ListedObject(key.namespace, key.name, known.uid) not in there
            ]
            return [sink for key in gone if (sink := self._remove(key)) is not None]

    def read(self, sink: SinkKey) -> CachedSink | None:
        with self._lock:
            entries = dict(self._entries.get(sink, {}))
        resource = entries.pop(ObjectKey(SINK, sink.namespace, sink.name), None)
        if resource is None or isinstance(resource.content, Pod):
            return None
        children, pods = [], []
        for key, entry in entries.items():
            if isinstance(entry.content, Pod):
                pods.append(entry.content)
            else:
                children.append(parse_child(key.kind, json.loads(entry.content)))
        return CachedSink(parse_sink(json.loads(resource.content)), tuple(children), tuple(pods))

    def pods(self, sink: SinkKey) -> tuple[Pod, ...]:
        with self._lock:
            entries = self._entries.get(sink, {})
            return tuple(entry.content for entry in entries.values() if isinstance(entry.content, Pod))

    def contains(self, kind: str, namespace: str, name: str) -> bool:
        with self._lock:
            return ObjectKey(kind, namespace, name) in self._sinks

    def sinks(self) -> list[SinkKey]:
        with self._lock:
            return sorted(sink for key, sink in self._sinks.items() if key.kind == SINK)

    def statuses(self) -> Iterator[tuple[SinkKey, Mapping[str, Any]]]:
        for sink in self.sinks():
            with self._lock:
                known = self._find(ObjectKey(SINK, sink.namespace, sink.name))
            if known is not None and isinstance(known.content, bytes):
                yield sink, json.loads(known.content).get("status") or {}

    def _find(self, key: ObjectKey) -> _Entry | None:
        sink = self._sinks.get(key)
        return None if sink is None else self._entries[sink].get(key)

    def _remove(self, key: ObjectKey) -> SinkKey | None:
        sink = self._sinks.pop(key, None)
        if sink is not None:
            del self._entries[sink][key]
            if not self._entries[sink]:
                del self._entries[sink]
        return sink


def _key(kind: str, metadata: Document) -> ObjectKey:
    return ObjectKey(kind, metadata["namespace"], metadata["name"])


def _sink_of(kind: str, document: Document) -> SinkKey | None:
    metadata = document["metadata"]
    name = metadata["name"] if kind == SINK else (metadata.get("labels") or {}).get(SINK_LABEL)
    return SinkKey(metadata["namespace"], name) if name else None


def _version(metadata: Document) -> int:
    """Kubernetes guarantees since 1.35 that it is a number that rises; it always was one before."""
    return int(metadata["resourceVersion"])


def _compact(document: Document) -> bytes:
    metadata = {k: v for k, v in document["metadata"].items() if k not in _UNREAD}
    if _LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != _LAST_APPLIED}
    return json.dumps({**document, "metadata": metadata}, separators=(",", ":")).encode()
