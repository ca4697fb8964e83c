"""A registry that knows schemas by GUIDs: a real Apicurio, and in front of it the one thing that it lacks.

Every version has a GUID beside its id, and `GET /schemas/guids/<guid>` is answered. All else is Apicurio's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID

from tools.parts.registry import SchemaRegistry

PATH = "/schemas/guids/"


def guid_of(number: int) -> UUID:
    return UUID(int=2**127 + number)


@contextmanager
def with_guids(registry: SchemaRegistry, asked: list[str]) -> Iterator[str]:
    """The URL. `asked` gets the path of every request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            number = UUID(self.path.removeprefix(PATH)).int - 2**127 if self.path.startswith(PATH) else None
            self._answer(*self._forwarded(self.path if number is None else f"/schemas/ids/{max(number, 0)}"))

        def do_POST(self) -> None:
            self._answer(*self._forwarded(self.path, self.rfile.read(int(self.headers["Content-Length"]))))

        def _forwarded(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
            request = Request(registry.url + path, body, {"Content-Type": "application/json"}, method=self.command)
            try:
                with urlopen(request, timeout=30) as response:
                    return response.status, response.read()
            except HTTPError as error:
                return error.code, error.read()

        def _answer(self, status: int, body: bytes) -> None:
            # A path that Apicurio does not have is answered without any JSON.
            document: Any = json.loads(body) if status == HTTPStatus.OK else None
            if isinstance(document, dict) and "id" in document:
                body = json.dumps(document | {"guid": str(guid_of(document["id"]))}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
