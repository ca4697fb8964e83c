"""Finds the field of an error of pydantic, and the section around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from s3sink_api.spec.sink import S3Sink

Location = tuple[str | int, ...]
_DISCRIMINATORS = ("type", "position")


@dataclass(frozen=True)
class FieldLocation:
    """`owner` is the section with the last field of `parts`. `variants` is the union that the section belongs to."""

    parts: Location
    kind: Any
    owner: Any = None
    variants: tuple[Any, ...] = ()


def fields(section: Any) -> dict[str, Any]:
    """The section's fields by their names in a manifest, with their types."""
    return {info.alias: info.annotation for info in section.__pydantic_fields__.values()}


def choices(kind: Any) -> tuple[str, ...]:
    """The values of an enumeration; empty for any other type."""
    for option in _options(kind):
        if get_origin(option) is Literal:
            return get_args(option)
    return ()


def tag(section: Any) -> tuple[str, str]:
    """The discriminator of a union's member and its value there."""
    known = fields(section)
    name = next(name for name in _DISCRIMINATORS if name in known)
    return name, choices(known[name])[0]


def sections(kind: Any) -> tuple[Any, ...]:
    """The dataclasses that a value of this type may be."""
    return tuple(option for option in _options(kind) if dataclasses.is_dataclass(option))


def locate(location: Location, *, as_written: bool = False) -> FieldLocation:
    """Pydantic's location without the tags of unions, which are not in a manifest.

    A default that is refused is reported under its attribute's name, which becomes the field's name here
    unless the manifest really has it `as_written`.
    """
    place, held = FieldLocation((), S3Sink), sections(S3Sink)
    variants: tuple[Any, ...] = ()
    for part in location:
        if len(held) > 1 and not variants:
            variants, held = held, tuple(section for section in held if tag(section)[1] == part)
            continue
        if held:
            name = str(part) if as_written else _manifest_name(held[0], part)
            place = FieldLocation((*place.parts, name), fields(held[0]).get(name), held[0], variants)
        elif part != "[key]":
            place = FieldLocation((*place.parts, part), _element(place.kind))
        held, variants = sections(place.kind), ()
    return place


def _manifest_name(section: Any, part: str | int) -> str:
    info = section.__pydantic_fields__.get(part)
    return str(info.alias if info else part)


def _options(kind: Any) -> tuple[Any, ...]:
    origin = get_origin(kind)
    if origin is Annotated:
        return _options(get_args(kind)[0])
    if origin in {Union, UnionType}:
        return tuple(option for member in get_args(kind) for option in _options(member))
    return (kind,)


def _element(kind: Any) -> Any:
    for option in _options(kind):
        if get_origin(option) is tuple:
            return get_args(option)[0]
        if get_origin(option) is Mapping:
            return get_args(option)[1]
    return None
