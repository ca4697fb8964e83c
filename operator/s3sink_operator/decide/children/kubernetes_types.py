"""Checks a document against a Kubernetes type, with the type tables of the official client.

The API server would refuse a wrong document too, but later, and with a message about an object that the author of
the document has never seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubernetes.client import models

from s3sink_api.spec import FieldError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LIST = re.compile(r"[Ll]ist\[(.+)\]")
_MAP = re.compile(r"(?:Dict\[|dict\()str, ?(.+)[\])]")
_WORDS = {"str": "text", "int": "a whole number", "bool": "true or false", "float": "a number", "datetime": "a time"}
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "datetime": (str,),
}
_QUANTITIES = frozenset({"limits", "requests", "sizeLimit", "divisor", "overhead"})
_LONGEST_NAME = 60


def type_errors(path: str, kind: str, value: Any, field: str = "") -> Iterator[FieldError]:
    """An error for every value of a wrong type, and for every field that the type does not have."""
    if found := _LIST.fullmatch(kind):
        if not isinstance(value, list):
            yield FieldError(path, "must be a list")
            return
        for number, item in enumerate(value):
            yield from type_errors(f"{path}[{number}]", found[1], item, field)
    elif found := _MAP.fullmatch(kind):
        if not isinstance(value, Mapping):
            yield FieldError(path, "must be a mapping")
            return
        for name, item in value.items():
            yield from type_errors(f"{path}[{short_name(name)}]", found[1], item, field)
    elif kind in _TYPES:
        # A quantity without a unit may be a number.
        number = field in _QUANTITIES and isinstance(value, int | float)
        right = isinstance(value, _TYPES[kind]) or number
        if not right or isinstance(value, bool) != (kind == "bool"):
            yield FieldError(path, f"must be {_WORDS[kind]}")
    elif kind != "object":
        yield from _object_errors(path, kind, value)


def _object_errors(path: str, kind: str, value: Any) -> Iterator[FieldError]:
    if not isinstance(value, Mapping):
        yield FieldError(path, "must be a mapping")
        return
    table = getattr(models, kind)
    kinds = {name: table.openapi_types[attribute] for attribute, name in table.attribute_map.items()}
    for name, item in value.items():
        if name in kinds:
            yield from type_errors(field_path(path, name), kinds[name], item, name)
        else:
            yield FieldError(field_path(path, name), "is not a field that Kubernetes knows here")


def field_path(path: str, name: str) -> str:
    return f"{path}.{short_name(name)}" if _PLAIN.fullmatch(name) else f"{path}[{short_name(name)}]"


def short_name(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
