"""`spec.reset`: starts every topic again, as its next generation."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.source import FromEarliest, StartingOffsets
from s3sink_api.spec.text_types import ShortText


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Reset:
    nonce: ShortText
    to: StartingOffsets = FromEarliest()
