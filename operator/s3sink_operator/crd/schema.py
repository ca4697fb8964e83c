"""From the dataclasses of `s3sink_job.spec` to a structural schema: types, patterns, limits, defaults, rules.

The parser's own validators are the source: a field that uses one gets the schema that belongs to it here, so
that a new field of a known kind needs no second definition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from s3sink_job.spec import format_quantity
from s3sink_operator.crd.checks import (
    AMOUNTS,
    LENGTHS,
    LONGEST,
    TEXTS,
    Reason,
    Rule,
    checks_of,
    listed,
    longest,
    name_of,
    rule,
    text,
)
from s3sink_operator.crd.descriptions import described
from s3sink_operator.crd.rules import NO_ITEM_TWICE, RULES

Schema = dict[str, Any]

_LARGEST = 2**63 - 1
"""Of int64; as a bound of its own the API server cannot tell it from what lies beyond."""

_UNIONS: dict[frozenset[str], str] = {
    frozenset({"FromEarliest", "FromLatest", "FromTimestamp", "FromOffsets"}): "StartingOffsets",
    frozenset({"Aes256", "Kms", "CustomerKey"}): "Encryption",
    frozenset({"ByTopic", "ByPartition", "ByField", "ByKey", "ByHeader", "ByTime"}): "PartitionItem",
}
_DISCRIMINATORS = {"StartingOffsets": "position", "Encryption": "type", "PartitionItem": "type"}

_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "maxLength": LONGEST,
}
_ONCE_EACH: Schema = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topic", "partition"]}


def section_schema(section: Any, *, in_list: bool = False) -> Schema:
    """The schema of one dataclass. Items of lists get no defaults: a three-way diff would show them as drift."""
    properties: Schema = {}
    required = []
    for info in section.__pydantic_fields__.values():
        name = str(info.alias)
        schema = _field_schema(name, info, in_list=in_list)
        schema["description"] = described(section.__name__, name) + _written_as(schema)
        if info.is_required():
            required.append(name)
        elif not in_list and (default := _default(info, schema)) is not None:
            schema["default"] = default
        properties[name] = schema
    return _object(properties, required, RULES.get(section.__name__, []))


def _written_as(schema: Schema) -> str:
    """What a text must look like, where its type does not say so."""
    words = [str(r["message"]) for r in schema.get("x-kubernetes-validations", ())]
    found = next((w.removeprefix("must be ") for w in words if w.startswith(_LOOKS)), "")
    return f" {found[0].upper()}{found[1:]}." if found else ""


def _field_schema(name: str, info: FieldInfo, *, in_list: bool) -> Schema:
    schema = _schema(name, info.annotation, in_list=in_list)
    return _refined(schema, info.metadata)


def _schema(name: str, kind: Any, *, in_list: bool) -> Schema:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _refined(_schema(name, args[0], in_list=in_list), kind.__metadata__)
    if origin in {Union, UnionType}:
        members = [_bare(member) for member in args if member is not NoneType]
        if len(members) == 1:
            (given,) = (member for member in args if member is not NoneType)
            return _schema(name, given, in_list=in_list)
        return _union(members, in_list=in_list)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        items = _schema(name, args[0], in_list=True)
        items.setdefault("description", "One of them.")
        schema: Schema = {"type": "array", "items": items}
        return schema | _ONCE_EACH if name == "offsets" else schema
    if name == "podTemplate":
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if origin is Mapping:
        return _map(name, *args)
    if dataclasses.is_dataclass(kind):
        return section_schema(kind, in_list=in_list)
    return dict(_PLAIN[kind])


_LOOKS = ("must be a quantity such as", "must be a duration such as", "must be an amount of CPU such as")
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    AwareDatetime: {"type": "string"},
}


def _map(name: str, key: Any, value: Any) -> Schema:
    """Rules for keys stand on the map; so do those for values that may be secrets, which would be repeated else."""
    values = _schema(name, value, in_list=False)
    values.pop("x-kubernetes-validations", None)
    schema: Schema = {"type": "object", "additionalProperties": values}
    for it, kind in (("k", key), ("self[k]", value)):
        for validator in _validators(kind):
            if (most := longest(validator)) and it == "k":
                schema = _also(schema, _of_each(f"size(k) <= {most}", f"must have at most {most} characters"))
            for check in checks_of(validator):
                schema = _also(schema, _of_each(check.holds(it), check.message, check.reason))
    return schema


def _of_each(holds: str, message: str, reason: Reason = "FieldValueInvalid") -> Rule:
    """The message names the key, which a path cannot."""
    named = f"self.filter(k, !({holds}))[0] + {text(f' {message}')}"
    return rule(f"self.all(k, {holds})", message, reason=reason, message_expression=named)


def _validators(kind: Any) -> list[Callable[..., Any]]:
    metadata = kind.__metadata__ if get_origin(kind) is Annotated else ()
    return [item.func for item in metadata if isinstance(item, AfterValidator)]


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _union(members: list[Any], *, in_list: bool) -> Schema:
    """One object with the fields of all variants, and rules that say which belong to which."""
    name = _UNIONS[frozenset(member.__name__ for member in members)]
    tag = _DISCRIMINATORS[name]
    tags: list[str] = []
    properties: Schema = {}
    allowed: dict[str, list[str]] = {}
    needed: dict[str, list[str]] = {}
    for member in members:
        fields = {str(info.alias): info for info in member.__pydantic_fields__.values()}
        (value,) = get_args(fields.pop(tag).annotation)
        tags.append(value)
        for field, info in fields.items():
            schema = _field_schema(field, info, in_list=True)
            properties[field] = schema | {"description": described(name, field)}
            allowed.setdefault(field, []).append(value)
            if info.is_required():
                needed.setdefault(field, []).append(value)
    properties = {tag: {"type": "string", "enum": tags, "description": described(name, tag)}, **properties}
    rules = []
    for field, values in allowed.items():
        has, among = f"has(self.{_escaped(field)})", f"self.{tag} in {listed(values)}"
        only = f"is only for {tag}: {', '.join(values)}"
        rules.append(rule(f"!{has} || {among}", only, at=f".{field}", reason="FieldValueForbidden"))
        if needing := needed.get(field, []):
            must = f"must be set with {tag}: {', '.join(needing)}"
            unless = f"!(self.{tag} in {listed(needing)}) || {has}"
            rules.append(rule(unless, must, at=f".{field}", reason="FieldValueRequired"))
    return _object(properties, [tag], rules + RULES.get(name, []))


def _escaped(field: str) -> str:
    """CEL's own words are escaped in rules."""
    return f"__{field}__" if field in {"as", "in", "if", "for", "else", "namespace"} else field


