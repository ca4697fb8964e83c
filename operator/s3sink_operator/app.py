"""The operator as a process: kopf watches, its handlers fill the store and the queue, workers look at sinks.

No timers, daemons or delete handlers of kopf's: each would put a finalizer on the resource, and a finalizer
outlives the operator.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import aiohttp
import kopf
from prometheus_client import CollectorRegistry

from s3sink_operator.api import GROUPS, Api, ApiError
from s3sink_operator.health import Pulse, Watched
from s3sink_operator.logs import log
from s3sink_operator.memory import give_back
from s3sink_operator.metrics import Metrics
from s3sink_operator.model import MANAGED_LABEL, MANAGER, Key
from s3sink_operator.poll import Poller
from s3sink_operator.queue import WorkQueue
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.settings import Settings
from s3sink_operator.store import POD, SINK, Store

CHILDREN = ("ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Deployment", "Job", "CronJob", POD)
OURS = f"{MANAGED_LABEL}={MANAGER}"
LONGEST_WAIT = 60.0
CHUNK = 100
"""Objects that are read at a time when the operator starts: as Python objects they are large."""
QUIET, QUIET_AT_LAST = 0.5, 30.0
"""Seconds without news after which all that was there at the start is known; and how long that may take."""
TIDY = 60.0
"""Seconds between two times that memory which is not needed any more is given back."""

LATE = 10
"""Seconds by which the end of a watch may be late before it is taken for lost, and begun again."""
AFTER_LISTS = 2.0
"""Seconds from the first watch that began anew to the comparison: most often all of them do."""

Handler = Callable[..., Awaitable[None]]
A = TypeVar("A")
R = TypeVar("R")


class Patience:
    """Seconds between two tries of a watch that cannot begin. It never gives up: that is for /healthz to say."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1.0, 1.0, 2.0, 3.0, 5.0), itertools.repeat(10.0))


def watches(namespaces: tuple[str, ...]) -> tuple[Watched, ...]:
    """Every watch that there must be."""
    return tuple(itertools.product(namespaces or ("",), (_plural(kind) for kind in (SINK, *CHILDREN))))


