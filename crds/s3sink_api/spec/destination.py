"""`spec.destination`: the bucket, how to reach it, and how objects are stored in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Cel, Rule, fits
from s3sink_api.spec import regexes
from s3sink_api.spec.checked_types import after
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Quantity, size_between
from s3sink_api.spec.secret_refs import SecretRef, SecretSource
from s3sink_api.spec.service_access import AssumeRole, Proxy, Timeouts
from s3sink_api.spec.text_types import Bucket, Prefix, Region, ShortText, Url, matching

STATE_PREFIX = ".s3sink"
_MOST_TAGS = 10

# S3 counts the letters of every script.
_TAG = r"[\w +\-=.:/@]"


_RESERVED_MESSAGE = "must be a tag key of your own, not one under aws:"


def _not_reserved(key: str) -> str:
    if key.startswith("aws:"):
        raise Refusal(_RESERVED_MESSAGE)
    return key


TagKey = Annotated[
    str,
    matching(f"{_TAG}+", "a tag key: letters, digits, spaces and + - = . _ : / @", longest=128, ascii_only=False),
    after(_not_reserved, Cel(lambda it: f"!{it}.startsWith('aws:')", _RESERVED_MESSAGE)),
]
TagValue = Annotated[
    str, matching(f"{_TAG}*", "letters, digits, spaces and + - = . _ : / @", longest=256, ascii_only=False)
]


def overlap(one: str, other: str) -> bool:
    """Whether one of the prefixes is inside the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Aes256:
    type: Literal["AES256"] = "AES256"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Kms:
    key_id: ShortText
    type: Literal["KMS"] = "KMS"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class CustomerKey:
    secret_ref: SecretRef
    type: Literal["CustomerKey"] = "CustomerKey"


Acl = Literal[
    "Private",
    "PublicRead",
    "PublicReadWrite",
    "AuthenticatedRead",
    "AwsExecRead",
    "BucketOwnerRead",
    "BucketOwnerFullControl",
]
_KEY_OVER_TLS_MESSAGE = "must not be CustomerKey with an http:// endpoint, which would show the key; use https://"
Encryption = Annotated[Aes256 | Kms | CustomerKey, Field(discriminator="type")]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Destination:
    bucket: Bucket
    prefix: Prefix = ""
    state_prefix: Annotated[Prefix, Field(validate_default=True)] = STATE_PREFIX
    region: Region | None = None
    endpoint: Url | None = None
    ca_from: SecretSource | None = None
    path_style: bool | None = None
    credentials: SecretSource | None = None
    assume_role: AssumeRole | None = None
    proxy: Proxy | None = None
    timeouts: Timeouts = Timeouts()
    encryption: Encryption | None = None
    storage_class: Annotated[str, matching(r"[A-Z0-9_]+", "a storage class such as STANDARD_IA", longest=64)] = (
        "STANDARD"
    )
    tags: Annotated[Mapping[TagKey, TagValue], Field(max_length=_MOST_TAGS)] = field(default_factory=dict)
    acl: Acl | None = None
    requester_pays: bool = False
    max_connections: Annotated[int, Field(ge=1, le=1000)] = 50
    part_size: Annotated[Quantity, size_between("5Mi", "5Gi")] = 8 * 2**20

    OF_ROUTES: ClassVar[tuple[str, ...]] = ("bucket", "prefix")
    """Fields that a route may set; it shares all others with the sink."""

    @property
    def use_path_style(self) -> bool:
        return self.endpoint is not None if self.path_style is None else self.path_style

    @field_validator("encryption")
    @classmethod
    def _key_only_over_tls(cls, encryption: Encryption | None, info: ValidationInfo) -> Encryption | None:
        endpoint = (info.data.get("endpoint") or "").lower()
        plain = endpoint.startswith("http://") and not re.fullmatch(regexes.LOOPBACK_URL, endpoint)
        if plain and isinstance(encryption, CustomerKey):
            raise Refusal(_KEY_OVER_TLS_MESSAGE, at=("type",), show=False)
        return encryption

    @field_validator("state_prefix")
    @classmethod
    def _apart_from_the_data(cls, state: str, info: ValidationInfo) -> str:
        data = info.data.get("prefix", "")
        if not state:
            raise Refusal(f"must not be empty; write {STATE_PREFIX}", show=False)
        if data and f"{state}/".startswith(f"{data}/"):
            message = f'must be outside of prefix "{data}", which holds the data'
            raise Refusal(message, hint=f"write {STATE_PREFIX}")
        if f"{data}/".startswith(f"{state}/"):
            message = f'must be outside of statePrefix "{state}", which holds the state, got "{data}"'
            raise Refusal(message, at=("..", "prefix"), show=False)
        return state

    CEL: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.encryption) || self.encryption.type != 'CustomerKey' || !has(self.endpoint)"
            " || !self.endpoint.lowerAscii().startsWith('http://')"
            f" || {fits('self.endpoint.lowerAscii()', regexes.LOOPBACK_URL)}",
            _KEY_OVER_TLS_MESSAGE,
            at=".encryption.type",
        ),
        Rule("self.statePrefix != ''", f"must not be empty; write {STATE_PREFIX}", at=".statePrefix"),
        Rule(
            "!has(self.prefix) || self.prefix == '' || !(self.statePrefix + '/').startsWith(self.prefix + '/')",
            f"must be outside of prefix, which holds the data; write {STATE_PREFIX}",
            at=".statePrefix",
        ),
        Rule(
            "!has(self.prefix) || self.prefix == '' || self.prefix == self.statePrefix"
            " || !(self.prefix + '/').startsWith(self.statePrefix + '/')",
            "must be outside of statePrefix, which holds the state",
            at=".prefix",
        ),
    )


def may_share_folders(one: Destination, other: Destination) -> bool:
    """Whether the folders below one destination may be those below the other."""
    nested = not (one.prefix and other.prefix) or overlap(one.prefix, other.prefix)
    return one.bucket == other.bucket and nested
