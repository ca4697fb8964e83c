"""Rules in CEL, which the API server checks. Each is written beside the validator that it mirrors.

CEL is used instead of the schema's `pattern`, whose error message is the pattern only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]


@dataclass(frozen=True)
class Rule:
    """A condition on a section. `at` is the path to the field with the error."""

    holds: str
    message: str
    at: str = ""
    reason: Reason = "FieldValueInvalid"
    message_expression: str = ""
    old_is_optional: bool = False
    """Whether the rule also holds for new resources; `oldSelf` is an optional then."""

    def to_schema(self) -> dict[str, Any]:
        optional = {
            "messageExpression": self.message_expression,
            "reason": "" if self.reason == "FieldValueInvalid" else self.reason,
            "fieldPath": self.at,
            "optionalOldSelf": self.old_is_optional,
        }
        return {"rule": self.holds, "message": self.message} | {key: value for key, value in optional.items() if value}


def forbidden(holds: str, message: str, at: str = "") -> Rule:
    return Rule(holds, message, at, "FieldValueForbidden")


def required(holds: str, message: str, at: str = "") -> Rule:
    return Rule(holds, message, at, "FieldValueRequired")


@dataclass(frozen=True)
class Cel:
    """A condition on a single value. `holds` writes it for `self`, or for a key of a map.

    The API server repeats a wrong value in its answer, unless the reason is FieldValueForbidden: use that where the
    value may be a secret.
    """

    holds: Callable[[str], str]
    message: str
    reason: Reason = "FieldValueInvalid"


def ratcheted(rule: Rule) -> Rule:
    """Accepts a mistake that is stored already, from an older definition, so that other fields can be changed.

    For fields that did not change the API server does this by itself. But the whole spec changes with any field of it.
    """
    before = rule.holds.replace("self.", "o.")
    holds = f"({rule.holds}) || oldSelf.optMap(o, !({before})).orValue(false)"
    return replace(rule, holds=holds, old_is_optional=True)


def literal(value: str) -> str:
    """A literal of CEL."""
    plain = value.isascii() and value.isprintable() and "'" not in value
    return f"r'{value}'" if plain and "\\" in value else f"'{value}'" if plain else json.dumps(value)


def listed(values: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, values))}]"


def is_in(it: str, values: Sequence[str]) -> str:
    return f"{it} == {literal(values[0])}" if len(values) == 1 else f"{it} in {listed(values)}"


def is_not_in(it: str, values: Sequence[str]) -> str:
    return f"{it} != {literal(values[0])}" if len(values) == 1 else f"!({it} in {listed(values)})"


def fits(it: str, pattern: str) -> str:
    """Whether all of the text matches."""
    return f"{it}.matches({literal(f'^({pattern})$')})"


def matches(pattern: str, message: str) -> Cel:
    return Cel(lambda it: fits(it, pattern), message)


def refused_names(refused: Iterable[tuple[str, str]]) -> tuple[Cel, ...]:
    """`refused` has regular expressions for names in lower case, each with the reason."""
    by_message: dict[str, list[str]] = {}
    for pattern, message in refused:
        by_message.setdefault(message, []).append(pattern)
    return tuple(_is_not("|".join(patterns), message) for message, patterns in by_message.items())


def _is_not(pattern: str, message: str) -> Cel:
    return Cel(lambda it: f"!{fits(f'{it}.lowerAscii()', pattern)}", message, "FieldValueForbidden")