class App:
    def __init__(self, api: Api, settings: Settings, pulse: Pulse, registry: CollectorRegistry) -> None:
        self.settings = settings
        self.store = Store()
        self.metrics = Metrics(self.store.statuses, registry)
        self.pulse = pulse
        self._api = api
        self._queue = WorkQueue(self.metrics.waited.observe)
        self._poller = Poller(self.store, settings, self._queue.add, self.metrics.poll_failures.inc)
        self._reconciler = Reconciler(api, self.store, self._poller, settings, self.metrics)
        self._failures: dict[Key, int] = {}
        self._news = 0.0
        self._logins: list[float] = []
        self._listed = asyncio.Event()
        self._threads = ThreadPoolExecutor(settings.workers + 1, "look")
        self._running: set[Future[Any]] = set()
        self._task: asyncio.Task[None] | None = None
        self.over = asyncio.Event()
        """Set when the process must end. Not a flag of threads: kopf would wait for it in a thread without end."""
        self.broken = False
        """Whether that is because it cannot go on, and must be started again."""

    def registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._stop)
        kopf.on.login(registry=registry)(self._login)
        for kind in (SINK, *CHILDREN):
            group, version, plural = _resource(kind)
            kopf.on.event(group, version, plural, id=plural, registry=registry)(self._handler(kind))
        return registry

    def kopf_settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.watching.server_timeout = self.settings.watch_timeout
        settings.watching.client_timeout = self.settings.watch_timeout + LATE
        settings.watching.connect_timeout = 10
        settings.watching.chunk_size = CHUNK
        settings.networking.request_timeout = 60
        settings.networking.error_backoffs = Patience()
        # Kinds and namespaces are known: no right to list definitions or namespaces is needed.
        settings.scanning.disabled = True
        settings.posting.enabled = False
        for kind in CHILDREN:
            settings.watching.label_selectors[_plural(kind)] = OURS
        return settings

    async def _login(self, **kwargs: Any) -> kopf.AiohttpSession | None:
        """kopf's own credentials, in a session whose answers are the watches' pulse."""
        await self._no_faster()
        info = kopf.login_via_client(**kwargs)
        if not isinstance(info, kopf.ConnectionInfo):
            return None
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=info.as_http_headers(),
            trace_configs=[self.pulse.trace(self._listed.set)],
        )
        return kopf.AiohttpSession(
            server=info.server, default_namespace=info.default_namespace, aiohttp_session=session
        )

    async def _no_faster(self) -> None:
        """A server that refuses what it gave us itself is asked less and less often."""
        now = asyncio.get_running_loop().time()
        self._logins = [*(at for at in self._logins if now - at < LONGEST_WAIT), now]
        if (times := len(self._logins)) > 1:
            await asyncio.sleep(min(LONGEST_WAIT / 2, 2.0 ** (times - 3)))

    async def _start(self, **_: Any) -> None:
        self.pulse.begin()
        self._task = asyncio.create_task(self._run(), name="run")
        self._task.add_done_callback(self._ended)
        log.info("started", extra={"fields": {"namespaces": self.settings.namespaces or "all"}})

    async def _stop(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.over.set()
        log.info("stopped")

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("broken", exc_info=error)
            self.broken = True
            self.over.set()

    def _handler(self, kind: str) -> Handler:
        async def told(event: kopf.RawEvent, **_: Any) -> None:
            self._news = asyncio.get_running_loop().time()
            take = self.store.drop if event["type"] == "DELETED" else self.store.put
            if key := take(kind, event["object"]):
                if kind == SINK and event["type"] == "DELETED":
                    self._queue.forget(key)
                if kind == POD:
                    self._poller.saw_pods(key)
                self._queue.add(key)

        return told

    async def _run(self) -> None:
        await self._settle()
        log.info("watching", extra={"fields": {"sinks": len(self.store.sinks())}})
        workers = [self._work() for _ in range(self.settings.workers)]
        async with asyncio.TaskGroup() as tasks:
            for job in (*workers, self._poller.run(), self._resync(), self._tidy()):
                tasks.create_task(job)

    async def _settle(self) -> None:
        """Until everything that is there was heard of: a sink without its children would look like a new one."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self.pulse.ready or loop.time() - self._news < QUIET:
            if self.pulse.ready and loop.time() - began > QUIET_AT_LAST:
                return
            await asyncio.sleep(0.05)

    async def _work(self) -> None:
        await self._poller.asked.wait()
        while True:
            key = await self._queue.get()
            try:
                again = await self._in_thread(self._reconciler.reconcile, key)
                self._failures.pop(key, None)
                if again is not None:
                    self._queue.add_later(key, again)
            except Exception as error:
                self._failed(key, error)
            finally:
                self._queue.done(key)

    async def _in_thread(self, call: Callable[[A], R], argument: A) -> R:
        future = self._threads.submit(call, argument)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return await asyncio.wrap_future(future)

    def finish(self, seconds: float) -> None:
        """Waits for threads that are at it; what they leave undone the next operator does."""
        wait(list(self._running), seconds)

    def _failed(self, key: Key, error: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(LONGEST_WAIT, 2.0 ** min(count, 10)) * random.uniform(0.5, 1.0)
        fields = {"sink": str(key), "error": f"{type(error).__name__}: {error}", "retry_in": round(pause, 1)}
        log.warning("failed", exc_info=not isinstance(error, ApiError), extra={"fields": fields})
        self._queue.add_later(key, pause)

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TIDY)
            give_back()

    async def _resync(self) -> None:
        """Now and then, and soon after a watch had to read everything anew: it does not tell what went meanwhile."""
        self._listed.clear()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._listed.wait(), self.settings.resync_every)
                await asyncio.sleep(AFTER_LISTS)
            self._listed.clear()
            for kind in (SINK, *CHILDREN):
                try:
                    for key in await self._in_thread(self._gone, kind):
                        self._queue.add(key)
                except ApiError as error:
                    log.warning("not compared", extra={"fields": {"kind": kind, "error": str(error)}})

    def _gone(self, kind: str) -> list[Key]:
        selector = "" if kind == SINK else OURS
        listed, versions = [], []
        for namespace in self.settings.namespaces or ("",):
            found, version = self._api.names(kind, namespace, selector)
            listed += found
            versions.append(version)
        return self.store.keep_only(kind, listed, min(versions))


def _resource(kind: str) -> tuple[str, str, str]:
    prefix, plural = GROUPS[kind]
    *_, group, version = ("", *prefix.removeprefix("/apis/").split("/"))
    return ("" if group == "api" else group), version, plural


def _plural(kind: str) -> str:
    return GROUPS[kind][1]
