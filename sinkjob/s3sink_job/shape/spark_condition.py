"""Conditions that Spark can evaluate before a record is handed over: comparisons of headers with texts.

DuckDB evaluates the transform again, for the records that Spark hands over: it decides, Spark only leaves out what
DuckDB is certain to leave out. For that Spark's result has to be true wherever DuckDB's is. It is, because both have
the same logic of true, false and null, and the only difference is a header that is not UTF-8: DuckDB gets null, and
Spark compares its bytes.
"""

from __future__ import annotations

import json
from functools import lru_cache

from s3sink_api.spec.sql_expressions import HEADERS, parse_filter
from s3sink_api.spec.sql_parser import Node
from s3sink_job.kafka.single_headers import header_column

_COMPARED = {"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>"}
_JOINED = {"CONJUNCTION_AND": " AND ", "CONJUNCTION_OR": " OR "}


MOST_LEVELS = 50
"""Spark's parser and planner need Java's stack for each level, and overflow it somewhere above 200."""


class _NotPossible(Exception):
    """Spark cannot evaluate this, or might evaluate it otherwise."""


@lru_cache(64)
def spark_condition(where: str | None) -> str | None:
    """The conditions that need nothing of the value as SQL of Spark, over the columns of single headers.

    None if there are none, or if one of them is anything else: it might fail for a record, which is then a bad record,
    whatever the others say.
    """
    early = [one for one in parse_filter(where) if one.of_metadata] if where else []
    try:
        return " AND ".join(_sql(json.loads(one.tree)) for one in early) or None
    except _NotPossible:
        return None


def _sql(node: Node, level: int = 0) -> str:
    kind = node["type"]
    if level > MOST_LEVELS:
        raise _NotPossible
    if kind in _JOINED:
        return f"({_JOINED[kind].join(_sql(child, level + 1) for child in node['children'])})"
    if kind == "OPERATOR_NOT":
        return f"(NOT {_sql(node['children'][0], level + 1)})"
    if kind in _COMPARED:
        first, second = node["left"], node["right"]
        if first["class"] == "CONSTANT":
            first, second = second, first
        return f"({_header(first)} {_COMPARED[kind]} {_text(second)})"
    if kind == "COMPARE_IN":
        header, *texts = node["children"]
        return f"({_header(header)} IN ({', '.join(map(_text, texts))}))"
    if kind in {"OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"}:
        header = _header(node["children"][0])
        is_text = f"({header} IS NOT NULL AND is_valid_utf8(CAST({header} AS STRING)))"
        return is_text if kind == "OPERATOR_IS_NOT_NULL" else f"(NOT {is_text})"
    raise _NotPossible


def _header(node: Node) -> str:
    if node["class"] != "COLUMN_REF" or node["column_names"][0] != HEADERS or len(node["column_names"]) != 2:
        raise _NotPossible
    return header_column(node["column_names"][1])


def _text(node: Node) -> str:
    if node["class"] != "CONSTANT" or node["literal"]["kind"] != "STRING":
        raise _NotPossible
    return f"X'{node['literal']['text'].encode().hex()}'"
