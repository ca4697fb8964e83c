"""Messages for pydantic's errors: what is wrong, what would be right, and the value unless it may be a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from s3sink_api.spec.field_errors import VALIDATED, FieldError, Refusal
from s3sink_api.spec.field_locations import FieldLocation, Location, choices, fields, locate, sections, tag

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_SHOWN = 60
_MAY_BE_SECRET = frozenset(
    {
        "properties",
        "propertiesFrom",
        "conf",
        "credentials",
        "credentialsFrom",
        "caFrom",
        "secretRef",
        "podTemplate",
        "labels",
        "annotations",
        "serviceAccountAnnotations",
    }
)


def path(parts: Location) -> str:
    """`spec.source.topics[0]`, `spec.source.properties[sasl.mechanism]`."""
    text = ""
    for part in parts:
        if isinstance(part, int) or not _PLAIN.fullmatch(part):
            text += f"[{str(part)[:_LONGEST_SHOWN]}]" if text else f"{part}"
        else:
            text += f".{part}" if text else part
    return text or "document"


def shown(value: object, parts: Location) -> str:
    """`, got 0`; nothing where the value may be a secret."""
    if _MAY_BE_SECRET.intersection(map(str, parts)):
        return ""
    if isinstance(value, dict):
        return ", got a mapping"
    if isinstance(value, list | tuple):
        return ", got a list"
    if isinstance(value, str) and "@" in value:
        return ""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "…"
    return f", got {text}"


def field_error(error: ErrorDetails) -> FieldError:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    place = locate(error["loc"], as_written=kind == "unexpected_keyword_argument")
    if kind == "value_error" and isinstance(refusal := context.get("error"), Refusal):
        parts = _follow(place.parts, refusal.at)
        value = value if refusal.value is VALIDATED else refusal.value
        got = shown(value, parts) if refusal.show else ""
        hint = f"; {refusal.hint}" if refusal.hint else ""
        return FieldError(path(parts), f"{refusal.message}{got}{hint}")
    if kind == "unexpected_keyword_argument":
        return FieldError(path(place.parts), _unknown_field(place))
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        return _wrong_tag(place, value, context)
    if kind == "missing":
        values = choices(place.kind)
        return FieldError(path(place.parts), f"must be set to {_one_of(values)}" if values else "must be set")
    if kind == "literal_error":
        return FieldError(path(place.parts), _wrong_choice(choices(place.kind), value, place.parts))
    word = _MESSAGES.get(kind)
    if word is None:
        return FieldError(path(place.parts), f"is not valid ({kind})")
    return FieldError(path(place.parts), word(value, context, shown(value, place.parts)))


def _follow(parts: Location, at: Iterable[str | int]) -> Location:
    for step in at:
        parts = parts[:-1] if step == ".." else (*parts, step)
    return parts


def _unknown_field(place: FieldLocation) -> str:
    name = str(place.parts[-1])
    if having := [tag(variant)[1] for variant in place.variants if name in fields(variant)]:
        discriminator, given = tag(place.owner)
        return f"is only for {discriminator}: {', '.join(having)}, and {discriminator} is {given}"
    return f"unknown field{_near(name, tuple(fields(place.owner)))}"


def _near(name: str, known: tuple[str, ...]) -> str:
    by_folded = {_folded(candidate): candidate for candidate in known}
    close = get_close_matches(_folded(name), by_folded, n=1, cutoff=0.6)
    if close:
        return f"; did you mean `{by_folded[close[0]]}`?"
    return f"; the fields here are {', '.join(known)}"


def _folded(name: str) -> str:
    return re.sub(r"[_.\s-]", "", name).lower()


def _wrong_choice(values: tuple[str, ...], value: object, parts: Location) -> str:
    message = f"must be {_one_of(values)}{shown(value, parts)}"
    close = get_close_matches(_folded(str(value)), {_folded(v): v for v in values}, n=1, cutoff=0.75)
    if isinstance(value, str) and close and len(values) > 1:
        meant = next(v for v in values if _folded(v) == close[0])
        return f"{message}; did you mean {meant}?"
    return message


def _one_of(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else f"one of {', '.join(values)}"


def _wrong_tag(place: FieldLocation, value: Any, context: dict[str, Any]) -> FieldError:
    discriminator = context["discriminator"].strip("'")
    options = [tag(section)[1] for section in sections(place.kind)]
    parts = (*place.parts, discriminator)
    if discriminator not in value:
        return FieldError(path(parts), f"must be set to {_one_of(tuple(options))}")
    return FieldError(path(parts), _wrong_choice(tuple(options), value[discriminator], parts))


def _mapping(value: Any, _: dict[str, Any], got: str) -> str:
    return "must be a mapping" + (", got text" if isinstance(value, str) else got)


def _list(value: Any, _: dict[str, Any], got: str) -> str:
    hint = f"; write [{value}]" if got and isinstance(value, str) and _PLAIN.fullmatch(value) else ""
    return f"must be a list{got}{hint}"


def _text(value: Any, _: dict[str, Any], got: str) -> str:
    hint = "" if isinstance(value, dict | list) else "; write it in quotes"
    return f"must be text{got}{hint}"


def _whole_number(value: Any, _: dict[str, Any], got: str) -> str:
    quoted = isinstance(value, str) and re.fullmatch(r"[0-9]+", value)
    return f"must be a whole number{got}{'; write it without quotes' if quoted else ''}"


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


_MESSAGES: dict[str, Callable[[Any, dict[str, Any], str], str]] = {
    "dict_type": _mapping,
    "mapping_type": _mapping,
    "dataclass_type": _mapping,
    "tuple_type": _list,
    "list_type": _list,
    "string_type": _text,
    "int_type": _whole_number,
    "int_from_float": _whole_number,
    "int_parsing": _whole_number,
    "int_parsing_size": _whole_number,
    "bool_type": lambda _v, _c, got: f"must be true or false{got}",
    "greater_than_equal": lambda _v, c, got: f"must be at least {c['ge']}{got}",
    "less_than_equal": lambda _v, c, got: f"must be at most {c['le']}{got}",
    "too_short": lambda _v, c, _g: f"must have at least {_items(c['min_length'])}, got {c['actual_length']}",
    "too_long": lambda v, c, _g: f"must have at most {_items(c['max_length'])}, got {len(v)}",
    "string_too_short": lambda _v, c, got: f"must have at least {c['min_length']} characters{got}",
    "string_too_long": lambda _v, c, got: f"must have at most {c['max_length']} characters{got}",
}
