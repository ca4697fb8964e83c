"""`spec.transform.steps`: what Kafka Connect's transformations of single messages do, one step for each.

And the options of `spec.transform.unwrap`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, forbidden, required
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.text_types import ShortText

CastType = Literal["Int32", "Int64", "Float32", "Float64", "Boolean", "String"]
InsertSource = Literal["Topic", "Partition", "Offset", "Timestamp"]
Deletes = Literal["Rows", "Drop", "Tombstones"]
FieldNames = Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=200)]
DEFAULT_META = ("op", "source.ts_ms", "ts_ms")


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Debezium:
    deletes: Deletes = "Rows"
    add_fields: Annotated[tuple[ShortText, ...], Field(max_length=20)] = DEFAULT_META


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Drop:
    fields: FieldNames
    type: Literal["Drop"] = "Drop"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Rename:
    field: ShortText
    as_: Annotated[ShortText, Field(alias="as")]
    type: Literal["Rename"] = "Rename"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Mask:
    fields: FieldNames
    replacement: ShortText | None = None
    type: Literal["Mask"] = "Mask"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Insert:
    field: ShortText
    value: ShortText | None = None
    source: Annotated[InsertSource | None, Field(validate_default=True)] = None
    type: Literal["Insert"] = "Insert"

    @field_validator("source")
    @classmethod
    def _one_of_both(cls, source: InsertSource | None, info: ValidationInfo) -> InsertSource | None:
        value = info.data.get("value", "unknown")
        if source is None and value is None:
            raise Refusal("must be set, unless value is", show=False)
        if source is not None and value is not None:
            raise Refusal("must be left out, since value is set", show=False)
        return source

    CEL: ClassVar[tuple[Rule, ...]] = (
        required("has(self.source) || has(self.value)", "must be set, unless value is", at=".source"),
        forbidden("!has(self.source) || !has(self.value)", "must be left out, since value is set", at=".source"),
    )


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Cast:
    fields: FieldNames
    to: CastType
    type: Literal["Cast"] = "Cast"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Flatten:
    separator: ShortText | None = None
    type: Literal["Flatten"] = "Flatten"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Hoist:
    field: ShortText
    type: Literal["Hoist"] = "Hoist"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Extract:
    field: ShortText
    type: Literal["Extract"] = "Extract"


Step = Annotated[
    Drop | Rename | Mask | Insert | Cast | Flatten | Hoist | Extract,
    Field(discriminator="type"),
]
