"""One connection of a client: forwards its requests, and carries out the faults that they meet."""

from __future__ import annotations

import http.client
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from xml.sax.saxutils import escape

from tools.parts.proxy.faults import (
    Action,
    Call,
    ChangeAnswer,
    Delay,
    DropResponse,
    Faults,
    Late,
    Refuse,
    Request,
    Reset,
    Slow,
    Status,
    StripHeaders,
    Truncate,
)

_CHUNK = 256 * 1024
_SLOW_PIECES = 10
_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


class Handler(BaseHTTPRequestHandler):
    """Serves one client connection. Every request goes upstream on a connection of its own."""

    protocol_version = "HTTP/1.1"
    # Answers are written in small pieces; with Nagle's algorithm each would wait for an acknowledgement.
    disable_nagle_algorithm = True
    timeout = 120
    target: tuple[str, int]
    shared: Faults
    _noted = False
    _slow = 0.0
    _received: list[bytes] | None = None

    def handle_expect_100(self) -> bool:
        return True  # `_serve` decides: a refused request gets no "100 Continue"

    def log_message(self, format: str, *args: Any) -> None:
        """The request log is in `FaultProxy.requests`."""

    def _serve(self) -> None:
        target = self.requestline.split(" ")[1]
        path, _, query = target.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, path, query, headers)
        self._noted = False
        self._received = None
        actions = self.shared.take(request)
        try:
            if any(isinstance(action, Late) or (isinstance(action, Call) and action.before) for action in actions):
                self._received = list(self._body())
            self._answer(request, target, actions)
        except (OSError, http.client.HTTPException):
            self._hang_up(request)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_PATCH = _serve

    def _note(self, request: Request, status: int | None) -> None:
        """Logs before the answer is sent, so that a client with an answer finds it in the log."""
        if not self._noted:
            self._noted = True
            self.shared.note(request, status)

    def _answer(self, request: Request, target: str, actions: list[Action]) -> None:
        stripped: frozenset[str] = frozenset()
        later: list[Callable[[], object]] = []
        changes: list[Callable[[str, str], str | None]] = []
        # What the client gets instead of the server's answer.
        instead: Callable[[], object] | None = None
        self._slow = 0.0
        truncated = False
        for action in _unfold(actions, request):
            match action:
                case Delay(seconds, after=False):
                    time.sleep(seconds)
                case Delay(seconds):
                    later.append(partial(time.sleep, seconds))
                case Late(seconds):
                    self._hang_up(request)
                    time.sleep(seconds)
                    instead = partial(self._hang_up, request)
                case Call(after=after) if after is not None:
                    later.append(partial(after, request))
                case StripHeaders(names):
                    stripped |= names
                case ChangeAnswer(header):
                    changes.append(header)
                case Refuse():
                    self._hang_up(request)
                    return
                case Status(code, s3_code, after=True):
                    instead = partial(self._fail, request, code, s3_code)
                case Status(code, s3_code):
                    for _ in self._body():
                        pass
                    self._fail(request, code, s3_code)
                    return
                case Reset(after=True):
                    instead = partial(self._reset, request)
                case Reset():
                    self._reset(request)
                    return
                case DropResponse():
                    instead = partial(self._hang_up, request)
                case Slow(seconds):
                    self._slow = seconds
                case Truncate():
                    truncated = True
        upstream = http.client.HTTPConnection(*self.target, timeout=self.timeout)
        try:
            self._forward(upstream, request, target, stripped)
            response = upstream.getresponse()
            for call in later:
                call()
            if instead is not None:
                response.read()
                instead()
                return
            self._note(request, None if truncated else response.status)
            self._pass_on(response, changes, truncated=truncated)
        finally:
            upstream.close()

    def _forward(
        self, upstream: http.client.HTTPConnection, request: Request, target: str, stripped: frozenset[str]
    ) -> None:
        upstream.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
        chunked = _is_chunked(self.headers)
        for name, value in self.headers.items():
            if name.lower() not in _HOP_BY_HOP | {"expect"} | stripped:
                upstream.putheader(name, value)
        if chunked:
            upstream.putheader("Transfer-Encoding", "chunked")
        upstream.endheaders()
        for piece in self._slowly(b"".join(self._body())) if self._slow else self._body():
            upstream.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            upstream.send(b"0\r\n\r\n")

    def _body(self) -> Iterator[bytes]:
        if self._received is not None:
            yield from self._received
            return
        if "100-continue" in self.headers.get("Expect", "").lower():
            self.send_response_only(100)
            self.end_headers()
        if _is_chunked(self.headers):
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield from self._exactly(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
        else:
            yield from self._exactly(int(self.headers.get("Content-Length", 0)))

    def _slowly(self, body: bytes) -> Iterator[bytes]:
        size = max(1, len(body) // _SLOW_PIECES)
        for start in range(0, len(body), size):
            time.sleep(self._slow / _SLOW_PIECES)
            yield body[start : start + size]

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self.rfile.read(min(size, _CHUNK))
            if not piece:
                raise ConnectionResetError("the client closed the connection during its request")
            size -= len(piece)
            yield piece

    def _pass_on(
        self,
        response: http.client.HTTPResponse,
        changes: list[Callable[[str, str], str | None]],
        *,
        truncated: bool,
    ) -> None:
        self.send_response_only(response.status, response.reason)
        for name, given in response.headers.items():
            value: str | None = given
            for change in changes:
                value = None if value is None else change(name.lower(), value)
            if value is not None and name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        empty = self.command == "HEAD" or response.status in (204, 304)
        chunked = not empty and response.headers.get("Content-Length") is None
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if empty:
            return
        for piece in self._answer_body(response, truncated=truncated):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if truncated:
            raise ConnectionAbortedError("the rest of this answer is lost on purpose")
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _answer_body(self, response: http.client.HTTPResponse, *, truncated: bool) -> Iterator[bytes]:
        if truncated:
            body = response.read()
            if half := body[: len(body) // 2]:
                yield half
        elif self._slow:
            yield from self._slowly(response.read())
        else:
            while piece := response.read1(_CHUNK):
                yield piece

    def _fail(self, request: Request, code: int, s3_code: str) -> None:
        self._note(request, code)
        resource = escape(request.path)
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Error><Code>{escape(s3_code)}</Code><Message>made by the fault proxy</Message>"
            f"<Resource>{resource}</Resource></Error>"
        ).encode()
        self.send_response_only(code)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if request.method != "HEAD":
            self.wfile.write(body)

    def _hang_up(self, request: Request) -> None:
        self._note(request, None)
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _reset(self, request: Request) -> None:
        self._note(request, None)
        self.close_connection = True
        # With a linger time of 0, closing the socket sends a reset instead of a normal end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())


def _unfold(actions: list[Action], request: Request) -> Iterator[Action]:
    """Makes the calls that are due before forwarding, in order, and puts a call's `then` behind it."""
    for action in actions:
        if isinstance(action, Call) and action.before is not None:
            action.before(request)
        yield action
        if isinstance(action, Call) and action.then is not None:
            yield action.then


def _is_chunked(headers: Message) -> bool:
    return "chunked" in str(headers.get("Transfer-Encoding", "")).lower()
