"""One GET to a schema registry, and what its answer means. There is one connection pool for each process and login."""

from __future__ import annotations

import json
import os
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.errors import FinalError, S3SinkError, TransientError
from s3sink_job.base.secrets import Secrets


class Get(Protocol):
    def __call__(self, url: str, *, text: bool = False) -> Any:
        """The document, or the text if `text` is set. None if the registry does not know such a thing."""
        ...


CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 15.0
WHOLE_TIMEOUT = 60.0
"""For an answer that comes in small pieces."""
LARGEST_ANSWER = 16 * 2**20
LONGEST_WAIT = 10.0
"""The most that a `Retry-After` can ask for, in seconds."""
_MOST_REDIRECTS = 3
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_DENIED = {401, 403}
_TRANSIENT = {408, 425, 429}
_UNKNOWN = (40401, 40402, 40403)
"""Error codes for a subject, a version or an id that does not exist."""
_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


class RegistryUnavailable(TransientError):
    """No answer, or one that says: later."""

    reason = "RegistryUnavailable"

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait
        """Seconds that the registry asked for."""


def open_registry(registry: SchemaRegistry, secrets: Secrets) -> Get:
    """Requests with the login and the certificates that are in the secrets now."""
    login = _login(registry, secrets)
    ca = secrets.key(registry.ca_from.secret_ref.name, "ca.crt") if registry.ca_from else ""
    files: tuple[str, str] | None = None
    content: tuple[str, str] | None = None
    if registry.cert_from:
        name = registry.cert_from.secret_ref.name
        content = (secrets.key(name, "tls.crt"), secrets.key(name, "tls.key"))
        folder = Path(secrets.folder) / name
        files = (str(folder / "tls.crt"), str(folder / "tls.key"))
    pool = _pool(login, ca, files, content, os.getpid())
    return partial(_get, pool)


@lru_cache(maxsize=4)
def _pool(
    login: str, ca: str, files: tuple[str, str] | None, content: tuple[str, str] | None, pid: int
) -> urllib3.PoolManager:
    """Cached by the content of secrets, and by process: a forked worker must not share the sockets of its parent."""
    headers = {"accept": _ACCEPT, "accept-encoding": "gzip", "user-agent": "s3sink"}
    if login:
        headers["authorization"] = login
    tls: dict[str, Any] = {}
    if ca:
        tls["ca_cert_data"] = ca
    if files:
        tls["cert_file"], tls["key_file"] = files
    timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT, read=READ_TIMEOUT)
    return urllib3.PoolManager(num_pools=2, maxsize=4, headers=headers, timeout=timeout, retries=False, **tls)


def _login(registry: SchemaRegistry, secrets: Secrets) -> str:
    """The header Authorization."""
    if registry.credentials_from is None:
        return ""
    name = registry.credentials_from.secret_ref.name
    content = secrets.read(name)
    basic = "username" in content and "password" in content
    if basic == ("token" in content):
        found = "has all three" if basic else "lacks them"
        raise FinalError(
            f"Secret {name!r} needs the keys username and password, or the key token, and {found}",
            reason="SecretKeyMissing",
        )
    if basic:
        login = f"{content['username']}:{content['password']}"
        return f"Basic {b64encode(login.encode()).decode()}"
    token = content["token"].strip()
    # Checked here, because Python's message about a wrong header repeats it.
    if not (token and token.isascii() and token.isprintable()):
        raise FinalError(f"Secret {name!r}, key 'token': not a token of one line of ASCII", reason="SecretNotText")
    return f"Bearer {token}"


def _get(pool: urllib3.PoolManager, url: str, *, text: bool = False) -> Any:
    what = f"schema registry: GET {url}"
    try:
        response = _same_host_response(pool, url, what)
        try:
            body = _body(response, what)
        except BaseException:
            # A connection with an unread body cannot be used again.
            response.close()
            raise
    except (HTTPError, OSError) as error:
        raise _no_answer(error, what) from None
    if text and response.status == 200:
        return _text(body, what)
    return _judged(response.status, response.headers.get("retry-after"), body, what)


