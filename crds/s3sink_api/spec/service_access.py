"""How the store and AWS Glue are reached: a proxy, timeouts, a role to assume."""

from __future__ import annotations

from typing import Annotated

from pydantic.dataclasses import dataclass

from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Duration
from s3sink_api.spec.secret_refs import SecretSource
from s3sink_api.spec.text_types import Url, matching

RoleArn = Annotated[
    str,
    matching(
        r"arn:[A-Za-z0-9_-]+:iam::[0-9]*:role/[!-~]+",
        "a role such as arn:aws:iam::123456789012:role/sink",
        longest=2048,
    ),
]
ExternalId = Annotated[
    str, matching(r"[A-Za-z0-9_+=,.@:/-]{2,}", "at least 2 letters, digits or _ + = , . @ : / -", longest=1224)
]
SessionName = Annotated[
    str, matching(r"[A-Za-z0-9_+=,.@-]{2,}", "at least 2 letters, digits or _ + = , . @ -", longest=64)
]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Proxy:
    url: Url
    credentials_from: SecretSource | None = None


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Timeouts:
    connect: Duration = 10.0
    read: Duration = 60.0


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class AssumeRole:
    arn: RoleArn
    external_id: ExternalId | None = None
    session_name: SessionName = "s3sink"
    endpoint: Url | None = None
