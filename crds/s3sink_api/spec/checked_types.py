"""A validator together with its CEL and its keywords in the schema, for use within `Annotated`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from s3sink_api.cel import Cel


@dataclass(frozen=True, eq=False)
class Checked:
    """The parser uses the validator, the definition uses the rest."""

    validator: AfterValidator | BeforeValidator | None = None
    cel: tuple[Cel, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of the OpenAPI schema."""
    replaces: bool = False
    """Whether the keywords replace those of the Python type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return self.validator.__get_pydantic_core_schema__(source, handler) if self.validator else handler(source)


def after(check: Callable[..., Any], *cel: Cel, **keywords: Any) -> Checked:
    """Checks the parsed value."""
    return Checked(AfterValidator(check), cel, keywords)


def before(read: Callable[..., Any], *cel: Cel) -> Checked:
    """Parses the value as it is written."""
    return Checked(BeforeValidator(read), cel)


def in_schema(**keywords: Any) -> Checked:
    """Adds keywords to the schema."""
    return Checked(keywords=keywords)


LONGEST_AMOUNT = 64
TEXT = Checked(keywords={"type": "string", "maxLength": LONGEST_AMOUNT}, replaces=True)
"""Written as text; the parser may return another type."""
NUMBER_OR_TEXT = Checked(
    keywords={
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "maxLength": LONGEST_AMOUNT,
    },
    replaces=True,
)
ANY_OBJECT = Checked(keywords={"type": "object", "x-kubernetes-preserve-unknown-fields": True}, replaces=True)
"""An object with any fields."""
