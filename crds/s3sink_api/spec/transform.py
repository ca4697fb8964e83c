"""`spec.transform`: Spark SQL over the decoded values."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, required
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.text_types import Text


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Transform:
    where: Text | None = None
    select: Annotated[tuple[Text, ...] | None, Field(min_length=1, max_length=500, validate_default=True)] = None

    @field_validator("select")
    @classmethod
    def _does_something(cls, select: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        if select is None and info.data.get("where", "") is None:
            raise Refusal("must be set, unless where is", show=False)
        return select

    CEL: ClassVar[tuple[Rule, ...]] = (
        required("has(self.where) || has(self.select)", "must be set, unless where is", at=".select"),
    )
