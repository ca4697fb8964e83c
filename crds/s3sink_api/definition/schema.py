"""The schema of the spec, generated from its dataclasses: types, limits, defaults and rules.

`Checked` and `CEL`, beside the validators of a value or a section, have what the API server needs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from s3sink_api.cel import Reason, Rule, forbidden, listed, literal, required
from s3sink_api.definition.descriptions import described
from s3sink_api.spec import format_quantity
from s3sink_api.spec.checked_types import Checked
from s3sink_api.spec.field_locations import tag

Schema = dict[str, Any]

_LARGEST = 2**63 - 1
"""The largest int64. As a bound it has no effect: the API server reads larger numbers as this one."""


def section_schema(section: Any, *, in_list: bool = False) -> Schema:
    """The schema of one dataclass. Items of lists get no defaults: a three-way diff would show them as drift."""
    properties: Schema = {}
    needed = []
    for info in section.__pydantic_fields__.values():
        name = str(info.alias)
        schema = _field_schema(info, in_list=in_list)
        schema["description"] = described(section.__name__, name) + _written_as(schema)
        if info.is_required():
            needed.append(name)
        elif not in_list and (default := _default(info, schema)) is not None:
            schema["default"] = default
        properties[name] = schema
    return _object(properties, needed, rules_of(section))


def _written_as(schema: Schema) -> str:
    """How to write a quantity or a duration."""
    words = [str(r["message"]) for r in schema.get("x-kubernetes-validations", ())]
    found = next((w.removeprefix("must be ") for w in words if w.startswith(_LOOKS)), "")
    return f" {found[0].upper()}{found[1:]}." if found else ""


def _field_schema(info: FieldInfo, *, in_list: bool) -> Schema:
    return _annotated(info.annotation, info.metadata, in_list=in_list)


def _annotated(kind: Any, metadata: Iterable[Any], *, in_list: bool) -> Schema:
    given = next((item.keywords for item in metadata if isinstance(item, Checked) and item.replaces), None)
    return _refined(_schema(kind, in_list=in_list) if given is None else dict(given), metadata)


def _schema(kind: Any, *, in_list: bool) -> Schema:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(args[0], kind.__metadata__, in_list=in_list)
    if origin in {Union, UnionType}:
        members = [_bare(member) for member in args if member is not NoneType]
        if len(members) == 1:
            (given,) = (member for member in args if member is not NoneType)
            return _schema(given, in_list=in_list)
        return _union(members, in_list=in_list)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is tuple:
        items = _schema(args[0], in_list=True)
        items.setdefault("description", "One of them.")
        return {"type": "array", "items": items}
    if origin is Mapping:
        return _map(*args)
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


def _map(key: Any, value: Any) -> Schema:
    """Rules for keys are rules of the map. So are those for values: the API server would show a value in its answer."""
    values = _schema(value, in_list=False)
    values.pop("x-kubernetes-validations", None)
    schema: Schema = {"type": "object", "additionalProperties": values}
    for it, kind in (("k", key), ("self[k]", value)):
        for checked in _checks_of(kind):
            if it == "k" and (most := checked.keywords.get("maxLength")):
                schema = _with_rules(schema, _of_each(f"size(k) <= {most}", f"must have at most {most} characters"))
            rules = [_of_each(cel.holds(it), cel.message, cel.reason) for cel in checked.cel]
            schema = _with_rules(schema, *rules)
    return schema


def _of_each(holds: str, message: str, reason: Reason = "FieldValueInvalid") -> Rule:
    """The message has the key, since a path cannot have it."""
    named = f"self.filter(k, !({holds}))[0] + {literal(f' {message}')}"
    return Rule(f"self.all(k, {holds})", message, reason=reason, message_expression=named)


def _checks_of(kind: Any) -> list[Checked]:
    metadata = kind.__metadata__ if get_origin(kind) is Annotated else ()
    return [item for item in metadata if isinstance(item, Checked)]


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _union(members: list[Any], *, in_list: bool) -> Schema:
    """One object with the fields of all variants, and rules that say which belong to which."""
    discriminator = tag(members[0])[0]
    properties: Schema = {}
    allowed: dict[str, list[str]] = {}
    needed: dict[str, list[str]] = {}
    for member in members:
        _, variant = tag(member)
        for info in member.__pydantic_fields__.values():
            if (name := str(info.alias)) == discriminator:
                continue
            schema = _field_schema(info, in_list=True)
            properties[name] = schema | {"description": described(member.__name__, name)}
            allowed.setdefault(name, []).append(variant)
            if info.is_required():
                needed.setdefault(name, []).append(variant)
    enumeration = {"type": "string", "enum": [tag(member)[1] for member in members]}
    enumeration["description"] = described(members[0].__name__, discriminator)
    rules = []
    for name, variants in allowed.items():
        has, among = f"has(self.{_escaped(name)})", f"self.{discriminator} in {listed(variants)}"
        only = f"is only for {discriminator}: {', '.join(variants)}"
        rules.append(forbidden(f"!{has} || {among}", only, at=f".{name}"))
        if needing := needed.get(name, []):
            must = f"must be set with {discriminator}: {', '.join(needing)}"
            rules.append(required(f"!(self.{discriminator} in {listed(needing)}) || {has}", must, at=f".{name}"))
    for member in members:
        others = f"self.{discriminator} != '{tag(member)[1]}' || "
        rules += [dataclasses.replace(rule, holds=others + rule.holds) for rule in rules_of(member)]
    return _object({discriminator: enumeration, **properties}, [discriminator], rules)


def rules_of(section: Any) -> tuple[Rule, ...]:
    found: tuple[Rule, ...] = getattr(section, "CEL", ())
    return found


def _escaped(field: str) -> str:
    """Keywords of CEL are escaped in rules."""
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
            case Checked():
                schema = _checked(schema, item)
            case BeforeValidator() | AfterValidator():
                raise TypeError(f"{item.func} has no CEL: use `after` or `before` of checked_types")
    return schema


def _sized(schema: Schema, bound: str) -> str:
    return bound + {"array": "Items", "object": "Properties"}.get(str(schema.get("type")), "Length")


def _checked(schema: Schema, checked: Checked) -> Schema:
    it = "string(self)" if schema.get("x-kubernetes-int-or-string") else "self"
    rules = [Rule(cel.holds(it), cel.message, reason=cel.reason) for cel in checked.cel]
    return _with_rules(schema if checked.replaces else {**schema, **checked.keywords}, *rules)


def _with_rules(schema: Schema, *rules: Rule) -> Schema:
    if not rules:
        return schema
    before = schema.get("x-kubernetes-validations", [])
    return schema | {"x-kubernetes-validations": [*before, *(rule.to_schema() for rule in rules)]}


def _object(properties: Schema, needed: list[str], rules: Iterable[Rule]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if needed:
        schema["required"] = needed
    return _with_rules(schema, *rules)


def _default(info: FieldInfo, schema: Schema) -> Any:
    """As a manifest would have it. Empty values are no defaults: they mean the same as an absent field."""
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
