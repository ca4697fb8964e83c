"""How long a text an expression can make, found on its checked tree: DuckDB does not limit the memory of single texts.

In bytes, by the fields that the text is made of, and of constants. It is no proof for every function: the engine also
counts what the results of a batch take. But no short expression takes all memory before it is counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from s3sink_api.spec.sql_functions import GROWTH, JOINING, NESTING, PADDING, TEXT_TYPES
from s3sink_api.spec.sql_parser import Node, children, refusal

MOST_GROWTH = 16
"""How many times longer than the record a text may become."""
MOST_CONSTANT = 16_384
"""Bytes that may come from constants: as many as 4,096 characters can have."""
MOST_PADDING = 1_000
_CONSTANT = ()
"""What counts bytes of constants, beside the paths, which count how often a text may be in the result."""
_IN_TEXT = 2
"""Times longer is a text within a list or a record that becomes text: quotes and backslashes are escaped."""
Path: TypeAlias = tuple[str, ...]


def check_growth(text: str, node: Node) -> None:
    """May raise a Refusal."""
    found = _Growth(text).of(node)
    constant = found.pop(_CONSTANT, 0)
    growth = max(found.values(), default=0)
    if growth > MOST_GROWTH:
        raise refusal(text, node, f"may make a text {growth} times as long, and {MOST_GROWTH} times is the most")
    if constant > MOST_CONSTANT:
        why = f"may make {constant:,} bytes of its constants for each record, and {MOST_CONSTANT:,} is the most"
        raise refusal(text, node, why)


class _Growth:
    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, node: Node) -> Counter[Path]:
        match node["class"]:
            case "COLUMN_REF":
                return Counter({tuple(node["column_names"]): 1})
            case "CONSTANT":
                return Counter({_CONSTANT: len(str(node.get("literal", {}).get("text", "")).encode())})
            case "CAST":
                return _times(self.of(node["child"]), _IN_TEXT if _has_text(node["type_expr"]) else 1)
            case "FUNCTION":
                return self._function(node["function_name"].lower(), [one["expression"] for one in node["arguments"]])
        return self._all([*children(node)], joined=node["type"] == "ARRAY_CONSTRUCTOR")

    def _all(self, nodes: list[Node], *, joined: bool) -> Counter[Path]:
        found: Counter[Path] = Counter()
        for node in nodes:
            own = self.of(node)
            found = found + own if joined else found | own
        return found

    def _function(self, name: str, arguments: list[Node]) -> Counter[Path]:
        found = self._all(arguments, joined=name in JOINING)
        if name in PADDING and len(arguments) > 1:
            return self._padded(name, found, arguments)
        return _times(found, self._factor(name, arguments))

    def _padded(self, name: str, found: Counter[Path], arguments: list[Node]) -> Counter[Path]:
        size = _number(arguments[1])
        if not 0 <= size <= MOST_PADDING:
            why = f"must be a number up to {MOST_PADDING} here, written as digits"
            raise refusal(self._text, arguments[1], why)
        return _times(found, size) if name == "repeat" else found + Counter({_CONSTANT: size * _widest(arguments[-1])})

    def _factor(self, name: str, arguments: list[Node]) -> int:
        if name in {"replace", "regexp_replace"} and len(arguments) > 2:
            return self._replaced(name, arguments)
        if name == "translate" and len(arguments) > 2:
            return _widest(arguments[2])
        factor = GROWTH.get(name, 1)
        if name in {"array_to_string", "concat_ws"} and arguments:
            factor = 1 + len(self._constant(arguments[0 if name == "concat_ws" else -1]))
        becomes_text = name in {"array_to_string", "concat", "concat_ws"} and any(map(_is_nested, arguments))
        return factor * (_IN_TEXT if becomes_text else 1)

    def _replaced(self, name: str, arguments: list[Node]) -> int:
        old, new = (self._constant(one) for one in arguments[1:3])
        if name == "regexp_replace":
            return 1 + len(new)
        return -(-len(new) // len(old)) if old and len(new) > len(old) else 1

    def _constant(self, node: Node) -> bytes:
        if node["class"] != "CONSTANT" or node["literal"]["kind"] != "STRING":
            why = "must be a text in quotes here, so that it is known how long the result may become"
            raise refusal(self._text, node, why)
        return str(node["literal"]["text"]).encode()


def _times(found: Counter[Path], factor: int) -> Counter[Path]:
    return found if factor == 1 else Counter({path: count * factor for path, count in found.items()})


def _number(node: Node) -> int:
    literal = node.get("literal", {})
    return int(literal["text"]) if literal.get("kind") == "INTEGER" and len(literal["text"]) < 10 else -1


def _widest(node: Node) -> int:
    """Bytes of a character of the text."""
    literal = node.get("literal", {})
    return max((len(one.encode()) for one in literal["text"]), default=1) if literal.get("kind") == "STRING" else 4


def _has_text(node: Node) -> bool:
    return node.get("type_name", "").lower() in TEXT_TYPES or any(map(_has_text, children(node)))


def _is_nested(node: Node) -> bool:
    return node["type"] == "ARRAY_CONSTRUCTOR" or node.get("function_name", "").lower() in NESTING
