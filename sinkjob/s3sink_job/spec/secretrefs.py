"""References to Secrets of the sink's own namespace: there is no field for another one."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from s3sink_job.spec.model import CONFIG
from s3sink_job.spec.texts import ObjectName


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SecretRef:
    name: ObjectName


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SecretSource:
    secret_ref: SecretRef