def _refined(schema: Schema, metadata: Iterable[Any]) -> Schema:
    for item in metadata:
        match item:
            case FieldInfo():
                schema = _refined(schema, item.metadata)
            case Ge(ge=low):
                schema["minimum"] = low
            case Le(le=high) if int(str(high)) < _LARGEST:
                schema["maximum"] = high
            case MinLen(min_length=least):
                schema[_sized(schema, "min")] = least
            case MaxLen(max_length=most):
                schema[_sized(schema, "max")] = most
            case BeforeValidator(func=func) | AfterValidator(func=func):
                schema = _with_validator(schema, func)
    return schema


def _sized(schema: Schema, bound: str) -> str:
    return bound + {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")


def _with_validator(schema: Schema, func: Callable[..., Any]) -> Schema:
    name, it = name_of(func), "self"
    if name in AMOUNTS:
        schema = dict(_INT_OR_STRING)
    elif name in TEXTS:
        schema = {"type": "string", "maxLength": LONGEST}
    elif name in LENGTHS:
        schema |= dict(zip(("minLength", "maxLength"), LENGTHS[name], strict=True))
    elif most := longest(func):
        schema["maxLength"] = most
    if schema.get("x-kubernetes-int-or-string"):
        it = "string(self)"
    if func.__qualname__.startswith("no_repeats"):
        return schema | {"x-kubernetes-list-type": "set"}
    if name == "layout._no_item_twice":
        return _also(schema, NO_ITEM_TWICE)
    for check in checks_of(func):
        schema = _also(schema, rule(check.holds(it), check.message, reason=check.reason))
    return schema


def _also(schema: Schema, more: Rule) -> Schema:
    return schema | {"x-kubernetes-validations": [*schema.get("x-kubernetes-validations", []), more]}


def _object(properties: Schema, required: list[str], rules: list[Rule]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if rules:
        schema["x-kubernetes-validations"] = [dict(r) for r in rules]
    return schema


def _default(info: FieldInfo, schema: Schema) -> Any:
    """As a manifest would write it. What means "off" or "none" has no default: absent says it already."""
    if schema.get("type") == "object" and "properties" in schema and not _is_union(info):
        # Optional sections have None as their default; all others come with the defaults of their fields.
        return None if info.get_default(call_default_factory=False) is None and not info.default_factory else {}
    value = info.get_default(call_default_factory=True)
    if value is PydanticUndefined or value is None or value in ("", (), {}):
        return None
    kind: Any = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    written = TypeAdapter(kind).dump_python(value, mode="json", by_alias=True, exclude_none=True)
    return (
        format_quantity(written) if schema.get("x-kubernetes-int-or-string") and isinstance(written, int) else written
    )


def _is_union(info: FieldInfo) -> bool:
    return info.discriminator is not None
