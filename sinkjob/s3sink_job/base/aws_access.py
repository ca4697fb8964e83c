"""How a service of AWS, or one with the same interface, is reached, with its secrets, read from mounted files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from botocore.config import Config

from s3sink_api.spec import AssumeRole, Proxy, SecretSource
from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets

DEFAULT_REGION = "us-east-1"
"""SigV4 needs a region. S3-compatible stores accept this one."""


class AwsKeys(NamedTuple):
    """Empty for the default chain: environment, role of the pod, role of the machine."""

    access_key: str = ""
    secret_key: str = ""
    token: str = ""

    @property
    def client_options(self) -> dict[str, Any]:
        """For boto3."""
        if not self.access_key:
            return {}
        options = {"aws_access_key_id": self.access_key, "aws_secret_access_key": self.secret_key}
        return options | ({"aws_session_token": self.token} if self.token else {})


@dataclass(frozen=True, kw_only=True)
class AwsAccess:
    """The key of cached clients. Empty texts are boto3's defaults."""

    region: str
    endpoint: str
    role: AssumeRole | None
    ca: str | None
    keys: AwsKeys = field(repr=False)
    proxy: str = field(default="", repr=False)
    """With user and password."""
    connect_timeout: float
    read_timeout: float
    connections: int = 10
    pid: int = field(default_factory=os.getpid)
    """A forked worker must not share the sockets of its parent."""

    def config(self, **more: Any) -> Config:
        """For boto3's clients. They do not retry: `base/retry.py` does, within the limits of the spec."""
        if self.proxy:
            more["proxies"] = {"http": self.proxy, "https": self.proxy}
        return Config(
            connect_timeout=self.connect_timeout,
            read_timeout=self.read_timeout,
            max_pool_connections=self.connections,
            retries={"total_max_attempts": 1, "mode": "standard"},
            **more,
        )


def aws_keys(source: SecretSource | None, secrets: Secrets) -> AwsKeys:
    if source is None:
        return AwsKeys()
    name = source.secret_ref.name
    content = secrets.read(name)
    try:
        keys = content["AWS_ACCESS_KEY_ID"], content["AWS_SECRET_ACCESS_KEY"]
    except KeyError as missing:
        raise FinalError(
            f"Secret {name!r} has no key {missing}: it needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            reason="SecretKeyMissing",
        ) from missing
    return AwsKeys(*keys, content.get("AWS_SESSION_TOKEN", ""))


def ca_file(source: SecretSource | None, secrets: Secrets) -> str | None:
    """The file with the CA, which has to be there. None for the CAs of the image."""
    if source is None:
        return None
    name = source.secret_ref.name
    secrets.key(name, "ca.crt")
    return str(Path(secrets.folder) / name / "ca.crt")


def proxy_url(proxy: Proxy | None, secrets: Secrets) -> str:
    """With user and password. Empty for the proxy of the environment."""
    if proxy is None or proxy.credentials_from is None:
        return "" if proxy is None else proxy.url
    name = proxy.credentials_from.secret_ref.name
    user, password = (quote(secrets.key(name, key), safe="") for key in ("username", "password"))
    parts = urlsplit(proxy.url)
    return parts._replace(netloc=f"{user}:{password}@{parts.netloc}").geturl()
