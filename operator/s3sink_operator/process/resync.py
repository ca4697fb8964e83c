"""Compares the object cache with the API server: a watch that was interrupted does not show what was deleted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from s3sink_operator.logs import log
from s3sink_operator.observe.api_client import ApiClient, ApiError, ListedObject
from s3sink_operator.observe.object_cache import SINK, ObjectCache
from s3sink_operator.process.threads import Threads
from s3sink_operator.process.watches import CHILD_SELECTOR, CHILDREN
from s3sink_operator.settings import Settings
from s3sink_operator.values.objects import SinkKey

AFTER_RELIST = 2.0
"""Seconds from the first watch that lists again to the resync: most often all of them do."""


@dataclass
class Resync:
    api: ApiClient
    cache: ObjectCache
    settings: Settings
    threads: Threads
    relisted: asyncio.Event
    changed: Callable[[SinkKey], None]

    async def run(self) -> None:
        """From time to time, and soon after a watch has listed all objects again."""
        self.relisted.clear()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.relisted.wait(), self.settings.resync_every)
                await asyncio.sleep(AFTER_RELIST)
            self.relisted.clear()
            for kind in (SINK, *CHILDREN):
                try:
                    for key in await self.threads.run(self._remove_deleted, kind):
                        self.changed(key)
                except ApiError as error:
                    fields = {"kind": kind, "error": str(error)}
                    log.warning("resync failed; the next one tries again", extra={"fields": fields})

    def _remove_deleted(self, kind: str) -> list[SinkKey]:
        selector = "" if kind == SINK else CHILD_SELECTOR
        listed: list[ListedObject] = []
        versions = []
        for namespace in self.settings.namespaces or ("",):
            found, version = self.api.list_names(kind, namespace, selector)
            listed += found
            versions.append(version)
        return self.cache.keep_only(kind, listed, min(versions))
