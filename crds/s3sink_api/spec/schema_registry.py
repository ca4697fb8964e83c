"""`schemaRegistry`: where records with a schema each have their schemas from."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from s3sink_api.cel import Rule, forbidden, required
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.secret_refs import SecretSource
from s3sink_api.spec.service_access import AssumeRole, Proxy
from s3sink_api.spec.text_types import Region, Url

RegistryType = Literal["Confluent", "Glue"]
_ONLY: dict[str, RegistryType] = {
    "url": "Confluent",
    "certFrom": "Confluent",
    "region": "Glue",
    "endpoint": "Glue",
    "assumeRole": "Glue",
    "proxy": "Glue",
}
"""Fields that one of the types has."""
_IS: dict[RegistryType, str] = {
    "Confluent": "(!has(self.type) || self.type == 'Confluent')",
    "Glue": "(has(self.type) && self.type == 'Glue')",
}
"""In CEL. Items of lists have no defaults."""
_NEEDS_URL = "must be set with type: Confluent"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class SchemaRegistry:
    type: RegistryType = "Confluent"
    url: Annotated[Url | None, Field(validate_default=True)] = None
    region: Region | None = None
    endpoint: Url | None = None
    credentials_from: SecretSource | None = None
    ca_from: SecretSource | None = None
    cert_from: SecretSource | None = None
    assume_role: AssumeRole | None = None
    proxy: Proxy | None = None

    @field_validator("url", "region", "endpoint", "cert_from", "assume_role", "proxy")
    @classmethod
    def _of_this_type(cls, value: object, info: ValidationInfo) -> object:
        kind: RegistryType | None = info.data.get("type")
        name = str(cls.__pydantic_fields__[str(info.field_name)].alias)  # type: ignore[attr-defined]
        if kind is None:
            return value
        if value is None and name == "url" and kind == "Confluent":
            raise Refusal(_NEEDS_URL, show=False)
        if value is not None and kind != _ONLY[name]:
            raise Refusal(f"is only for type: {_ONLY[name]}, and type is {kind}", show=False)
        return value

    CEL: ClassVar[tuple[Rule, ...]] = (
        *(
            forbidden(f"!has(self.{name}) || {_IS[kind]}", f"is only for type: {kind}", at=f".{name}")
            for name, kind in _ONLY.items()
        ),
        required(f"{_IS['Glue']} || has(self.url)", _NEEDS_URL, at=".url"),
    )
