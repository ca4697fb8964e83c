"""`spec.transform`: from the fields of a decoded value to those that are written.

First unwrap, then steps, then where, then select.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, required
from s3sink_api.spec.checked_types import after
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.sql_expressions import Star, parse_filter, parse_select
from s3sink_api.spec.transform_steps import Debezium, Step

MOST_COLUMNS = 500
MOST_STEPS = 50
# Without rules in CEL: those of 500 texts in 64 routes would cost more than the API server allows.
SqlText = Annotated[str, Field(min_length=1, max_length=4096)]


def _condition(text: str) -> str:
    parse_filter(text)
    return text


def _columns(texts: tuple[str, ...]) -> tuple[str, ...]:
    names: dict[str, int] = {}
    stars = 0
    for index, text in enumerate(texts):
        try:
            item = parse_select(text)
        except Refusal as refusal:
            raise refusal.below(index, value=text) from None
        if isinstance(item, Star):
            stars += 1
            if stars > 1:
                raise Refusal("repeats *; keep one of them", at=(index,), show=False)
        elif names.setdefault(item.name, index) != index:
            message = f"has the name {item.name}, as item {names[item.name]} has; give it another with AS"
            raise Refusal(message, at=(index,), show=False)
    return texts


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Transform:
    unwrap: Literal["Debezium"] | None = None
    debezium: Annotated[Debezium | None, Field(validate_default=True)] = None
    steps: Annotated[tuple[Step, ...], Field(max_length=MOST_STEPS)] = ()
    # CEL cannot parse SQL: see `not_in_cel.py`.
    where: Annotated[SqlText, after(_condition)] | None = None
    select: Annotated[
        Annotated[tuple[SqlText, ...], Field(min_length=1, max_length=MOST_COLUMNS), after(_columns)] | None,
        Field(validate_default=True),
    ] = None

    @property
    def changes_values(self) -> bool:
        """Whether it does more than leave records out."""
        return bool(self.unwrap or self.steps or self.select)

    @field_validator("debezium")
    @classmethod
    def _with_unwrap(cls, debezium: Debezium | None, info: ValidationInfo) -> Debezium | None:
        if debezium is not None and info.data.get("unwrap", "") is None:
            raise Refusal("is only for unwrap: Debezium", show=False)
        return debezium

    @field_validator("select")
    @classmethod
    def _does_something(cls, select: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        others = (info.data.get(name, "unknown") for name in ("where", "unwrap", "steps"))
        if select is None and not any(others):
            raise Refusal("must be set, unless where, unwrap or steps is", show=False)
        return select

    CEL: ClassVar[tuple[Rule, ...]] = (
        required(
            "has(self.where) || has(self.select) || has(self.unwrap) || (has(self.steps) && size(self.steps) > 0)",
            "must be set, unless where, unwrap or steps is",
            at=".select",
        ),
        Rule(
            "!has(self.debezium) || has(self.unwrap)",
            "is only for unwrap: Debezium",
            ".debezium",
            "FieldValueForbidden",
        ),
    )
