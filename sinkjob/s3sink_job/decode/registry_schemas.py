"""Schemas of a registry, each requested once by a process and kept, because an id never changes its schema.

The driver sends the schemas that it has with every task, and a task reports those that it had to request. So the cold
start of many tasks is not as many requests.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

from s3sink_job.decode.writer_schemas import SchemaId, WriterSchema, size_of

MOST_SCHEMAS = 10_000
MOST_TEXT = 64 * 2**20
"""Characters of all schemas in the cache."""
UNKNOWN_FOR = 30.0
"""Seconds until an unknown id is requested again: it may be registered by then, or a lagging follower has it."""
MOST_REPORTED = 2**20
"""Characters of all schemas that one task reports."""

_Key = tuple[str, SchemaId]
"""A registry by its name, and a schema."""


class SchemaRequests(Protocol):
    """What is needed of a `RegistryClient`."""

    @property
    def name(self) -> str:
        """Of the registry and the login: ids of two names may mean two schemas."""
        ...

    def schema(self, schema: SchemaId) -> WriterSchema | None: ...


class SchemaCache:
    """Limited in number and in size: what was not used for the longest time goes first. Safe for threads."""

    def __init__(
        self,
        most: int = MOST_SCHEMAS,
        most_text: int = MOST_TEXT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._most_text, self._clock = most, most_text, clock
        self._lock = threading.Lock()
        self._schemas: OrderedDict[_Key, WriterSchema] = OrderedDict()
        self._text = 0
        self._unknown: OrderedDict[_Key, float] = OrderedDict()
        """Until when an id counts as unknown; the oldest first."""

    def get(self, key: _Key) -> WriterSchema | None:
        with self._lock:
            if schema := self._schemas.get(key):
                self._schemas.move_to_end(key)
            return schema

    def put(self, key: _Key, schema: WriterSchema) -> None:
        with self._lock:
            self._unknown.pop(key, None)
            self._drop(key)
            self._schemas[key] = schema
            self._text += size_of(schema)
            # The newest stays, however large it is: the task needs it now.
            while len(self._schemas) > self._most or (self._text > self._most_text and len(self._schemas) > 1):
                self._drop(next(iter(self._schemas)))

    def is_unknown(self, key: _Key) -> bool:
        with self._lock:
            return self._unknown.get(key, 0.0) > self._clock()

    def put_unknown(self, key: _Key) -> None:
        with self._lock:
            self._unknown.pop(key, None)
            self._unknown[key] = self._clock() + UNKNOWN_FOR
            if len(self._unknown) > self._most:
                self._unknown.popitem(last=False)

    def _drop(self, key: _Key) -> None:
        if schema := self._schemas.pop(key, None):
            self._text -= size_of(schema)


_OF_PROCESS = SchemaCache()


class RegistrySchemas:
    """The `SchemaLookup` of one task. `known` are the schemas that the driver handed out."""

    inline: WriterSchema | None = None

    def __init__(
        self,
        client: SchemaRequests,
        known: Mapping[SchemaId, WriterSchema] | None = None,
        cache: SchemaCache = _OF_PROCESS,
    ) -> None:
        self._client = client
        self._known = known or {}
        self._cache = cache
        self.found: dict[SchemaId, WriterSchema] = {}
        """Schemas that were requested here, for the driver to hand out next time."""
        self._left_to_report = MOST_REPORTED

    def find(self, schema: SchemaId) -> WriterSchema | None:
        return self._known.get(schema) or self._looked_up(schema)

    def _looked_up(self, schema: SchemaId) -> WriterSchema | None:
        key = (self._client.name, schema)
        if found := self._cache.get(key):
            return found
        if self._cache.is_unknown(key):
            return None
        found = self._client.schema(schema)
        if found is None:
            self._cache.put_unknown(key)
        else:
            self._cache.put(key, found)
            self._report(schema, found)
        return found

    def _report(self, schema: SchemaId, found: WriterSchema) -> None:
        if size_of(found) <= self._left_to_report:
            self.found[schema] = found
            self._left_to_report -= size_of(found)
