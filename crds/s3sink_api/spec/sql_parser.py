"""SQL texts to DuckDB's parsed trees and back. Nothing is executed here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from s3sink_api.spec.field_errors import Refusal

if TYPE_CHECKING:
    import duckdb

Node: TypeAlias = dict[str, Any]
SELECT = "SELECT "
MOST_LEVELS = 100
"""Of operators, functions and casts within one another. What works on the trees needs Python's stack for each level."""

_NOWHERE = 2**63
"""From this location on: a part that DuckDB added."""


def parsed(text: str) -> Node:
    """The one expression of the text."""
    # The line break ends a comment.
    try:
        answer = json.loads(_answer("SELECT json_serialize_sql(?)", f"{SELECT}{text}\n"))
    except RecursionError:
        raise _too_deep(1) from None
    if "expression depth" in answer.get("error_message", ""):
        raise _too_deep(1)
    if answer["error"]:
        raise _not_sql(text, answer)
    statements = answer["statements"]
    node = statements[0]["node"]
    if len(statements) > 1 or node["type"] != "SELECT_NODE":
        raise _more_than_one(text)
    if len(node["select_list"]) > 1:
        second = position_in(text, node["select_list"][1]["query_location"])
        raise Refusal(f"must be a single expression: the second one begins at position {second}")
    if not all(empty(node.get(name)) for name, empty in _WHOLE.items()):
        raise _more_than_one(text)
    found: Node = node["select_list"][0]
    _check_levels(text, found)
    return found


def _check_levels(text: str, node: Node) -> None:
    level = [node]
    for _ in range(MOST_LEVELS):
        level = [child for one in level for child in children(one)]
    if level:
        raise _too_deep(position_in(text, level[0]["query_location"]))


def _too_deep(position: int) -> Refusal:
    most = f"at most {MOST_LEVELS} operators and functions may be within one another"
    return Refusal(f"is nested too deeply at position {position}: {most}")


def children(node: Node) -> Iterator[Node]:
    for value in node.values():
        if isinstance(value, dict):
            yield from [value] if "class" in value else children(value)
        elif isinstance(value, list):
            for one in (v for v in value if isinstance(v, dict)):
                yield from [one] if "class" in one else children(one)


def _nothing(value: Any) -> bool:
    return not value


_WHOLE: Mapping[str, Callable[[Any], bool]] = {
    "from_table": lambda table: table["type"] == "EMPTY",
    "cte_map": lambda tables: _nothing(tables["map"]),
    "aggregate_handling": lambda handling: handling == "STANDARD_HANDLING",
    **dict.fromkeys(
        ("modifiers", "where_clause", "group_expressions", "group_sets", "having", "sample", "qualify"), _nothing
    ),
}
"""The other parts of a SELECT, and when they are not there."""
_FURTHER = frozenset(
    [";", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "USING", "ORDER", "LIMIT", "OFFSET", "FETCH"]
) | {"DISTINCT", "UNION", "EXCEPT", "INTERSECT"}


def _not_sql(text: str, answer: Node) -> Refusal:
    if answer["error_type"] == "not implemented":
        return _more_than_one(text)
    at = position_in(text, int(answer["position"])) if "position" in answer else 1
    return Refusal(f"is not a SQL expression at position {at}: {answer['error_message']}")


def _more_than_one(text: str) -> Refusal:
    """It goes on behind the expression, with another part of a SELECT or another statement."""
    word, at = next(_further_parts(text), ("it", 1))
    what = "a second statement begins" if word == ";" else f"{word} begins another part of a query"
    return Refusal(f"must be a single expression: {what} at position {at}")


def _further_parts(text: str) -> Iterator[tuple[str, int]]:
    """Words of SQL outside of brackets that belong to no expression, and their positions."""
    import duckdb

    raw = text.encode()
    starts = [(start, kind) for start, kind in duckdb.tokenize(text) if kind != duckdb.token_type.comment]
    level, before = 0, ""
    for (start, kind), (end, _) in zip(starts, [*starts[1:], (len(raw), None)], strict=True):
        word = raw[start:end].decode(errors="replace").partition(" ")[0].strip().upper()
        level += word.startswith(("(", "[", "{")) - word.startswith((")", "]", "}"))
        is_word = kind in (duckdb.token_type.keyword, duckdb.token_type.operator)
        # As in: a IS NOT DISTINCT FROM b, and * EXCEPT (a)
        if level == 0 and is_word and word in _FURTHER and before not in {"IS", "NOT", "DISTINCT", "*"}:
            yield {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}.get(word, word), position_in(text, start + len(SELECT))
        before = word


def position_in(text: str, location: int) -> int:
    """In characters, from 1. DuckDB counts bytes of the whole statement, from 0."""
    before = text.encode()[: max(0, location - len(SELECT))]
    return min(len(before.decode(errors="ignore")), max(0, len(text) - 1)) + 1


def refusal(text: str, node: Node, why: str) -> Refusal:
    """Of a part of the text."""
    start = node.get("query_location", _NOWHERE)
    if start >= _NOWHERE:
        return Refusal(f"{text!r} {why}", show=False)
    raw = text.encode()[start - len(SELECT) :]
    part = (raw[: node["query_location_length"]] or raw).decode(errors="replace")
    return Refusal(f"{part!r} at position {position_in(text, start)} {why}", show=False)


def to_sql(node: Node) -> str:
    template = json.loads(_answer("SELECT json_serialize_sql(?)", f"{SELECT}1"))
    template["statements"][0]["node"]["select_list"] = [node]
    return _answer("SELECT json_deserialize_sql(?)", json.dumps(template)).removeprefix(SELECT)


def _answer(sql: str, text: str) -> str:
    import duckdb

    parser = _parser().cursor()
    try:
        return str(parser.execute(sql, [text]).fetchall()[0][0])
    except duckdb.Error as error:
        raise Refusal(f"is not a SQL expression: {error}") from None


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    return locked_database()


def locked_database() -> duckdb.DuckDBPyConnection:
    """A database in memory without files, network, extensions and variables of Python, and no way back.

    The package is loaded with the first transform: an operator without any saves its memory.
    """
    import duckdb

    config = {
        "threads": 1,
        "memory_limit": "256MB",
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
    }
    database = duckdb.connect(config=config)  # type: ignore[arg-type]
    database.execute("SET TimeZone = 'UTC'")
    database.execute("SET lock_configuration = true")
    return database
