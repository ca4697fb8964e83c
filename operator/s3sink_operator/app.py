"""The operator as a process: kopf watches, handlers only fill the queue, workers look at sinks.

No timers, daemons or delete handlers of kopf's: each would put a finalizer on the resource, and a finalizer
outlives the operator.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import aiohttp
import kopf

from s3sink_operator.api import Api, ApiError
from s3sink_operator.crd.definition import GROUP, PLURAL, VERSION
from s3sink_operator.health import Pulse
from s3sink_operator.logs import log
from s3sink_operator.metrics import Metrics
from s3sink_operator.model import MANAGED_LABEL, MANAGER, SINK_LABEL, Key
from s3sink_operator.observe import Observer
from s3sink_operator.queue import WorkQueue
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.settings import Settings

WATCHED = (("", "v1", "pods"), ("apps", "v1", "deployments"), ("batch", "v1", "jobs"))
LONGEST_WAIT = 60.0


class App:
    def __init__(self, api: Api, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.pulse = Pulse((PLURAL, *(plural for _, _, plural in WATCHED)), settings.watch_dead_after)
        observer = Observer(api, settings, self.metrics.poll_failures.inc)
        self._reconciler = Reconciler(api, observer, settings, self.metrics)
        self._observer = observer
        self._queue = WorkQueue()
        self._sinks: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._stop)
        kopf.on.login(registry=registry)(self._login)
        kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)(self._on_sink)
        for group, version, plural in WATCHED:
            kopf.on.event(group, version, plural, labels={MANAGED_LABEL: MANAGER}, registry=registry)(self._on_child)
        return registry

    def kopf_settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.watching.server_timeout = self.settings.watch_timeout
        settings.watching.client_timeout = self.settings.watch_timeout + 30
        settings.watching.connect_timeout = 10
        settings.networking.request_timeout = 60
        # Kinds and namespaces are known: no right to list definitions or namespaces is needed.
        settings.scanning.disabled = True
        settings.posting.enabled = False
        for _, _, plural in WATCHED:
            settings.watching.label_selectors[plural] = f"{MANAGED_LABEL}={MANAGER}"
        return settings

    async def _login(self, **kwargs: Any) -> kopf.AiohttpSession | None:
        """kopf's own credentials, in a session whose answers are the watches' pulse."""
        info = kopf.login_via_client(**kwargs)
        if not isinstance(info, kopf.ConnectionInfo):
            return None
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=info.as_http_headers(),
            trace_configs=[self.pulse.trace()],
        )
        return kopf.AiohttpSession(
            server=info.server, default_namespace=info.default_namespace, aiohttp_session=session
        )

    async def _start(self, **_: Any) -> None:
        names = [f"worker-{number}" for number in range(self.settings.workers)]
        self._tasks = [asyncio.create_task(self._work(), name=name) for name in names]
        self._tasks.append(asyncio.create_task(self._poll(), name="poll"))
        log.info("started", extra={"fields": {"namespaces": self.settings.namespaces or "all"}})

    async def _stop(self, **_: Any) -> None:
        """Threads that are at it finish; what they leave undone the next operator does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        log.info("stopped")

    async def _on_sink(self, event: kopf.RawEvent, namespace: str | None, name: str, **_: Any) -> None:
        key = Key(str(namespace), name)
        if event["type"] == "DELETED":
            self._sinks.discard(key)
            self._queue.forget(key)
        else:
            self._sinks.add(key)
        self._queue.add(key, afresh=True)

    async def _on_child(self, labels: Mapping[str, str], namespace: str | None, **_: Any) -> None:
        if name := labels.get(SINK_LABEL):
            self._queue.add(Key(str(namespace), name), afresh=True)

    async def _poll(self) -> None:
        """Every sink once in each interval, one after the other."""
        while True:
            keys = sorted(self._sinks)
            for key in keys:
                self._queue.add(key, afresh=False)
                await asyncio.sleep(self.settings.poll_every / len(keys))
            if not keys:
                await asyncio.sleep(self.settings.poll_every)

    async def _work(self) -> None:
        while True:
            key, afresh = await self._queue.get()
            try:
                again = await asyncio.to_thread(self._reconciler.reconcile, key, afresh=afresh)
                self._failures.pop(key, None)
                if again is not None:
                    self._queue.add_later(key, again)
            except Exception as error:
                self._failed(key, error)
            finally:
                self._queue.done(key)

    def _failed(self, key: Key, error: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(LONGEST_WAIT, 2.0 ** min(count, 10)) * random.uniform(0.5, 1.0)
        fields = {"sink": str(key), "error": f"{type(error).__name__}: {error}", "retry_in": round(wait, 1)}
        log.warning("failed", exc_info=not isinstance(error, ApiError), extra={"fields": fields})
        self._queue.add_later(key, wait)
