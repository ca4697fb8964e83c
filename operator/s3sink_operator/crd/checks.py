"""What a single value must be like, as CEL: one entry for every validator of the parser's.

Patterns are the parser's own, and so are most words: a person reads the same of `kubectl` and of `s3sink check`.
CEL and not the schema's `pattern`, which would answer with the pattern and nothing else.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import ascii_letters
from typing import Any, Literal

from pydantic import TypeAdapter

from s3sink_job.spec import patterns
from s3sink_job.spec.datepatterns import MOST, RESERVED
from s3sink_job.spec.format import NO_DELIMITERS
from s3sink_job.spec.properties import PREFIXED, PROPERTY, REFUSED_PROPERTIES, SECRET_PROPERTIES
from s3sink_job.spec.quantities import LONGEST_AMOUNT
from s3sink_job.spec.sparkconf import REFUSED_SETTINGS, SETTING
from s3sink_job.spec.texts import PREFIX_BYTES, TOPIC_LENGTH

Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]
Rule = dict[str, Any]
_UNICODE_FLAG = 32


@dataclass(frozen=True)
class Check:
    """`holds` writes the condition down for a value, `self` or a map's key. Where it is Forbidden the API server
    does not repeat the value, which may be a secret."""

    holds: Callable[[str], str]
    message: str
    reason: Reason = "FieldValueInvalid"


def rule(
    expression: str, message: str, *, at: str = "", reason: Reason = "FieldValueInvalid", message_expression: str = ""
) -> Rule:
    """`at` leads to the field to blame."""
    made: Rule = {"rule": expression, "message": message}
    if message_expression:
        made["messageExpression"] = message_expression
    if reason != "FieldValueInvalid":
        made["reason"] = reason
    return made | {"fieldPath": at} if at else made


def text(value: str) -> str:
    """A literal of CEL."""
    plain = value.isascii() and value.isprintable() and "'" not in value
    return f"r'{value}'" if plain and "\\" in value else f"'{value}'" if plain else json.dumps(value)


def listed(values: Iterable[str]) -> str:
    return f"[{', '.join(map(text, values))}]"


def says_nothing(options: Any, of: str = "self") -> str:
    """Whether the options of a format, a section of `of`, are those that hold anyway."""
    section = f"{of}.{type(options).__name__.lower()}"
    written = TypeAdapter(type(options)).dump_python(options, by_alias=True)
    return f"({' && '.join(_is_or_absent(f'{section}.{name}', value) for name, value in written.items())})"


def _is_or_absent(field: str, value: Any) -> str:
    match value:
        case bool():
            return f"(!has({field}) || {field} == {str(value).lower()})"
        case str():
            return f"(!has({field}) || {field} == {text(value)})"
        case _:
            return f"(!has({field}) || quantity(string({field})).compareTo(quantity('{value}')) == 0)"


def _matches(pattern: str, message: str, reason: Reason = "FieldValueInvalid") -> Check:
    return Check(lambda it: f"{it}.matches({text(f'^({pattern})$')})", message, reason)


def _is_not(pattern: str, message: str) -> Check:
    """Of a key, whatever its case."""
    return Check(lambda it: f"!{it}.lowerAscii().matches({text(f'^({pattern})$')})", message, "FieldValueForbidden")


def _by_message(refused: Iterable[tuple[str, str]]) -> tuple[Check, ...]:
    grouped: dict[str, list[str]] = {}
    for pattern, why in refused:
        grouped.setdefault(why, []).append(pattern)
    return tuple(_is_not("|".join(found), why) for why, found in grouped.items())


def _no_user_info(message: str) -> Check:
    return Check(lambda it: f"!{it}.matches({text(patterns.USER_INFO)})", message, "FieldValueForbidden")


def _has_none(pattern: str, message: str) -> Check:
    """Of a date pattern, outside of its quotes."""
    return Check(lambda it: f"""!{it}.matches({text(f"^([^']*'[^']*')*[^']*({pattern})")})""", message)


_NO_LETTERS = "".join(letter for letter in ascii_letters if letter not in MOST)
_MOST_OF_EACH = ", ".join(
    f"{most} of {''.join(letter for letter in MOST if MOST[letter] == most)}" for most in sorted(set(MOST.values()))
)
_NO_CONTROL = _matches(patterns.NO_CONTROL, "must not hold control characters or line breaks")
_BUCKET = "must be a bucket name of lower-case letters, digits, hyphens and single dots"
_TOPIC = "must be a Kafka topic name: 1 to 249 letters, digits, dots, hyphens or underscores"
_SECRET_URL = "must not carry a user or password; put them into a Secret"  # noqa: S105
_KEPT_IN_SECRETS = "put it into a Secret named in propertiesFrom"

# By module and name of the parser's validator.
_CHECKS: dict[str, tuple[Check, ...]] = {
    "texts._no_control": (_NO_CONTROL,),
    "texts._not_empty": (Check(lambda it: f"{it}.trim() != ''", "must not be empty"),),
    "texts._topic": (
        _matches(patterns.TOPIC, _TOPIC),
        Check(lambda it: f"!({it} in ['.', '..'])", _TOPIC),
    ),
    "texts._bucket": (
        Check(
            lambda it: f"!{it}.contains('/')",
            "must be the bucket's name alone; the rest is destination.prefix",
        ),
        Check(
            lambda it: f"{it}.contains('/') || ({_matches(patterns.BUCKET, '').holds(it)} && !{it}.contains('..'))",
            _BUCKET,
        ),
        Check(lambda it: f"!{it}.matches({text(f'^{patterns.IP_ADDRESS}$')})", "must be a bucket name, no IP address"),
    ),
    "texts._prefix": (
        _NO_CONTROL,
        Check(
            lambda it: f"{it} == '' || {it}.split('/').all(s, !(s in ['', '.', '..']))",
            "must have no slash at either end and no empty, . or .. segment",
        ),
        Check(
            lambda it: f"size(bytes({it})) <= {PREFIX_BYTES}",
            f"must have at most {PREFIX_BYTES} bytes, since keys end at 1024",
        ),
    ),
    "texts._servers": (
        Check(lambda it: f"!{it}.contains('@')", _SECRET_URL, "FieldValueForbidden"),
        Check(
            lambda it: f"{it}.contains('@') || {_matches(patterns.SERVERS, '').holds(it)}",
            "must be host:port, or several with commas between, such as kafka:9092",
        ),
    ),
    "texts._url": (
        Check(lambda it: f"!{it}.contains('@')", _SECRET_URL, "FieldValueForbidden"),
        Check(
            lambda it: f"!{it}.contains('?') && !{it}.contains('#')",
            "must be a URL without query or fragment",
            "FieldValueForbidden",
        ),
        Check(
            lambda it: f"{it}.matches('[@?#]') || {_matches(patterns.URL, '').holds(it)}",
            "must be an http:// or https:// URL",
        ),
    ),
    "schedule._cron": (
        Check(
            lambda it: (
                f"{it} in {listed(patterns.CRON_NAMES)} || {_matches(patterns.CRON, '').holds(f'{it}.lowerAscii()')}"
            ),
            'must be a cron schedule of five fields, such as "0 * * * *"',
        ),
    ),
    "quantities.parse_quantity": (_matches(patterns.QUANTITY, "must be a quantity such as 64Mi"),),
    "quantities._read_duration": (_matches(patterns.DURATION, "must be a duration such as 50ms, 30s, 15m or 1h30m"),),
    "quantities._read_cpu": (_matches(patterns.CPU, "must be an amount of CPU such as 500m or 2"),),
    "quantities._read_instant": (
        _matches(patterns.INSTANT, "must be a time from 1970 on, with its zone, such as 2026-01-01T00:00:00Z"),
    ),
    "quantities._positive": (
        Check(
            lambda it: f"!{_matches(patterns.DURATION, '').holds(it)} || duration({it}) > duration('0s')",
            "must be longer than 0s, and shorter than 292 years",
        ),
    ),
    "layout._date_pattern": (
        Check(lambda it: f"""{it}.split("'").size() % 2 == 1""", "must close every quote, as in 'year='yyyy"),
        _has_none(
            f"[{_NO_LETTERS}]",
            f"must not use letters outside of quotes that stand for none of {' '.join(sorted(MOST))}",
        ),
        _has_none(r"[\[\]{}#]", f"must have {' '.join(RESERVED)} in quotes, since Java keeps them for other things"),
        _has_none(
            "|".join(f"{letter}{{{most + 1}}}" for letter, most in MOST.items()),
            f"must have no more of a letter in a row than {_MOST_OF_EACH}",
        ),
        Check(lambda it: f"""!{it}.matches({text("(^|/)'?(/|$)")})""", "must name a folder on both sides of each /"),
    ),
    "format._separates": (
        Check(
            lambda it: f"!({it} in {listed(NO_DELIMITERS)})",
            'must not be a quote or a line break; write "," or ";" or "\\t"',
        ),
    ),
    "destination._not_reserved": (
        Check(lambda it: f"!{it}.startsWith('aws:')", "must be a tag key that S3 takes, not under aws:"),
    ),
    "properties._name": (
        _matches(PROPERTY, "must be a Kafka property's name: letters, digits, dots, hyphens and underscores"),
        _is_not(PREFIXED, "must be the Java client's name, without Spark's prefix"),
        *_by_message((*REFUSED_PROPERTIES, SECRET_PROPERTIES)),
    ),
    "properties._value": (
        _no_user_info(f"must not hold a URL with a user or password; {_KEPT_IN_SECRETS}"),
        Check(
            lambda it: f"!{it}.lowerAscii().contains('loginmodule')",
            f"must not hold JAAS; {_KEPT_IN_SECRETS}",
            "FieldValueForbidden",
        ),
        Check(
            lambda it: f"!{it}.contains('${{')",
            "must not hold ${, which Kafka's client would replace",
            "FieldValueForbidden",
        ),
    ),
    "sparkconf._name": (
        _matches(SETTING, "must be the name of a Spark setting, which starts with spark."),
        *_by_message(REFUSED_SETTINGS),
    ),
    "sparkconf._value": (_no_user_info("must not hold a URL with a user or password"),),
    # These are seen to by the enumeration, by `rules.py`, and by nobody: see `unseen.py`.
    "format._not_lzo": (),
    "layout._no_item_twice": (),
    "texts._regex": (),
}
LENGTHS = {"texts._topic": (1, TOPIC_LENGTH), "texts._bucket": (3, 63), "texts._prefix": (0, PREFIX_BYTES)}
AMOUNTS = {"quantities.parse_quantity", "quantities._read_cpu"}
"""Whole numbers or text."""
TEXTS = {"quantities._read_duration", "quantities._read_instant"}
"""Text, whatever the parser makes of it."""
LONGEST = LONGEST_AMOUNT


def name_of(validator: Callable[..., Any]) -> str:
    return f"{validator.__module__.rpartition('.')[2]}.{validator.__qualname__}"


def checks_of(validator: Callable[..., Any]) -> tuple[Check, ...]:
    """LookupError for a validator that has no place here yet."""
    name = name_of(validator)
    if name in _CHECKS:
        return _CHECKS[name]
    known = inspect.getclosurevars(validator).nonlocals
    match validator.__qualname__.split(".")[0]:
        case "matching":
            return _matching(known)
        case "size_between":
            return (_size_between(known["low"], known["high"]),)
        case "no_repeats":
            return ()
    raise LookupError(f"no check for the validator {name}")


def _matching(known: Mapping[str, Any]) -> tuple[Check, ...]:
    compiled = known["compiled"]
    # Of \w RE2 knows the ASCII letters only.
    pattern = compiled.pattern.replace(r"\w", r"\p{L}\p{N}_") if compiled.flags & _UNICODE_FLAG else compiled.pattern
    return (_matches(pattern, f"must be {known['must_be']}"),)


def longest(validator: Callable[..., Any]) -> int | None:
    """Of a text, where the validator says so."""
    known = inspect.getclosurevars(validator).nonlocals
    found: int | None = known.get("longest")
    return found


def _size_between(low: str, high: str) -> Check:
    return Check(
        lambda it: (
            f"!{_matches(patterns.QUANTITY, '').holds(it)} || (quantity({it}).compareTo(quantity('{low}')) >= 0"
            f" && quantity({it}).compareTo(quantity('{high}')) <= 0)"
        ),
        f"must be at least {low} and at most {high}",
    )
