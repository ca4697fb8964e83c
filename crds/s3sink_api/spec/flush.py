"""`spec.flush`: when a topic-partition is flushed, by the first rule that applies."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.quantities import Duration, Size
from s3sink_api.spec.text_types import TimeZone

Records = Annotated[int, Field(ge=1, le=2**53)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Flush:
    records: Records = 1_000_000
    bytes: Size | None = None
    interval: Duration = 3600.0
    aligned: Duration | None = None
    timezone: TimeZone = "UTC"
    record_window: Duration | None = None
