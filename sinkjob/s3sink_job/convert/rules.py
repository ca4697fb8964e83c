"""How one key is carried over. A system is a table of keys and rules; `apply` reports every key that it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from s3sink_api.spec.quantities import format_duration, format_quantity
from s3sink_job.convert.draft import Draft, plain

Rule = Callable[[Draft, str, Any], None]
"""Gets the draft, the key and its value; reports the key."""
Reader = Callable[[str], Any]
"""Reads a value. Raises a ValueError that says what the value must be."""

_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|secret|token|jaas|credential|private.?key|access.?key|api.?key|customer.?key"
    r"|user.?info|keystore\.key|sasl\.username|(^|\.)pass$|(^|\.)key\.id$",
    re.IGNORECASE,
)


def looks_secret(key: str) -> bool:
    """Whether the value of a key must not be shown."""
    return bool(_SECRET_KEY.search(key))


def count(text: str) -> int:
    if not re.fullmatch(r"\s*[0-9][0-9_]*\s*", text, re.ASCII):
        raise ValueError("is not a whole number")
    return int(text.replace("_", ""))


def positive(text: str) -> int:
    number = count(text)
    if number < 1:
        raise ValueError("is not a number above 0")
    return number


def flag(text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise ValueError("is neither true nor false")
    return text.strip().lower() == "true"


def size(text: str) -> str | int:
    written = format_quantity(positive(text))
    return int(written) if written.isdecimal() else written


def milliseconds(text: str) -> str:
    return format_duration(positive(text) / 1000)


def seconds(text: str) -> str:
    return format_duration(float(positive(text)))


def words(text: str) -> list[str]:
    """The items of a list with commas. Connectors ignore empty ones."""
    return [item.strip() for item in text.strip("[]").split(",") if item.strip()]


def to(path: str, read: Reader = str, difference: str = "") -> Rule:
    """The field that means the same, or nearly the same."""

    def rule(draft: Draft, key: str, value: Any) -> None:
        try:
            draft.carry(key, path, read(plain(value)), difference)
        except ValueError as error:
            draft.lost(key, f"the value {error}; set spec.{path} yourself")

    return rule


def constant_backoff(draft: Draft, key: str, value: Any) -> None:
    """Milliseconds between retries that do not grow."""
    try:
        wait = milliseconds(plain(value))
    except ValueError as error:
        draft.lost(key, f"the value {error}; set spec.errors.retries yourself")
        return
    draft.put("errors.retries.maxBackoff", wait)
    draft.carry(key, "errors.retries.backoff", wait)


def one_of(path: str, known: Mapping[str, Any], difference: str = "") -> Rule:
    """The field that means the same, for values in a table. Names are compared without case."""

    def read(text: str) -> Any:
        lower = {name.lower(): value for name, value in known.items()}
        if text.strip().lower() not in lower:
            raise ValueError(f"is none of {', '.join(known)}")
        return lower[text.strip().lower()]

    return to(path, read, difference)


def same(text: str) -> Rule:
    """Nothing to set: S3Sink always works like that."""
    return lambda draft, key, value: draft.exact(key, text)


def differs(text: str) -> Rule:
    return lambda draft, key, value: draft.different(key, text)


def lost(text: str) -> Rule:
    return lambda draft, key, value: draft.lost(key, text)


def only(fine: Collection[str], text: str, otherwise: str) -> Rule:
    """Some values mean what S3Sink does anyway, and all others are lost."""
    accepted = {value.lower() for value in fine}

    def rule(draft: Draft, key: str, value: Any) -> None:
        if plain(value).strip().lower() in accepted:
            draft.exact(key, text)
        else:
            draft.lost(key, otherwise)

    return rule


def unless_off(rule: Rule, off: Collection[str] = ("", "false", "none", "-1")) -> Rule:
    """A feature that is switched off needs nothing."""
    return lambda draft, key, value: (
        draft.exact(key, "is off there, and off here")
        if plain(value).strip().lower() in off
        else rule(draft, key, value)
    )


def secret(name: str, secret_key: str, path: str) -> Rule:
    def rule(draft: Draft, key: str, value: Any) -> None:
        if plain(value) == "":
            draft.exact(key, "is empty there, and not set here")
            return
        draft.put(path, {"secretRef": {"name": draft.secret_name(name)}})
        draft.secret(key, name, secret_key, path)

    return rule


def apply(draft: Draft, table: Mapping[str, Rule], patterns: Mapping[str, Rule] | None = None) -> None:
    """Reports every key that no code reported before: by the table, by the first pattern, or as unknown."""
    for key in draft.unreported():
        rule = table.get(key) or _by_pattern(key, patterns or {})
        if not draft.has(key):
            draft.exact(key, "is empty there, and not set here")
        elif rule is not None:
            rule(draft, key, draft.settings[key])
        if not draft.reported(key):
            draft.lost(key, f"is no key of {draft.system} that s3sink convert knows; see docs/manifest.md for its like")


def _by_pattern(key: str, patterns: Mapping[str, Rule]) -> Rule | None:
    return next((rule for pattern, rule in patterns.items() if re.fullmatch(pattern, key)), None)
