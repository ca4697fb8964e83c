"""An HTTP proxy before an S3 server that breaks chosen requests on purpose.

A commit that took effect but whose answer was lost looks, to the client, like one that never arrived. Only
something between client and real server can make that happen at will. Host and signed headers pass through
unchanged, so that signatures still hold; a `StripHeaders` rule on a signed header breaks them, unless the
server does not look (Moto).

    with FaultProxy("127.0.0.1", port) as proxy:
        lost = proxy.on(request_is("PUT", "/state.json$"), DropResponse(), times=1)
        ...                       # send requests to proxy.endpoint
        assert lost.hits == 1
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self
from xml.sax.saxutils import escape

from e2e.parts.processes import LOOPBACK

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


@dataclass(frozen=True)
class Request:
    """What predicates see; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class DropResponse:
    """Forward it, let it take effect, then close the connection without an answer."""


@dataclass(frozen=True)
class Refuse:
    """Close the connection; the server never sees the request."""


@dataclass(frozen=True)
class Status:
    """Answer with this HTTP status and S3 error code. The server never sees the request or, with `after`, carried
    it out before."""

    code: int
    s3_code: str = "InternalError"
    after: bool = False


@dataclass(frozen=True)
class Reset:
    """End the connection with a TCP reset. The server never sees the request or, with `after`, carried it out."""

    after: bool = False


@dataclass(frozen=True)
class Truncate:
    """Forward it, promise the whole answer in the headers, and close the connection halfway through the body."""


@dataclass(frozen=True)
class Slow:
    """Pass the request's body and the answer's on piece by piece, each within about this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Delay:
    """Wait before forwarding or, with `after`, between the server's answer and ours."""

    seconds: float
    after: bool = False


@dataclass(frozen=True)
class Late:
    """Close the connection at once; the request, already on its way, arrives this many seconds later."""

    seconds: float


@dataclass(frozen=True)
class StripHeaders:
    """Forward without these request headers."""

    names: frozenset[str]

    def __init__(self, names: set[str] | frozenset[str]) -> None:
        object.__setattr__(self, "names", frozenset(name.lower() for name in names))


@dataclass(frozen=True)
class ChangeAnswer:
    """Pass the answer on with other headers: `header` gets each name, in lower case, and value; None leaves it out."""

    header: Callable[[str, str], str | None]


@dataclass(frozen=True)
class Call:
    """Call a function while the request is held: `before` it is forwarded, or `after` the server's answer and
    before ours; `then` goes on as another action would.

    A test can kill or freeze the client at exactly this request, or keep the request back for a while. It was
    received whole before `before` is called, so it can still arrive when the client is dead.
    """

    before: Callable[[Request], object] | None = None
    after: Callable[[Request], object] | None = None
    then: DropResponse | Refuse | Status | None = None


Action = DropResponse | Refuse | Status | Reset | Truncate | Slow | Delay | Late | StripHeaders | ChangeAnswer | Call
Predicate = Callable[[Request], bool]


def request_is(method: str | None = None, path: str = "", query: str = "", header: str = "") -> Predicate:
    """Matches a method (None: any), regular expressions found in path and query, a header that is there."""

    def matches(request: Request) -> bool:
        return (
            method in (None, request.method)
            and re.search(path, request.path) is not None
            and re.search(query, request.query) is not None
            and (not header or header.lower() in request.headers)
        )

    return matches


@dataclass
class Rule:
    """A fault in place: `hits` counts the requests it met, without those it let pass. Made by `FaultProxy.on`."""

    predicate: Predicate
    action: Action
    times: int | None
    skip: int = 0
    hits: int = 0

    def meets(self, request: Request) -> bool:
        if (self.times is not None and self.hits >= self.times) or not self.predicate(request):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits += 1
        return True


class Logged(NamedTuple):
    """A request that came in; the status is None where no answer was given."""

    method: str
    path: str
    query: str
    status: int | None


@dataclass
class _Faults:
    """Rules and log, shared by the threads that serve connections."""

    rules: list[Rule] = field(default_factory=list)
    log: list[Logged] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: Request) -> list[Action]:
        with self.lock:
            return [rule.action for rule in self.rules if rule.meets(request)]

    def note(self, request: Request, status: int | None) -> None:
        with self.lock:
            self.log.append(Logged(request.method, request.path, request.query, status))


class FaultProxy:
    """Listens on a free port, of loopback unless told, and forwards to `target_host:target_port`."""

    def __init__(self, target_host: str, target_port: int, host: str = LOOPBACK) -> None:
        self._faults = _Faults()
        faults = self._faults

        class Handler(_Handler):
            target = (target_host, target_port)
            shared = faults

        self.host = host
        self._server = _Server((host, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def requests(self) -> list[Logged]:
        """Every request so far, in the order in which they were answered."""
        with self._faults.lock:
            return list(self._faults.log)

    def on(self, predicate: Predicate, action: Action, times: int | None = None, skip: int = 0) -> Rule:
        """Adds a fault for matching requests: lets `skip` of them pass, then meets `times` or all."""
        rule = Rule(predicate, action, times, skip)
        with self._faults.lock:
            self._faults.rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        with self._faults.lock:
            self._faults.rules = [other for other in self._faults.rules if other is not rule]

    def clear(self) -> None:
        """Forgets all faults and the log."""
        with self._faults.lock:
            self._faults.rules.clear()
            self._faults.log.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken connections are this program's trade: no traceback for them."""


class _Handler(BaseHTTPRequestHandler):
    """Serves one client connection. Every request goes upstream on a connection of its own."""

    protocol_version = "HTTP/1.1"
    # Answers are written in small pieces; without this each would wait for an acknowledgement.
    disable_nagle_algorithm = True
    timeout = 120
    target: tuple[str, int]
    shared: _Faults
    _noted = False
    _slow = 0.0
    _received: list[bytes] | None = None

    def handle_expect_100(self) -> bool:
        return True  # decided in `_serve`: a refused request gets no "go on"

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
        """Before the answer is sent: whoever got it must find it in the log."""
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
                raise ConnectionResetError("the client went away halfway through its request")
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
        # Closed with nothing left to linger for, a socket sends a reset, and not the end of an orderly connection.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())


def _unfold(actions: list[Action], request: Request) -> Iterator[Action]:
    """Makes the calls due now, each in its place, and puts what follows a call behind it."""
    for action in actions:
        if isinstance(action, Call) and action.before is not None:
            action.before(request)
        yield action
        if isinstance(action, Call) and action.then is not None:
            yield action.then


def _is_chunked(headers: Message) -> bool:
    return "chunked" in str(headers.get("Transfer-Encoding", "")).lower()
