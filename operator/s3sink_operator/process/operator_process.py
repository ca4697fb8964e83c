"""The parts of the operator put together: watches fill the cache and the queue, workers reconcile sinks."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import kopf
from prometheus_client import CollectorRegistry

from s3sink_operator.logs import log
from s3sink_operator.metrics import Metrics
from s3sink_operator.observe.api_client import ApiClient, ApiError
from s3sink_operator.observe.driver_polling import DriverPoller
from s3sink_operator.observe.object_cache import POD, SINK, ObjectCache
from s3sink_operator.process import malloc
from s3sink_operator.process.resync import Resync
from s3sink_operator.process.threads import Threads
from s3sink_operator.process.watch_liveness import WatchLiveness
from s3sink_operator.process.watches import Watches
from s3sink_operator.process.work_queue import WorkQueue
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.settings import Settings
from s3sink_operator.values.objects import SinkKey

LONGEST_RETRY = 60.0
"""Seconds until a failed reconciliation is retried, at the latest."""
TRIM_EVERY = 60.0
"""Seconds between two times that freed memory is returned to the system."""


class OperatorProcess:
    def __init__(
        self, api: ApiClient, settings: Settings, liveness: WatchLiveness, registry: CollectorRegistry
    ) -> None:
        self._settings = settings
        self._liveness = liveness
        self._cache = ObjectCache()
        metrics = Metrics(self._cache.statuses, registry)
        self._queue = WorkQueue(metrics.waited.observe)
        self._poller = DriverPoller(self._cache, settings, self._queue.add, metrics.poll_failures.inc)
        self._reconciler = Reconciler(api, self._cache, self._poller, settings, metrics)
        self._watches = Watches(settings, liveness, self._object_changed)
        self._threads = Threads(settings.workers + 1)
        relisted = self._watches.relisted
        self._resync = Resync(api, self._cache, settings, self._threads, relisted, self._queue.add)
        self._failures: dict[SinkKey, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        """Set when the process must end. Not a threading.Event: kopf would wait for that in a thread for ever."""
        self.failed = False
        """Whether the process ends because of an error, and must be restarted."""

    def run(self) -> None:
        """Until a signal, or an error of the operator."""
        kopf.run(
            registry=self._watches.kopf_registry(self._start, self._stop),
            settings=self._watches.kopf_settings(),
            standalone=True,
            clusterwide=not self._settings.namespaces,
            namespaces=self._settings.namespaces,
            stop_flag=self._over,
        )

    def finish(self, seconds: float) -> None:
        self._threads.finish(seconds)

    async def _start(self, **_: Any) -> None:
        self._liveness.reset()
        self._task = asyncio.create_task(self._run(), name="run")
        self._task.add_done_callback(self._ended)
        log.info("operator started", extra={"fields": {"namespaces": self._settings.namespaces or "all"}})

    async def _stop(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._over.set()
        log.info("operator stopped")

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("operator error; the process exits and must be restarted", exc_info=error)
            self.failed = True
            self._over.set()

    def _object_changed(self, kind: str, event: kopf.RawEvent) -> None:
        deleted = event["type"] == "DELETED"
        change = self._cache.delete if deleted else self._cache.update
        if key := change(kind, event["object"]):
            if kind == SINK and deleted:
                self._queue.cancel_timer(key)
            if kind == POD:
                self._poller.pods_changed(key)
            self._queue.add(key)

    async def _run(self) -> None:
        await self._watches.settled()
        log.info("all watches started", extra={"fields": {"sinks": len(self._cache.sinks())}})
        workers = [self._work() for _ in range(self._settings.workers)]
        async with asyncio.TaskGroup() as tasks:
            for job in (*workers, self._poller.run(), self._resync.run(), self._trim_memory()):
                tasks.create_task(job)

    async def _work(self) -> None:
        await self._poller.all_polled.wait()
        while True:
            key = await self._queue.get()
            try:
                again = await self._threads.run(self._reconciler.reconcile, key)
                self._failures.pop(key, None)
                if again is not None:
                    self._queue.add_later(key, again)
            except Exception as error:
                self._retry(key, error)
            finally:
                self._queue.done(key)

    def _retry(self, key: SinkKey, error: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(LONGEST_RETRY, 2.0 ** min(count, 10)) * random.uniform(0.5, 1.0)
        fields = {"sink": str(key), "error": f"{type(error).__name__}: {error}", "retry_in": round(pause, 1)}
        log.warning(
            "reconciliation failed; retrying", exc_info=not isinstance(error, ApiError), extra={"fields": fields}
        )
        self._queue.add_later(key, pause)

    async def _trim_memory(self) -> None:
        while True:
            await asyncio.sleep(TRIM_EVERY)
            malloc.trim()
