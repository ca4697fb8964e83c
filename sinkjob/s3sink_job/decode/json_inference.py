"""The types of the fields of JSON records, inferred record by record.

This is slow and exact. It is used for a batch that Arrow's reader refused: the first of a topic, and any batch with
a new field, another type or a bad record.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa

from s3sink_api.spec import MORE
from s3sink_job.columns.text import number_text
from s3sink_job.columns.types import MAX_DEPTH, from_doc, to_doc
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.json_validation import NOT_JSON

MAX_NESTING = 500
"""Levels of a value. Python's own limit depends on the depth of the caller: a value could be a row or not."""
TOO_DEEP = f"is nested too deeply to be read: more than {MAX_NESTING} levels"
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""Also a string without an end. It never backtracks: a large record that is cut short would take hours."""


class NotARow(ValueError):
    """A value that cannot be a row. The fault lacks its subject, `value`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(reason, message)


def parse(text: str) -> dict[str, Any]:
    """A JSON object, with numbers beyond int64 and double left as their text."""
    value = json_value(text)
    if not isinstance(value, dict):
        raise NotARow("NotAnObject", f"is not a JSON object but {described(value)}: columns need named fields")
    if MORE in value:
        raise NotARow("ReservedField", f"has a field {MORE!r}, a name reserved for fields without a column")
    return value


def json_value(text: str, *, may_repeat: bool = False) -> Any:
    """Any JSON value, with the same numbers.

    `may_repeat` makes an object with a name twice a `Repeated` one, which the caller may refuse.
    """
    if _depth(text) > MAX_NESTING:
        raise NotARow("TooDeep", TOO_DEEP)
    try:
        value = (_LENIENT if may_repeat else _DECODER).decode(text)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        # The value is not JSON: brackets outside of strings look as if they were inside.
        raise NotARow("TooDeep", TOO_DEEP) from None
    except NotARow:
        raise
    except UnicodeEncodeError:
        raise NotARow(NOT_JSON, "is not JSON: a lone surrogate") from None
    except ValueError as error:
        raise NotARow(NOT_JSON, f"is not JSON: {error}") from None
    return value


def _depth(text: str) -> int:
    """An upper limit of how deeply a value is nested; exact where that may be too deep."""
    most = text.count("[") + text.count("{")
    if most <= MAX_NESTING:
        return most
    marks = re.findall(r"[][{}]", STRING.sub("", text))
    return max(accumulate(1 if mark in "[{" else -1 for mark in marks), default=0)


class Number(str):
    """The text of a number beyond the range of int64, or of double."""

    __slots__ = ()


class Real(float):
    """A number with a fraction or an exponent, and its text: a column of text does not have to round it."""

    __slots__ = ("_written",)
    _written: str

    def __new__(cls, written: str) -> Real:
        number = super().__new__(cls, written)
        number._written = written
        return number

    @property
    def written(self) -> str:
        return self._written

    @property
    def text(self) -> str:
        """Its text in a column of doubles, unless that is a different number."""
        short = number_text(self)
        try:
            return short if Decimal(short) == Decimal(self._written) else self._written
        except ArithmeticError:  # the exponent is too large for a decimal
            return self._written


Doc = Any
"""A type as `columns.types.to_doc` gives it, with one more name: whole numbers that no double holds."""
LONG = "long"


def learn(known: pa.StructType, rows: list[dict[str, Any]]) -> pa.StructType:
    """The known type, widened to hold every one of the rows."""
    doc = to_doc(known)
    for row in rows:
        _absorb_fields(doc["struct"], row, 0)
    return from_doc(_settled(doc))


def _absorb(known: Doc, value: Any, depth: int) -> Doc:
    """The known type, widened to hold the value. Structs are widened in place."""
    match value:
        case None:
            return known
        case bool():
            return _either(known, "bool")
        case int():
            kind = "int64" if float(value) == value else LONG
            return _either(known, kind)
        case float():
            return _either(known, "double")
        case dict() if depth < MAX_DEPTH and _is(known, "struct"):
            known = {"struct": {}} if known == "null" else known
            _absorb_fields(known["struct"], value, depth)
            return known
        case list() if depth < MAX_DEPTH and _is(known, "list"):
            element = "null" if known == "null" else known["list"]
            for item in value:
                element = _absorb(element, item, depth + 1)
            return {"list": element}
        case _:
            return "text"


def _absorb_fields(fields: dict[str, Doc], value: dict[str, Any], depth: int) -> None:
    for name, inner in value.items():
        fields[name] = _absorb(fields.get(name, "null"), inner, depth + 1)


def _is(known: Doc, kind: str) -> bool:
    return known == "null" or (isinstance(known, dict) and kind in known)


def _either(known: Doc, kind: str) -> Doc:
    if known in (kind, "null"):
        return kind
    both = {known, kind} if isinstance(known, str) else set()
    if both == {"int64", LONG}:
        return LONG
    return "double" if both == {"int64", "double"} else "text"


def _settled(doc: Doc) -> Doc:
    if isinstance(doc, dict):
        return {key: _settled(inner) for key, inner in doc.items()}
    return "int64" if doc == LONG else doc


def misfit(value: Any, kind: Doc, where: str = "$") -> str:
    """Why a value does not fit a supplied type; empty if it does."""
    match value, kind:
        case (None, _) | (_, "json") | (bool(), "bool") | (float(), "double"):
            return ""
        case dict(), {"struct": fields}:
            for name, inner in value.items():
                if name not in fields and not (where == "$" and MORE in fields):
                    return f"{where} has the field {name!r}, which the schema does not have"
                if name in fields and (why := misfit(inner, fields[name], f"{where}.{name}")):
                    return why
            return ""
        case list(), {"list": element}:
            return next(filter(None, (misfit(v, element, f"{where}[{i}]") for i, v in enumerate(value))), "")
        case int(), "int64" if not isinstance(value, bool):
            return ""
        case int(), "double" if not isinstance(value, bool) and float(value) == value:
            return ""
        case str(), "text" if not isinstance(value, Number):
            return ""
    wanted = kind if isinstance(kind, str) else next(iter(kind))
    return f"{where} is {described(value)}, and should be {wanted}"


class Repeated(dict[str, Any]):
    """An object with a name twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    @property
    def error(self) -> NotARow:
        twice = Counter(name for name, _ in self.pairs).most_common(1)[0][0]
        return NotARow("FieldTwice", f"has the field {twice!r} twice: it is not clear which one counts")


def members(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """All members of an object, also those with a name twice."""
    return value.pairs if isinstance(value, Repeated) else value.items()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = _object(pairs)
    if isinstance(found, Repeated):
        raise found.error
    return found


def _whole(text: str) -> int | Number:
    # Python limits the digits of a number, JSON does not.
    if len(text) <= 20 and -(2**63) <= (number := int(text)) < 2**63:
        return number
    return Number(text)


def _real(text: str) -> Real | Number:
    number = Real(text)
    return number if math.isfinite(number) else Number(text)


def _none(text: str) -> Any:
    raise NotARow(NOT_JSON, f"is not JSON: {text}")


def described(value: Any) -> str:
    """The type of a JSON value, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float() | Number():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


_DECODER = json.JSONDecoder(object_pairs_hook=_once_each, parse_int=_whole, parse_float=_real, parse_constant=_none)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_none)