def _same_host_response(pool: urllib3.PoolManager, url: str, what: str) -> urllib3.BaseHTTPResponse:
    """Redirects are followed on the same host only: the login is not for any other."""
    for _ in range(_MOST_REDIRECTS + 1):
        response = pool.request("GET", url, redirect=False, preload_content=False)
        location = response.get_redirect_location()
        if not location:
            return response
        response.drain_conn()
        url = _on_same_host(url, location, what)
    raise FinalError(f"{what}: redirected {_MOST_REDIRECTS} times", reason="RegistryRefused")


def _on_same_host(url: str, location: str, what: str) -> str:
    try:
        target = urljoin(url, location)
        if urlsplit(target)[:2] == urlsplit(url)[:2]:
            return target
        host = urlsplit(target).hostname or "an address without a host"
    except ValueError:
        host = "something that is no URL"
    raise FinalError(
        f"{what}: redirected to {host}, which is not followed: set schemaRegistry.url to the right address",
        reason="RegistryRefused",
    )


def _body(response: urllib3.BaseHTTPResponse, what: str) -> bytes:
    body = bytearray()
    deadline = time.monotonic() + WHOLE_TIMEOUT
    for piece in response.stream(2**16, decode_content=True):
        body += piece
        if len(body) > LARGEST_ANSWER:
            message = f"{what}: the answer has more than {LARGEST_ANSWER // 2**20} MiB"
            raise FinalError(message, reason="RegistryInvalid")
        if time.monotonic() > deadline:
            raise RegistryUnavailable(f"{what}: no whole answer within {WHOLE_TIMEOUT:.0f} s")
    return bytes(body)


def _text(body: bytes, what: str) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise FinalError(f"{what}: the answer is not UTF-8", reason="RegistryInvalid") from None


def _judged(status: int, retry_after: str | None, body: bytes, what: str) -> Any:
    if status in _DENIED:
        raise FinalError(
            f"{what}: {status}: check the Secret of schemaRegistry.credentialsFrom and its permissions",
            reason="RegistryDenied",
        )
    if status in _TRANSIENT or status >= 500:
        raise RegistryUnavailable(f"{what}: {status}{_said(_document(body))}", _seconds(retry_after))
    document = _document(body)
    if document is None:
        kind = "HTML" if body.lstrip()[:1] == b"<" else "text" if body else "nothing"
        message = f"{what}: {status}, answered {kind} instead of JSON: is schemaRegistry.url right?"
        raise FinalError(message, reason="RegistryNotJson")
    if status == 200:
        return document
    if status == 404 and _says_unknown(document):
        return None
    raise FinalError(f"{what}: {status}{_said(document)}: is schemaRegistry.url right?", reason="RegistryRefused")


def _says_unknown(document: Any) -> bool:
    """Whether the registry looked for it: for a wrong path it also says 404, and then all records would be bad."""
    if not isinstance(document, dict):
        return False
    return document.get("error_code") in _UNKNOWN or str(document.get("name", "")).endswith("NotFoundException")


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _said(document: Any) -> str:
    message = document.get("message") if isinstance(document, dict) else None
    return f", {message[:200]!r}" if isinstance(message, str) else ""


def _seconds(retry_after: str | None) -> float:
    if not retry_after:
        return 0.0
    try:
        return min(max(urllib3.Retry().parse_retry_after(retry_after), 0.0), LONGEST_WAIT)
    except InvalidHeader:
        return 0.0


def _no_answer(error: Exception, what: str) -> S3SinkError:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _BROKEN_OFF):
            why = getattr(cause, "verify_message", "") or cause.reason or cause
            return FinalError(
                f"{what}: TLS failed: {why}: check schemaRegistry.caFrom, certFrom and the registry's certificate",
                reason="RegistryTls",
            )
    # A server that wants a certificate may close the connection without a word.
    hint = "; does it want a certificate (certFrom)?" if any(isinstance(cause, _BROKEN_OFF) for cause in causes) else ""
    return RegistryUnavailable(f"{what}: {type(error).__name__}: {causes[-1]}{hint}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it was made from, which urllib3 has as arguments."""
    yield error
    inner = error.__cause__ or next((arg for arg in error.args if isinstance(arg, BaseException)), None)
    if inner is not None:
        yield from _causes(inner)
