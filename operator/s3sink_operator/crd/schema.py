"""From the dataclasses of `s3sink_job.spec` to a structural schema: types, patterns, limits, defaults, rules.

The parser's own validators are the source: a field that uses one gets the schema that belongs to it here, so
that a new field of a known kind needs no second definition.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, BeforeValidator, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from s3sink_job.spec import CPU_PATTERN, DURATION_PATTERN, QUANTITY_PATTERN, format_quantity
from s3sink_operator.crd.descriptions import described
from s3sink_operator.crd.rules import RULES, Rule, rule

Schema = dict[str, Any]

LONGEST_TEXT = 4096
_LARGEST = 2**63 - 1
"""Of int64; as a bound of its own the API server cannot tell it from what lies beyond."""
_LONGEST = {"schema": 262_144, "where": 16_384, "bootstrapServers": 4096, "endpoint": 2048, "url": 2048}
_MOST_ITEMS = {
    "topics": 5000,
    "offsets": 10_000,
    "partitionBy": 16,
    "path": 32,
    "routes": 100,
    "select": 500,
    "propertiesFrom": 32,
}
_MOST_KEYS = {"properties": 256, "conf": 256, "serviceAccountAnnotations": 64}

_UNIONS: dict[frozenset[str], str] = {
    frozenset({"FromEarliest", "FromLatest", "FromTimestamp", "FromOffsets"}): "StartingOffsets",
    frozenset({"Aes256", "Kms", "CustomerKey"}): "Encryption",
    frozenset({"ByTopic", "ByPartition", "ByField", "ByKey", "ByHeader", "ByTime"}): "PartitionItem",
}
_DISCRIMINATORS = {"StartingOffsets": "position", "Encryption": "type", "PartitionItem": "type"}

_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_SERVER = r"(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]+):[0-9]{1,5}"
_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2}))?"
# By module and name of the parser's validator. RE2 has no look-ahead, and `$` there is the end of the text.
_FRAGMENTS: dict[str, Schema] = {
    "quantities.parse_quantity": _INT_OR_STRING | {"pattern": QUANTITY_PATTERN, "maxLength": 64},
    "quantities._read_duration": {"type": "string", "pattern": DURATION_PATTERN, "maxLength": 64},
    "quantities._read_cpu": _INT_OR_STRING | {"pattern": CPU_PATTERN, "maxLength": 64},
    "quantities._read_instant": {"type": "string", "pattern": f"^{_INSTANT}$", "maxLength": 64},
    "texts._topic": {"pattern": "^[a-zA-Z0-9._-]+$", "maxLength": 249},
    "texts._bucket": {"pattern": "^[a-z0-9][a-z0-9.-]*[a-z0-9]$", "minLength": 3, "maxLength": 63},
    "texts._prefix": {"pattern": r"^([^/\x00-\x1f\x7f]+(/[^/\x00-\x1f\x7f]+)*)?$", "maxLength": 512},
    "texts._servers": {"pattern": rf"^\s*{_SERVER}\s*(,\s*{_SERVER}\s*)*$"},
    "texts._url": {"pattern": r"^https?://[^\s@?#]+$"},
    "texts._not_empty": {"minLength": 1},
    "texts._no_control": {"pattern": r"^[^\x00-\x1f\x7f]*$"},
    "schedule._cron": {"maxLength": 256},
    # These are the parser's alone.
    "texts._regex": {},
    "layout._even_quotes": {},
    "layout._no_item_twice": {},
    "format._not_lzo": {},
    "properties._value": {},
    "sparkconf._value": {},
}


def section_schema(section: Any, *, in_list: bool = False) -> Schema:
    """The schema of one dataclass. Items of lists get no defaults: a three-way diff would show them as drift."""
    properties: Schema = {}
    required = []
    for info in section.__pydantic_fields__.values():
        name = str(info.alias)
        schema = _field_schema(name, info, in_list=in_list)
        schema["description"] = described(section.__name__, name)
        if info.is_required():
            required.append(name)
        elif not in_list and (default := _default(info, schema)) is not None:
            schema["default"] = default
        properties[name] = schema
    return _object(properties, required, RULES.get(section.__name__, []))


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
        return {"type": "array", "maxItems": _MOST_ITEMS[name], "items": _bounded(name, items)}
    if name == "podTemplate":
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if origin is Mapping:
        values = _bounded(name, _schema(name, args[1], in_list=in_list))
        return {"type": "object", "additionalProperties": values, "maxProperties": _MOST_KEYS.get(name, 64)}
    if dataclasses.is_dataclass(kind):
        return section_schema(kind, in_list=in_list)
    return _bounded(name, {"type": _PLAIN.get(kind, "string")})


_PLAIN = {bool: "boolean", int: "integer", float: "number"}


def _bounded(name: str, schema: Schema) -> Schema:
    """Costs of rules are estimated from the longest text and the longest list there may be."""
    if schema.get("type") == "string" and "enum" not in schema:
        schema.setdefault("maxLength", _LONGEST.get(name, LONGEST_TEXT))
    if schema.get("type") == "integer":
        schema.setdefault("format", "int64")
    return schema


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
        has, listed = f"has(self.{_escaped(field)})", ", ".join(f"'{v}'" for v in values)
        if needed.get(field) == values:
            rules.append(rule(f"{has} == (self.{tag} in [{listed}])", _must(field, tag, values)))
            continue
        rules.append(rule(f"!{has} || self.{tag} in [{listed}]", f"{field}: is only for {tag} {', '.join(values)}"))
        for value in needed.get(field, []):
            rules.append(rule(f"self.{tag} != '{value}' || {has}", f"{field}: must be set with {tag}: {value}"))
    return _object(properties, [tag], rules + RULES.get(name, []))


def _must(field: str, tag: str, values: list[str]) -> str:
    return f"{field}: must be set with {tag}: {' or '.join(values)}, and only there"


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
    fragment = _FRAGMENTS.get(f"{func.__module__.rpartition('.')[2]}.{func.__qualname__}")
    if fragment is not None:
        if "type" in fragment or "anyOf" in fragment:
            schema = {k: v for k, v in schema.items() if k not in {"type", "format", "maxLength"}}
        return schema | fragment
    known = inspect.getclosurevars(func).nonlocals
    match func.__qualname__.split(".")[0]:
        case "matching":
            return _matching(schema, known)
        case "size_between":
            return _size_between(schema, known)
        case "no_repeats":
            return schema | {"x-kubernetes-list-type": "set"}
        case "_positive":
            return _also(schema, rule("duration(self) > duration('0s')", "must be longer than 0s"))
    raise LookupError(f"no schema for the validator {func.__qualname__}")


def _matching(schema: Schema, known: Mapping[str, Any]) -> Schema:
    longest, compiled = known.get("longest"), known["compiled"]
    if longest is not None:
        schema["maxLength"] = longest
    if "(?!" not in compiled.pattern and not _is_unicode(compiled):
        schema["pattern"] = f"^({compiled.pattern})$"
    return schema


def _is_unicode(compiled: Any) -> bool:
    # RE2 knows \w for ASCII only.
    return "\\w" in compiled.pattern.lower() and not compiled.flags & 256


def _size_between(schema: Schema, known: Mapping[str, Any]) -> Schema:
    low, high = known["low"], known["high"]
    given = "quantity(string(self))"
    expression = f"{given}.compareTo(quantity('{low}')) >= 0"
    message = f"must be at least {low}"
    if high:
        expression += f" && {given}.compareTo(quantity('{high}')) <= 0"
        message += f" and at most {high}"
    return _also(schema, rule(expression, message))


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
