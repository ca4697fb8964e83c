"""The schemas of typed records that the driver gives to its tasks, so that not each of them asks the registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registries import open_client, registry_name
from s3sink_job.decode.schema_access import SchemasByRegistry
from s3sink_job.decode.settings import Decoding
from s3sink_job.decode.writer_schemas import SchemaId, WriterSchema, size_of
from s3sink_job.report import logs
from s3sink_job.task.slice_result import SliceResult

NEWEST = 10
"""Versions of a subject that are requested before the first flush of a topic."""
MOST_SUBJECTS = 50
"""That are requested before a flush. Tasks look up the schemas of others."""
PATIENCE = 5.0
"""Seconds that a flush waits for all of this."""
MOST_TEXT = 4 * 2**20
"""Characters of all schemas that travel with a task."""


class SchemaHandout:
    def __init__(self, secrets: Secrets, clock: Callable[[], float] = time.monotonic) -> None:
        self._secrets, self._clock = secrets, clock
        self._schemas: dict[str, dict[SchemaId, WriterSchema]] = {}
        self._text = 0
        self._asked: set[tuple[str, str, str]] = set()
        """Registries, topics, and `key` or `value`."""

    def for_topics(self, decodings: Mapping[str, Decoding]) -> SchemasByRegistry:
        """By topic how it is decoded. What is missing here a task finds by itself."""
        wanted = {
            (registry_name(source.registry), topic, part): source.registry
            for topic, decoding in sorted(decodings.items())
            for part, _, source in decoding.parts
            if source.registry is not None
        }
        new = {at: registry for at, registry in wanted.items() if at not in self._asked}
        self._asked |= set(new)
        deadline, silent = self._clock() + PATIENCE, set()
        for (name, topic, part), registry in islice(new.items(), MOST_SUBJECTS):
            if name in silent or self._clock() > deadline:
                continue
            try:
                client = open_client(registry, self._secrets, NO_RETRIES)
                for found in client.newest(topic, part, NEWEST):
                    self._add(name, found.ids, found.schema)
                    if self._clock() > deadline:
                        break
            except S3SinkError as error:
                # The tasks retry, and report what is wrong.
                silent.add(name)
                logs.warning("no schemas before the first flush", topic=topic, part=part, cause=str(error))
        return self._schemas

    def learn(self, results: Iterable[SliceResult]) -> None:
        """Takes over what tasks had to look up."""
        for result in results:
            for name, found in result.found_schemas.items():
                for schema_id, schema in found.items():
                    self._add(name, (schema_id,), schema)

    def _add(self, name: str, ids: tuple[SchemaId, ...], schema: WriterSchema) -> None:
        known = self._schemas.setdefault(name, {})
        if ids[0] not in known and self._text + size_of(schema) <= MOST_TEXT:
            known.update(dict.fromkeys(ids, schema))
            self._text += size_of(schema)
