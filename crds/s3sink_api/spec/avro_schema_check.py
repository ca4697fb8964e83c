"""Checks that a text is an Avro schema, as far as that shows without a library for Avro.

The contract depends on none, because the operator needs none. The job reads the schema with one and refuses the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_SIMPLE = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_PART = {"array": "items", "map": "values", "enum": "symbols", "fixed": "size", "record": "fields", "error": "fields"}
_NAMED = {"enum", "fixed", "record", "error"}


class NotAvro(ValueError):
    """The message has the place in it."""


def check_avro_schema(text: str) -> None:
    try:
        _check(json.loads(text), "$", "", set())
    except RecursionError:
        raise NotAvro("$ is too deeply nested") from None
    except json.JSONDecodeError as error:
        raise NotAvro(f"is not JSON: {error}") from None


def _check(schema: Any, where: str, namespace: str, names: set[str]) -> None:
    """`names` are the types that are defined so far: a schema may use them by name."""
    match schema:
        case str():
            if schema not in _SIMPLE | names and _full(schema, namespace) not in names:
                raise NotAvro(f"{where} names the type {schema!r}, which neither Avro nor this schema defines")
        case list():
            if not schema:
                raise NotAvro(f"{where} is a union without a type")
            for index, member in enumerate(schema):
                _check(member, f"{where}[{index}]", namespace, names)
        case {"type": str() as kind}:
            _check_complex(schema, kind, where, namespace, names)
        case {"type": list() | Mapping() as inner}:
            _check(inner, f"{where}.type", namespace, names)
        case _:
            raise NotAvro(f"{where} must be an Avro schema: the name of a type, an object with a type, or a union")


def _check_complex(schema: Mapping[str, Any], kind: str, where: str, namespace: str, names: set[str]) -> None:
    if kind not in _PART:
        return _check(kind, f"{where}.type", namespace, names)
    if kind in _NAMED:
        namespace = _define(schema, where, namespace, names)
    part = schema.get(_PART[kind])
    at = f"{where}.{_PART[kind]}"
    if kind in {"array", "map"}:
        return _check(part, at, namespace, names)
    if kind == "fixed":
        if not isinstance(part, int):
            raise NotAvro(f"{at} must be a number")
    elif not isinstance(part, list):
        raise NotAvro(f"{at} must be a list")
    elif kind == "enum":
        if not all(isinstance(symbol, str) for symbol in part):
            raise NotAvro(f"{at} must be a list of names")
    else:
        _check_fields(part, at, namespace, names)
    return None


def _check_fields(fields: list[Any], where: str, namespace: str, names: set[str]) -> None:
    taken = set()
    for index, field in enumerate(fields):
        at = f"{where}[{index}]"
        if not isinstance(field, Mapping) or not isinstance(name := field.get("name"), str):
            raise NotAvro(f"{at} must be a field with a name and a type")
        if name in taken:
            raise NotAvro(f"{at} is a second field {name!r}")
        taken.add(name)
        _check(field.get("type"), f"{at}.type", namespace, names)


def _define(schema: Mapping[str, Any], where: str, outer: str, names: set[str]) -> str:
    """Adds the type to `names`. The namespace of the types within it."""
    name, own = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str) or not name:
        raise NotAvro(f"{where}.name must be the name of the type")
    full = _full(name, own if isinstance(own, str) else outer)
    if full in names:
        raise NotAvro(f"{where} defines the type {full!r} a second time")
    names.add(full)
    return full.rpartition(".")[0]


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
