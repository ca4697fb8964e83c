"""How a destination is reached, with its secrets, read from mounted files. It is the key of cached clients."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from botocore.config import Config

from s3sink_api.spec import AssumeRole, Destination, Proxy
from s3sink_job.base.aws import AwsKeys, aws_keys, ca_file
from s3sink_job.base.secrets import Secrets

DEFAULT_REGION = "us-east-1"
"""SigV4 needs a region. S3-compatible stores accept this one."""


@dataclass(frozen=True)
class Connection:
    endpoint: str
    region: str
    path_style: bool
    connections: int
    requester_pays: bool
    connect_timeout: float
    read_timeout: float
    role: AssumeRole | None
    ca: str | None
    keys: AwsKeys = field(repr=False)
    proxy: str = field(default="", repr=False)
    """With user and password."""
    pid: int = field(default_factory=os.getpid)
    """A forked worker must not share the sockets of its parent."""

    @property
    def config(self) -> dict[str, Any]:
        """For boto3's clients. They do not retry: `base/retry.py` does, within the limits of the spec."""
        proxies = {"proxies": {"http": self.proxy, "https": self.proxy}} if self.proxy else {}
        return {
            "connect_timeout": self.connect_timeout,
            "read_timeout": self.read_timeout,
            "max_pool_connections": self.connections,
            "retries": {"total_max_attempts": 1, "mode": "standard"},
            **proxies,
        }

    def sts_config(self) -> Config:
        return Config(**self.config)


def connection_of(destination: Destination, secrets: Secrets) -> Connection:
    return Connection(
        endpoint=destination.endpoint or "",
        region=destination.region or "",
        path_style=destination.use_path_style,
        connections=destination.max_connections,
        requester_pays=destination.requester_pays,
        connect_timeout=destination.timeouts.connect,
        read_timeout=destination.timeouts.read,
        role=destination.assume_role,
        ca=ca_file(destination.ca_from, secrets),
        keys=aws_keys(destination.credentials, secrets),
        proxy=_proxy_url(destination.proxy, secrets),
    )


def _proxy_url(proxy: Proxy | None, secrets: Secrets) -> str:
    if proxy is None or proxy.credentials_from is None:
        return "" if proxy is None else proxy.url
    name = proxy.credentials_from.secret_ref.name
    user, password = (quote(secrets.key(name, key), safe="") for key in ("username", "password"))
    parts = urlsplit(proxy.url)
    return parts._replace(netloc=f"{user}:{password}@{parts.netloc}").geturl()
