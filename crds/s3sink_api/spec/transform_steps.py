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

CastType = Literal["Int32", "Int64", "Float32", "Float64", "Boolean", "String"]
InsertSource = Literal["Topic", "Partition", "Offset", "Timestamp"]
Deletes = Literal["Rows", "Drop", "Tombstones"]
# Without rules in CEL: those of 50 steps in 64 routes would cost more than the API server allows.
FieldName = Annotated[str, Field(min_length=1, max_length=256)]
FieldNames = Annotated[tuple[FieldName, ...], Field(min_length=1, max_length=200)]
DEFAULT_META = ("op", "source.ts_ms", "ts_ms")


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Debezium:
    deletes: Deletes = "Rows"
    add_fields: Annotated[tuple[FieldName, ...], Field(max_length=20)] = DEFAULT_META


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Drop:
    fields: FieldNames
    type: Literal["Drop"] = "Drop"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Rename:
    field: FieldName
    as_: Annotated[FieldName, Field(alias="as")]
    type: Literal["Rename"] = "Rename"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Mask:
    fields: FieldNames
    replacement: FieldName | None = None
    type: Literal["Mask"] = "Mask"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Insert:
    field: FieldName
    value: FieldName | None = None
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
    separator: FieldName | None = None
    type: Literal["Flatten"] = "Flatten"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Hoist:
    field: FieldName
    type: Literal["Hoist"] = "Hoist"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Extract:
    field: FieldName
    type: Literal["Extract"] = "Extract"


Step = Annotated[
    Drop | Rename | Mask | Insert | Cast | Flatten | Hoist | Extract,
    Field(discriminator="type"),
]
