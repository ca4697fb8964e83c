"""Real S3 servers behind one interface, on loopback or on an address that pods can reach.

Most tests use versitygw: its conditional writes are correct under concurrency, and its objects are plain files. Go
builds it once. Moto needs only Python, and ignores some conditions.

    python -m tools.parts.s3        builds versitygw, unless it is built
"""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import boto3
from botocore.config import Config

from tools.parts.cache import build_once, cache_root
from tools.parts.go import build_with_go
from tools.parts.processes import LOOPBACK, PartFailed, Process, free_ports, port_answers
from tools.parts.versions import version

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Server(ABC):
    """The interface of an S3 server: its address, its keys, a client, and ways to disturb it."""

    name: str
    region = "us-east-1"

    def __init__(self, *, port: int | None = None, host: str = LOOPBACK) -> None:
        self.host = host
        self._dir = Path(tempfile.gettempdir()) / f"s3sink-{self.name}-{secrets.token_hex(6)}"
        self.port = port or free_ports(1, host)[0]
        self.access_key = "s3sink"
        self.secret_key = secrets.token_urlsafe(18)
        self._process: Process | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    def client(
        self, *, endpoint: str | None = None, access_key: str | None = None, secret_key: str | None = None
    ) -> S3Client:
        """A client with the server's own keys; `endpoint` sends it through a proxy."""
        client: S3Client = boto3.client(
            "s3",
            endpoint_url=endpoint or self.endpoint,
            aws_access_key_id=access_key or self.access_key,
            aws_secret_access_key=secret_key or self.secret_key,
            region_name=self.region,
            config=Config(
                s3={"addressing_style": "path"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                max_pool_connections=32,
                proxies={},
            ),
        )
        return client

    def create_bucket(self, name: str) -> str:
        self.client().create_bucket(Bucket=name)
        return name

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
        """Starts the server, also again after `stop()` or `kill()`, on the same port."""
        self._dir.mkdir(mode=0o700, exist_ok=True)
        command, env = self._command()
        self._process = Process(self.name, command, self._dir / "server.log", env)
        self._process.wait_until(lambda: port_answers(self.port, self.host))

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        self._running().kill()

    def pause(self) -> None:
        """Freezes the server: connections stay open, nothing answers."""
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        shutil.rmtree(self._dir, ignore_errors=True)

    def _running(self) -> Process:
        if self._process is None:
            raise PartFailed(f"{self.name} was not started")
        return self._process

    @abstractmethod
    def _command(self) -> tuple[list[str], Mapping[str, str]]:
        """The program with its arguments, and its environment."""


class Versitygw(S3Server):
    """The Versity S3 gateway over a folder; its data survive `kill()` and `start()`."""

    name = "versitygw"

    @property
    def objects(self) -> Path:
        """The folder whose sub-folders are the buckets."""
        return self._dir / "objects"

    def _command(self) -> tuple[list[str], Mapping[str, str]]:
        # Metadata in a separate folder, because not every file system has extended attributes.
        metadata = self._dir / "metadata"
        for folder in (self.objects, metadata):
            folder.mkdir(exist_ok=True)
        command = [str(versitygw_program()), "--port", f"{self.host}:{self.port}", "--region", self.region]
        command += ["--keep-alive", "--quiet", "posix", "--sidecar", str(metadata), str(self.objects)]
        return command, {"ROOT_ACCESS_KEY_ID": self.access_key, "ROOT_SECRET_ACCESS_KEY": self.secret_key}


class Moto(S3Server):
    """Moto's S3 in memory: its data end with the process. It checks neither keys nor signatures."""

    name = "moto"

    def _command(self) -> tuple[list[str], Mapping[str, str]]:
        return [sys.executable, "-m", "moto.server", "-H", self.host, "-p", str(self.port)], {}


def versitygw_program() -> Path:
    return build_once(_versitygw_entry().name, _build_versitygw) / "versitygw"


def _versitygw_entry() -> Path:
    return cache_root() / f"versitygw-{version('versitygw', 'source').rpartition('@')[2]}"


def _build_versitygw(folder: Path) -> None:
    source = version("versitygw", "source")
    print(f"• building {source} with Go: about three minutes, once", file=sys.stderr, flush=True)
    build_with_go(source, folder)


if __name__ == "__main__":
    print(versitygw_program())
