"""A real schema registry: Apicurio, which has Confluent's REST interface, with its data in memory.
It accepts any change of a schema.

    python -m tools.parts.registry      fetches Apicurio, unless it is in the cache
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tools.parts.cache import build_once
from tools.parts.jars import java
from tools.parts.processes import LOOPBACK, PartFailed, Process, free_ports
from tools.parts.versions import version

_MAVEN = "https://repo1.maven.org/maven2/io/apicurio/apicurio-registry-app"
_PATIENCE = 30.0
# Tests need a quick start more than fast code.
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxMetaspaceSize=256m")


class SchemaRegistry:
    """`with SchemaRegistry() as registry: registry.register("orders-value", text)`."""

    def __init__(self, *, port: int | None = None, host: str = LOOPBACK) -> None:
        self.host = host
        self.port = port or free_ports(1, host)[0]
        self._dir = Path(tempfile.gettempdir()) / f"s3sink-registry-{secrets.token_hex(6)}"
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/apis/ccompat/v7"

    @property
    def pid(self) -> int:
        return self._running().pid

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the registry, also again after `kill()`: on the same port, and empty."""
        self._dir.mkdir(mode=0o700, exist_ok=True)
        command = [java(), *_JVM, f"-Djava.io.tmpdir={self._dir}", "-Dquarkus.http.access-log.enabled=false"]
        command += [f"-Dquarkus.http.host={self.host}", f"-Dquarkus.http.port={self.port}", "-jar", str(_program())]
        self._process = Process("Apicurio", command, self._dir / "server.log")
        self._process.wait_until(self._answers)

    def kill(self) -> None:
        self._running().kill()

    def pause(self) -> None:
        """Freezes the registry: connections stay open, nothing answers."""
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        shutil.rmtree(self._dir, ignore_errors=True)

    def register(
        self, subject: str, schema: str, *, kind: str = "AVRO", references: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """The id of the schema. A reference is `{name, subject, version}`."""
        body = {"schema": schema, "schemaType": kind, "references": list(references)}
        answer: dict[str, int] = self.request("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        return answer["id"]

    def own_request(self, method: str, path: str) -> Any:
        """To Apicurio's own interface."""
        return self._request(f"http://{self.host}:{self.port}/apis/registry/v3{path}", method, None)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._request(self.url + path, method, body)

    def _request(self, url: str, method: str, body: Mapping[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urlopen(request, timeout=_PATIENCE) as response:  # noqa: S310 - on loopback
                return json.load(response)
        except HTTPError as error:
            raise PartFailed(f"{method} {url}: {error.code} {error.read().decode(errors='replace')}") from None

    def _answers(self) -> bool:
        with suppress(OSError):
            return isinstance(self.request("GET", "/subjects"), list)
        return False

    def _running(self) -> Process:
        if self._process is None:
            raise PartFailed("the registry was not started")
        return self._process


def _program() -> Path:
    release = version("apicurio", "version")
    return build_once(f"apicurio-{release}", _fetch) / f"apicurio-registry-app-{release}-runner.jar"


def _fetch(folder: Path) -> None:
    release = version("apicurio", "version")
    print(f"• fetching Apicurio {release}, 109 MB: up to a minute, once", file=sys.stderr, flush=True)
    archive = folder / "all.tar.gz"
    url = f"{_MAVEN}/{release}/apicurio-registry-app-{release}-all.tar.gz"
    with urlopen(url, timeout=_PATIENCE) as source, archive.open("wb") as target:  # noqa: S310
        shutil.copyfileobj(source, target)
    with archive.open("rb") as file:
        if (found := hashlib.file_digest(file, "sha256").hexdigest()) != version("apicurio", "sha256"):
            raise PartFailed(f"Apicurio {release} has the SHA-256 {found}, and not that of versions.toml")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()


if __name__ == "__main__":
    print(_program())
