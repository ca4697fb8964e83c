"""The schema of `status`, generated from its types. The operator drops from a report what is not in it."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args, get_type_hints

from s3sink_api.status import Status, StatusPart, name_in_document


def part_schema(part: type[StatusPart]) -> dict[str, Any]:
    hints = get_type_hints(part)
    properties: dict[str, Any] = {}
    required = []
    for field in dataclasses.fields(part):
        name = name_in_document(field.name)
        properties[name] = _schema(hints[field.name], field.metadata.get("schema", {}))
        if field.default is dataclasses.MISSING:
            required.append(name)
    schema = {"type": "object", "description": part.__doc__, "properties": properties}
    return schema | {"required": required} if required else schema


def _schema(kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The given keywords, and the schema of the part inside."""
    inner = next((found for found in _flat(kind) if isinstance(found, type) and issubclass(found, StatusPart)), None)
    if inner is None:
        return dict(given)
    return {**given, "items": part_schema(inner)} if given else part_schema(inner)


def _flat(kind: Any) -> list[Any]:
    return [kind, *(inner for argument in get_args(kind) for inner in _flat(argument))]


STATUS = part_schema(Status)
