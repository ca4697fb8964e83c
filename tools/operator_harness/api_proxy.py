"""A proxy between the operator and the API server, for faults: answers that fail, come late or never.

    with ApiProxy(cluster.kubeconfig) as proxy:
        Operator(cluster, folder, server=proxy.server)
        proxy.faults.on(request_is("PATCH", "/configmaps/"), Status(500), times=3)
        proxy.freeze()            # every connection stays open, and no more data arrives

The operator sends plain HTTP, with its token, to the fault proxy; behind that a bridge adds TLS.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import yaml

from tools.parts.processes import LOOPBACK
from tools.parts.proxy import FaultProxy

_CHUNK = 64 * 1024


class ApiProxy:
    def __init__(self, kubeconfig: Path) -> None:
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        address = urlsplit(cluster["server"])
        self._bridge = _Bridge(str(address.hostname), int(address.port or 443), authority)
        self.faults = FaultProxy(LOOPBACK, self._bridge.port)

    @property
    def server(self) -> str:
        return self.faults.endpoint

    def freeze(self) -> None:
        """No more data pass, and connections stay open: like a lost route, or a firewall that lost its state."""
        self._bridge.move(False)

    def thaw(self) -> None:
        self._bridge.move(True)

    def __enter__(self) -> Self:
        self.faults.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thaw()
        self.faults.close()
        self._bridge.close()


class _Bridge:
    """Accepts plain connections and forwards them over TLS."""

    def __init__(self, host: str, port: int, authority: str) -> None:
        self._target = (host, port)
        self._tls = ssl.create_default_context(cadata=authority)
        self._moving, self._over = asyncio.Event(), asyncio.Event()
        self._moving.set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="bridge", daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connect, LOOPBACK, 0)
        self.port = int(server.sockets[0].getsockname()[1])
        self._ready.set()
        async with server:
            await self._over.wait()

    def move(self, on: bool) -> None:
        self._loop.call_soon_threadsafe(self._moving.set if on else self._moving.clear)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # If the connection to the server fails, close ours: the fault proxy then reports it to the operator.
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):
            await self._moving.wait()
            far_reader, far_writer = await asyncio.open_connection(
                *self._target, ssl=self._tls, server_hostname=self._target[0]
            )
            with contextlib.closing(far_writer):
                ways = [self._pass(reader, far_writer), self._pass(far_reader, writer)]
                tasks = [asyncio.ensure_future(way) for way in ways]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(_CHUNK):
                await self._moving.wait()
                writer.write(piece)
                await writer.drain()
