"""References to Secrets. They are always in the namespace of the sink."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.text_types import ObjectName


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SecretRef:
    name: ObjectName


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SecretSource:
    secret_ref: SecretRef
