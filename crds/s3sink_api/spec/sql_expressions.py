"""Expressions of `spec.transform`, checked on their parsed tree against a list of what is allowed.

DuckDB parses them: the engine that runs them later. So there is no second grammar that could read a text otherwise.
What is not on the list is refused, also what a later release of DuckDB may add. Nothing is executed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.sql_functions import FUNCTIONS, NOT_A_FIELD, OPERATOR_KINDS, OPERATORS, TYPES
from s3sink_api.spec.sql_growth import check_growth
from s3sink_api.spec.sql_parser import SELECT, Node, children, parsed, refusal, to_sql

Path: TypeAlias = tuple[str, ...]
META_FIELDS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
"""What a record has beside the fields of its value. These names win over fields of the value."""
HEADERS = "_headers"


@dataclass(frozen=True)
class Expression:
    """One value for each row. `tree` is DuckDB's parsed tree, as JSON."""

    text: str
    tree: str
    name: str
    """Of its column; empty if it has none."""
    paths: tuple[Path, ...]
    """The fields that it reads."""
    plain: Path | None = None
    """The field, if it is nothing but a field."""

    @property
    def of_metadata(self) -> bool:
        """Whether it reads nothing of the value."""
        return all(path[0] in META_FIELDS for path in self.paths)

    def sql(self, names: Mapping[Path, str]) -> str:
        """As SQL, with these names of columns for the fields."""
        node = json.loads(self.tree)
        for inner in _nodes(node):
            if inner["class"] == "COLUMN_REF":
                inner["column_names"] = [names[tuple(inner["column_names"])]]
        return to_sql({**node, "alias": ""})


@dataclass(frozen=True)
class Star:
    """All fields of the value, but for those that are left out or replaced."""

    exclude: tuple[str, ...] = ()
    replace: tuple[Expression, ...] = ()


SelectItem: TypeAlias = Expression | Star


def parse_select(text: str) -> SelectItem:
    """May raise a Refusal."""
    node = parsed(text)
    check = _Check(text)
    if node["class"] != "STAR":
        found = _expression(text, node, check)
        if not found.name:
            raise check.refusal(node, "needs a name: add AS and the name of its column")
        return found
    if node["qualified_exclude_list"]:
        raise check.refusal(node, "has a field with a dot: EXCLUDE leaves out whole fields at the top, such as (a, b)")
    if any(value for name, value in node.items() if name not in _OF_STARS):
        raise check.refusal(node, "is not allowed: use *, * EXCLUDE (…) or * REPLACE (…)")
    replaced = tuple(_expression(text, one["value"], check, name=one["key"]) for one in node["replace_list"])
    return Star(tuple(node["exclude_list"]), replaced)


_OF_STARS = frozenset(["class", "type", "query_location", "query_location_length", "exclude_list", "replace_list"])
"""What a * may have. All else must be empty, also what a later release of DuckDB may add: ignored, it might leak."""


def parse_filter(text: str) -> tuple[Expression, ...]:
    """The conditions that must all be true. May raise a Refusal."""
    node = parsed(text)
    check = _Check(text)
    if node["class"] == "STAR":
        raise check.refusal(node, "is no condition")
    if node["alias"]:
        raise check.refusal(node, f"is a condition, and has no name: leave AS {node['alias']} out")
    return tuple(_expression(text, part, check) for part in _conjuncts(node))


def _conjuncts(node: Node) -> Iterator[Node]:
    if node["type"] == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from _conjuncts(child)
    else:
        yield node


def _expression(text: str, node: Node, check: _Check, name: str = "") -> Expression:
    node = check.checked(node)
    paths = dict.fromkeys(tuple(n["column_names"]) for n in _nodes(node) if n["class"] == "COLUMN_REF")
    plain = tuple(node["column_names"]) if node["class"] == "COLUMN_REF" else None
    name = name or node["alias"] or (plain[-1] if plain else "")
    return Expression(text, json.dumps(node), name, tuple(paths), plain)


class _Check:
    """Refuses nodes that are not on the list. `checked` returns the tree with fields of fields as one path each."""

    def __init__(self, text: str) -> None:
        self._text = text

    def checked(self, node: Node) -> Node:
        node = self._allowed(node)
        check_growth(self._text, node)
        return node

    def refusal(self, node: Node, why: str) -> Refusal:
        return refusal(self._text, node, why)

    def _allowed(self, node: Node) -> Node:
        match node["class"]:
            case "CONSTANT":
                return node
            case "COLUMN_REF":
                return self._field(node)
            case "OPERATOR" if node["type"] in OPERATOR_KINDS:
                return _as_path({**node, "children": [self._allowed(child) for child in node["children"]]})
            case "CONJUNCTION":
                return {**node, "children": [self._allowed(child) for child in node["children"]]}
            case "COMPARISON":
                return self._with(node, "left", "right")
            case "BETWEEN":
                return self._with(node, "input", "lower", "upper")
            case "CAST":
                self._check_type(node["type_expr"])
                return self._with(node, "child")
            case "CASE":
                checks = [self._with(one, "when_expr", "then_expr") for one in node["case_checks"]]
                return {**self._with(node, "else_expr"), "case_checks": checks}
            case "FUNCTION":
                return self._function(node)
        raise self.refusal(node, f"is not allowed: {_KINDS.get(node['class'], 'it')} is none of what is")

    def _with(self, node: Node, *children: str) -> Node:
        return {**node, **{name: self._allowed(node[name]) for name in children}}

    def _field(self, node: Node) -> Node:
        name = node["column_names"][0]
        start = node["query_location"] - len(SELECT)
        quoted = self._text.encode()[start : start + 1] == b'"'
        if name.lower() in NOT_A_FIELD and not quoted:
            raise self.refusal(node, f'is not allowed: it is no field. A field of this name is written "{name}"')
        return node

    def _check_type(self, node: Node) -> None:
        if node["class"] == "CONSTANT":
            return
        if node["class"] != "TYPE" or node["schema"] or node["catalog"] or node["type_name"].lower() not in TYPES:
            raise self.refusal(node, "is not among the types that a value can be cast to")
        for child in node["children"]:
            self._check_type(child)

    def _function(self, node: Node) -> Node:
        name = node["function_name"].lower()
        known = name in (OPERATORS if node["is_operator"] else FUNCTIONS)
        if not known or node["schema"] or node["catalog"]:
            raise self.refusal(node, "is not allowed: it is not among the functions that a transform may call")
        if node["filter"] or node["order_bys"]["orders"] or node["distinct"] or node["export_state"]:
            raise self.refusal(node, "is not allowed: aggregates need several rows")
        if name != "struct_pack" and any(one["name"] for one in node["arguments"]):
            raise self.refusal(node, "has a named argument")
        arguments = [{**one, "expression": self._allowed(one["expression"])} for one in node["arguments"]]
        return {**node, "arguments": arguments}


_KINDS = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "LAMBDA": "a lambda, or -> of JSON (use ->>),",
    "PARAMETER": "a parameter",
    "STAR": "* within an expression",
    "COLLATE": "a collation",
    "POSITIONAL_REFERENCE": "a column by its number",
}


def _as_path(node: Node) -> Node:
    """`a['b']` and `(a).b` as the field `a.b`."""
    if node["type"] not in {"ARRAY_EXTRACT", "STRUCT_EXTRACT"}:
        return node
    inner, step = node["children"]
    if inner["class"] != "COLUMN_REF" or step.get("literal", {}).get("kind") != "STRING":
        return node
    return {**inner, "alias": node["alias"], "column_names": [*inner["column_names"], step["literal"]["text"]]}


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)
