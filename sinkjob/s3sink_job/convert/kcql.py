"""KCQL, the language of Lenses' connectors, by a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedEOF, UnexpectedInput

from s3sink_job.convert.bad_input import BadInput, Place


@dataclass(frozen=True)
class Statement:
    bucket: str
    prefix: str
    topic: str
    columns: tuple[str, ...]
    line: int
    partition_by: tuple[tuple[str, ...], ...] | None = None
    """The names of each path, so that one in back-ticks may have dots. Empty for NOPARTITION."""
    store_as: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    """Clauses of older releases and other connectors, with their values."""


def read_kcql(text: str, name: str) -> tuple[Statement, ...]:
    """Raises `BadInput` with line and column within the text."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _refused(error, text, name) from None
    statements = [child for child in tree.children if isinstance(child, Tree)]
    return tuple(_statement(child, name) for child in statements)


@cache
def _parser() -> Lark:
    grammar = files("s3sink_job.convert").joinpath("kcql.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


_CLAUSES = {
    "INSERT": "INSERT",
    "INTO": "INTO",
    "SELECT": "SELECT",
    "FROM": "FROM",
    "WORD": "a name",
    "EQUAL": "=",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
}


def _refused(error: UnexpectedInput, text: str, name: str) -> BadInput:
    expected = getattr(error, "expected", None) or getattr(error, "allowed", None) or set()
    wanted = [words for token, words in _CLAUSES.items() if token in expected]
    hint = f"; expected {' or '.join(wanted)}" if 0 < len(wanted) <= 3 else ""
    if isinstance(error, UnexpectedEOF) or getattr(getattr(error, "token", None), "type", "") == "$END":
        lines = text.rstrip().split("\n")
        return BadInput(Place(name, len(lines), len(lines[-1]) + 1), f"KCQL ends too early{hint}")
    context = error.get_context(text, span=30).rstrip("\n")
    return BadInput(Place(name, error.line, error.column), f"KCQL cannot be understood here{hint}\n{context}")


def _statement(tree: Tree[Token], name: str) -> Statement:
    found = {child.data: child for child in tree.children if isinstance(child, Tree)}
    bucket, _, prefix = _text(_name_of(found["target"]), name).partition(":")
    statement = Statement(
        bucket=bucket,
        prefix=prefix.strip("/"),
        topic=_text(_name_of(found["source"]), name),
        columns=tuple(" ".join(_unquoted(leaf) for leaf in _leaves(column)) for column in _trees(found["columns"])),
        line=tree.meta.line,
    )
    seen: set[str] = set()
    for clause in _trees(tree):
        kind = str(clause.data)
        if kind in {"target", "source", "columns"}:
            continue
        if kind in seen and kind != "other":
            place = Place(name, clause.meta.line, clause.meta.column)
            raise BadInput(place, "KCQL has this clause twice in one statement; keep one of them")
        seen.add(kind)
        statement = _with_clause(statement, clause, name)
    if {"partition_by", "no_partition"} <= seen:
        raise BadInput(Place(name, statement.line), "KCQL has both PARTITIONBY and NOPARTITION; keep one of them")
    return statement


def _with_clause(statement: Statement, clause: Tree[Token], name: str) -> Statement:
    match str(clause.data):
        case "partition_by":
            return replace(statement, partition_by=tuple(_path(part, name) for part in _trees(clause)))
        case "no_partition":
            return replace(statement, partition_by=())
        case "store_as":
            kind, *options = _trees(clause)
            return replace(
                statement, store_as=_text(kind, name), others=(*statement.others, *_pairs(options, name, "STOREAS "))
            )
        case "properties":
            return replace(statement, properties=_pairs(_trees(clause), name))
    word, values = str(clause.children[0]).upper(), [_text(value, name) for value in _trees(clause)]
    return replace(statement, others=(*statement.others, (word, ", ".join(values))))


def _pairs(trees: Sequence[Tree[Token]], name: str, before: str = "") -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for tree in trees:
        left, right = _trees(tree)
        key = before + _text(left, name)
        if key in found:
            place = Place(name, tree.meta.line, tree.meta.column)
            raise BadInput(place, f"KCQL sets {key} twice; keep one of them")
        found[key] = _text(_name_of(right), name)
    return tuple(found.items())


def _name_of(tree: Tree[Token]) -> Tree[Token]:
    """The name within a rule that has nothing else."""
    return _trees(tree)[0]


def _path(part: Tree[Token], name: str) -> tuple[str, ...]:
    """Split at dots, but not at those in quotes."""
    tokens = _adjacent(_name_of(part), name)
    path: list[str] = [""]
    for token in tokens:
        if token.type == "DOT":
            path.append("")
        else:
            path[-1] += _unquoted(token)
    if not all(path):
        raise BadInput(Place(name, tokens[0].line or 0, tokens[0].column or 0), "KCQL has an empty name in a path")
    return tuple(path)


def _text(tree: Tree[Token], name: str) -> str:
    return "".join(_unquoted(token) for token in _adjacent(tree, name))


def _adjacent(tree: Tree[Token], name: str) -> list[Token]:
    """The tokens of one name. Two names with a space between them are a clause that is not known."""
    tokens = _leaves(tree)
    for before, after in pairwise(tokens):
        if before.end_pos != after.start_pos and ":" not in (str(before), str(after)):
            place = Place(name, after.line or 0, after.column or 0)
            raise BadInput(place, "KCQL has a name here that belongs to no clause the S3 sink knows")
    return tokens


def _unquoted(token: Token) -> str:
    return str(token)[1:-1] if token.type in {"QUOTED", "TEXT"} else str(token)


def _leaves(tree: Tree[Token]) -> list[Token]:
    return list(tree.scan_values(lambda value: isinstance(value, Token)))


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]
