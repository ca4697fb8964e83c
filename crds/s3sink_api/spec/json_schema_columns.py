"""The columns of a supplied JSON Schema. Only types are used; values are not validated against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

SIMPLE = {"integer": "int64", "number": "double", "string": "text", "boolean": "bool"}

ANYTHING = "json"
"""The type of a text column that holds any value as JSON."""
MORE = "_more"
"""The text column for all fields without a column of their own, as one JSON object."""


class NotASchema(ValueError):
    """The JSON Schema cannot be used as columns. The message has the place in it."""


def columns_of(text: str) -> dict[str, Any]:
    """The type of a row, as `{"struct": {name: type}}`."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise NotASchema(f"is not JSON: {error}") from None
    if not isinstance(schema, Mapping) or _types(schema, "$") != {"object"}:
        raise NotASchema('must be a JSON Schema of an object: {"type": "object", "properties": {…}}')
    row = _struct(schema, "$")
    if row is None:
        raise NotASchema("has no properties: without any there are no columns")
    if MORE in row["struct"]:
        raise NotASchema(f"has a property {MORE!r}, which is reserved for the fields without a column")
    if schema.get("additionalProperties") is not False:
        row["struct"][MORE] = ANYTHING
    return row


def _type(schema: Any, where: str) -> Any:
    if not isinstance(schema, Mapping):
        raise NotASchema(f"{where} must be an object that says a type")
    types = _types(schema, where)
    if types == {"object"}:
        return _struct(schema, where) or ANYTHING
    if types == {"array"}:
        return {"list": _type(schema["items"], f"{where}.items")} if "items" in schema else ANYTHING
    if types == {"integer", "number"}:
        return "double"
    return SIMPLE[types.pop()] if len(types) == 1 else ANYTHING


def _struct(schema: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise NotASchema(f"{where}.properties must be an object")
    if not properties:
        return None
    return {"struct": {name: _type(inner, f"{where}.{name}") for name, inner in properties.items()}}


def _types(schema: Mapping[str, Any], where: str) -> set[str]:
    """The types that it allows, without null, which every column allows."""
    given = schema.get("type", [])
    names = {given} if isinstance(given, str) else set(given) if isinstance(given, list) else {str(given)}
    if unknown := sorted(names - {*SIMPLE, "object", "array", "null"}):
        raise NotASchema(f"{where} has the type {unknown[0]!r}, which JSON Schema does not know")
    return names - {"null"}
