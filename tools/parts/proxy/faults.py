"""Faults as data: which requests they meet, and what happens to those."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class Request:
    """A request as predicates get it; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class DropResponse:
    """Forward the request, let it take effect, then close the connection without an answer."""


@dataclass(frozen=True)
class Refuse:
    """Close the connection; the server never sees the request."""


@dataclass(frozen=True)
class Status:
    """Answer with this HTTP status and S3 error code. The server never sees the request; with `after`, it has carried
    it out."""

    code: int
    s3_code: str = "InternalError"
    after: bool = False


@dataclass(frozen=True)
class Reset:
    """Reset the TCP connection. The server never sees the request; with `after`, it has carried it out."""

    after: bool = False


@dataclass(frozen=True)
class Truncate:
    """Forward the request, send the answer's headers and half of its body, and close the connection."""


@dataclass(frozen=True)
class Slow:
    """Pass the bodies of request and answer on in pieces, each body in about this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Delay:
    """Wait before forwarding; with `after`, wait before passing on the server's answer."""

    seconds: float
    after: bool = False


@dataclass(frozen=True)
class Late:
    """Close the connection at once; the request reaches the server this many seconds later."""

    seconds: float


@dataclass(frozen=True)
class StripHeaders:
    """Forward the request without these headers."""

    names: frozenset[str]

    def __init__(self, names: set[str] | frozenset[str]) -> None:
        object.__setattr__(self, "names", frozenset(name.lower() for name in names))


@dataclass(frozen=True)
class ChangeAnswer:
    """Change the answer's headers: `header` gets each name, in lower case, and its value; None removes it."""

    header: Callable[[str, str], str | None]


@dataclass(frozen=True)
class Call:
    """Call a function while the request waits: `before` it is forwarded, or `after` the server has answered. `then` is
    the action that follows.

    A test can kill or freeze the client at exactly this request, or hold the request for a while. The request is
    received completely before `before` is called, so it can still reach the server when the client is dead.
    """

    before: Callable[[Request], object] | None = None
    after: Callable[[Request], object] | None = None
    then: DropResponse | Refuse | Status | None = None


Action = DropResponse | Refuse | Status | Reset | Truncate | Slow | Delay | Late | StripHeaders | ChangeAnswer | Call
Predicate = Callable[[Request], bool]


def request_is(method: str | None = None, path: str = "", query: str = "", header: str = "") -> Predicate:
    """Matches a method (None: any), regular expressions for path and query, and the presence of a header."""

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
    """An active fault. `hits` counts the requests that met it, without the skipped ones. `FaultProxy.on` makes it."""

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
    """A request in the log; the status is None if the client got no answer."""

    method: str
    path: str
    query: str
    status: int | None


@dataclass
class Faults:
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
