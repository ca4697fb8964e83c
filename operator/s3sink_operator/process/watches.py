"""kopf's watches of the sinks and their children.

No timers, daemons or delete handlers of kopf: each of them adds a finalizer to the resource, and a finalizer outlives
the operator.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import kopf

from s3sink_api.labels import MANAGED_LABEL, MANAGER
from s3sink_operator.observe.api_client import PATHS
from s3sink_operator.observe.object_cache import POD, SINK
from s3sink_operator.process.watch_liveness import WatchKey, WatchLiveness
from s3sink_operator.settings import Settings

CHILDREN = ("ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Deployment", "Job", "CronJob", POD)
CHILD_SELECTOR = f"{MANAGED_LABEL}={MANAGER}"
LIST_PAGE = 100
"""Objects that are listed at a time: as Python objects they are large."""
END_MARGIN = 10
"""Seconds by which the end of a watch may be late before the connection is given up."""
LOGIN_WINDOW, LONGEST_LOGIN_WAIT = 60.0, 30.0
SETTLED_AFTER, LONGEST_SETTLING = 0.5, 30.0
"""Seconds without events after which the first lists are complete, and how long that may take at most."""

Hook = Callable[..., Awaitable[None]]
Handler = Callable[..., Awaitable[None]]
Changed = Callable[[str, kopf.RawEvent], None]
"""Gets the kind and the event."""


class WatchBackoff:
    """Seconds between two attempts to start a watch. Has no end: /healthz decides when to give up."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1.0, 1.0, 2.0, 3.0, 5.0), itertools.repeat(10.0))


def watch_keys(namespaces: tuple[str, ...]) -> tuple[WatchKey, ...]:
    """Every watch that there must be."""
    plurals = [_plural(kind) for kind in (SINK, *CHILDREN)]
    return tuple(WatchKey(namespace, plural) for namespace in namespaces or ("",) for plural in plurals)


class Watches:
    def __init__(self, settings: Settings, liveness: WatchLiveness, changed: Changed) -> None:
        self._settings = settings
        self._liveness = liveness
        self._changed = changed
        self._last_event = 0.0
        self._logins: list[float] = []
        self.relisted = asyncio.Event()
        """Set when a watch had to list all objects again."""

    def kopf_registry(self, start: Hook, stop: Hook) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.startup(registry=registry)(start)
        kopf.on.cleanup(registry=registry)(stop)
        kopf.on.login(registry=registry)(self._login)
        for kind in (SINK, *CHILDREN):
            group, version, plural = _group_version_plural(kind)
            kopf.on.event(group, version, plural, id=plural, registry=registry)(self._handler(kind))
        return registry

    def kopf_settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.watching.server_timeout = self._settings.watch_timeout
        settings.watching.client_timeout = self._settings.watch_timeout + END_MARGIN
        settings.watching.connect_timeout = 10
        settings.watching.chunk_size = LIST_PAGE
        settings.networking.request_timeout = 60
        settings.networking.error_backoffs = WatchBackoff()
        # Kinds and namespaces are known, so no right to list definitions or namespaces is needed.
        settings.scanning.disabled = True
        settings.posting.enabled = False
        for kind in CHILDREN:
            settings.watching.label_selectors[_plural(kind)] = CHILD_SELECTOR
        return settings

    async def settled(self) -> None:
        """Waits until every watch has listed its objects: a sink without its children would look like a new one."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self._liveness.ready or loop.time() - self._last_event < SETTLED_AFTER:
            if self._liveness.ready and loop.time() - began > LONGEST_SETTLING:
                return
            await asyncio.sleep(0.05)

    def _handler(self, kind: str) -> Handler:
        async def handle(event: kopf.RawEvent, **_: Any) -> None:
            self._last_event = asyncio.get_running_loop().time()
            self._changed(kind, event)

        return handle

    async def _login(self, **kwargs: Any) -> kopf.AiohttpSession | None:
        """kopf's own credentials, in a session that records the activity of the watches."""
        await self._wait_before_login()
        info = kopf.login_via_client(**kwargs)
        if not isinstance(info, kopf.ConnectionInfo):
            return None
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=info.as_http_headers(),
            trace_configs=[self._liveness.trace_config(self.relisted.set)],
        )
        return kopf.AiohttpSession(
            server=info.server, default_namespace=info.default_namespace, aiohttp_session=session
        )

    async def _wait_before_login(self) -> None:
        """Backs off while the server refuses the credentials."""
        now = asyncio.get_running_loop().time()
        self._logins = [*(at for at in self._logins if now - at < LOGIN_WINDOW), now]
        if (attempts := len(self._logins)) > 1:
            await asyncio.sleep(min(LONGEST_LOGIN_WAIT, 2.0 ** (attempts - 3)))


def _group_version_plural(kind: str) -> tuple[str, str, str]:
    path, plural = PATHS[kind]
    *_, group, version = ("", *path.removeprefix("/apis/").split("/"))
    return ("" if group == "api" else group), version, plural


def _plural(kind: str) -> str:
    return PATHS[kind][1]
