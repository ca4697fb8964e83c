"""JSON Schemas as types of columns. Only what says a type is read; values are validated elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from referencing.exceptions import Unresolvable

from s3sink_job.decode.connect_schema import DECIMAL, LOGICAL, BadSchema, scale_and_digits
from s3sink_job.decode.json_inference import described
from s3sink_job.decode.json_schema_documents import Documents
from s3sink_job.decode.json_schema_types import (
    ANYTHING,
    NOTHING,
    ONLY_NULL,
    array,
    both,
    either,
    leaf,
    mapping,
    record,
)
from s3sink_job.decode.payload_schema import DATE, DATE_TIME, INTEGER, NUMBER, PayloadSchema
from s3sink_job.decode.writer_schemas import InvalidSchema

SIMPLE = {"integer": INTEGER, "number": NUMBER, "string": "string", "boolean": "boolean", "null": "null"}
TYPES = {*SIMPLE, "object", "array"}
IMPLIED = {"object": ("properties", "patternProperties", "additionalProperties"), "array": ("items", "prefixItems")}
"""Types of schemas that name none, by words that are only for this type."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
FORMATS = {"date-time": DATE_TIME, "date": DATE}
CONNECT_NUMBERS = {"int8", "int16", "int32", "int64"}
CONNECT_REALS = {"float32": "float", "float64": "double"}
MAX_DEPTH = 100
"""Levels of a schema. Python's own limit would depend on the depth of the caller."""
MAX_COLUMN_DEPTH = 32
"""Levels of a column. What is nested more deeply is text with JSON."""
MAX_TYPES = 100_000
"""Types of a schema, counted wherever they are used: an object that uses another one twice doubles it."""


def payload_schema(documents: Documents, *, times_as_text: bool = False) -> PayloadSchema:
    """Raises `InvalidSchema`."""
    found = _Reader(documents, {} if times_as_text else FORMATS).read(_Place(documents.root, documents.resolver))
    if found == NOTHING:
        raise InvalidSchema("a JSON Schema that no record fits: it is false")
    return found


class _Place:
    """A schema within the documents, and what is around it."""

    def __init__(self, doc: Any, resolver: Any, outer: _Place | None = None, step: str = "", *, same: bool = False):
        """`same` means that it is about the same value as the outer schema."""
        self.doc, self.resolver = doc, resolver
        self.where: str = f"{outer.where}/{step}" if outer else "#"
        self.depth: int = outer.depth + 1 if outer else 0
        self.levels: int = 0 if outer is None else outer.levels + (not same)
        self.inside: frozenset[int] = (outer.inside if outer else frozenset()) | {id(doc)}
        """The schemas that it is inside of."""
        self.alike: frozenset[int] = (outer.alike if outer and same else frozenset()) | {id(doc)}
        """Those of them that are about the same value."""

    def below(self, doc: Any, step: str) -> _Place:
        return _Place(doc, self.resolver, self, step)

    def enter(self, draft: Any) -> None:
        """References within a schema that has an address are relative to it."""
        if isinstance(draft.id_of(self.doc), str):
            self.resolver = self.resolver.in_subresource(draft.create_resource(self.doc))

    def beside(self, doc: Any, step: str, resolver: Any = None) -> _Place:
        return _Place(doc, resolver or self.resolver, self, step, same=True)


class _Reader:
    def __init__(self, documents: Documents, formats: Mapping[str, str]) -> None:
        self._formats = formats
        self._draft, self._ref_alone = documents.draft, documents.ref_alone
        self._count = 0

    def read(self, place: _Place) -> PayloadSchema:
        doc = place.doc
        self._count += 1
        if self._count > MAX_TYPES:
            raise InvalidSchema(f"a JSON Schema with more than {MAX_TYPES} types, counted wherever they are used")
        if place.depth > MAX_DEPTH:
            raise InvalidSchema(f"a JSON Schema that is nested more than {MAX_DEPTH} levels deep")
        if isinstance(doc, bool):
            return ANYTHING if doc else NOTHING
        if not isinstance(doc, Mapping):
            raise InvalidSchema(f"no JSON Schema: {place.where} is {described(doc)}, and should be an object")
        place.enter(self._draft)
        found = ANYTHING
        for word in REFERENCES:
            if isinstance(doc.get(word), str):
                found = both(found, self._referred(place, word))
                if self._ref_alone and word == "$ref":
                    return found
        found = both(found, self._typed(place))
        for number, part in enumerate(_list(place, "allOf")):
            found = both(found, self.read(place.beside(part, f"allOf/{number}")))
        for word in ("anyOf", "oneOf"):
            if branches := _list(place, word):
                parts = [self.read(place.beside(part, f"{word}/{number}")) for number, part in enumerate(branches)]
                found = both(found, reduce(either, parts))
        found = both(found, _of_values(doc))
        if found == leaf("string") and (meaning := self._formats.get(_word(doc, "format"))):
            return leaf(meaning)
        return _with_meaning(self._with_conditions(found, place), doc)

    def _referred(self, place: _Place, word: str) -> PayloadSchema:
        ref = place.doc[word]
        try:
            target = place.resolver.lookup(ref)
        except (Unresolvable, ValueError, TypeError, AttributeError):
            why = "is neither in the schema nor among its references in the registry; nothing is fetched from elsewhere"
            raise InvalidSchema(f"a JSON Schema whose {place.where}/{word} is {ref!r}, which {why}") from None
        if id(target.contents) in place.alike:
            raise InvalidSchema(f"a JSON Schema whose {place.where}/{word} leads back to itself: {ref!r}")
        if id(target.contents) in place.inside:
            return ANYTHING
        return self.read(place.beside(target.contents, word, target.resolver))

    def _typed(self, place: _Place) -> PayloadSchema:
        """By `type`, or by words that are only for objects or arrays."""
        doc = place.doc
        given = doc.get("type")
        names = given if isinstance(given, list) else [] if given is None else [given]
        if unknown := [name for name in names if not isinstance(name, str) or name not in TYPES]:
            raise InvalidSchema(f"no JSON Schema: {place.where}/type has {unknown[0]!r}, which is no type")
        if given is None:
            names = [name for name, words in IMPLIED.items() if any(word in doc for word in words)][:1]
        return reduce(either, [self._of_type(name, place) for name in names]) if names else ANYTHING

    def _of_type(self, name: str, place: _Place) -> PayloadSchema:
        if name in SIMPLE:
            return leaf(SIMPLE[name])
        if place.levels >= MAX_COLUMN_DEPTH:
            return ANYTHING
        return self._object(place) if name == "object" else self._array(place)

    def _object(self, place: _Place) -> PayloadSchema:
        doc = place.doc
        more = doc.get("additionalProperties", True)
        patterns = _members(place, "patternProperties")
        is_open = more is not False or bool(patterns)
        properties = _members(place, "properties")
        if properties or not is_open:
            fields = {n: self.read(place.below(inner, f"properties/{n}")) for n, inner in properties.items()}
            return record(fields, is_open=is_open)
        others = [self.read(place.below(inner, f"patternProperties/{n}")) for n, inner in patterns.items()]
        if more is not False:
            others.append(self.read(place.below(more, "additionalProperties")))
        # Members without a type in common: the object as a whole is text.
        values = reduce(_either_or_anything, others)
        return ANYTHING if values == ANYTHING else mapping(values)

    def _array(self, place: _Place) -> PayloadSchema:
        doc = place.doc
        items, first = doc.get("items"), _list(place, "prefixItems")
        if isinstance(items, list):
            items, first = doc.get("additionalItems"), items
        if not first:
            return ANYTHING if items is None else array(self.read(place.below(items, "items")))
        # Without `items`, what comes behind the first ones may be anything.
        parts = [*enumerate(first), ("more", True if items is None else items)]
        read = [self.read(place.below(part, f"prefixItems/{step}")) for step, part in parts]
        return array(reduce(_either_or_anything, read))

    def _with_conditions(self, found: PayloadSchema, place: _Place) -> PayloadSchema:
        """With fields that an object only has under a condition."""
        if found.type != "struct":
            return found
        parts = [place.beside(place.doc[word], word) for word in ("then", "else") if word in place.doc]
        for word in ("dependentSchemas", "dependencies"):
            inner = _members(place, word).items()
            parts += [place.beside(part, f"{word}/{n}") for n, part in inner if not isinstance(part, list)]
        fields = dict(found.fields)
        for part in parts:
            under = self.read(part)
            fields |= {name: inner for name, inner in under.fields if name not in fields}
        closed = place.doc.get("unevaluatedProperties") is False
        return record(fields, is_open=bool(found.rest) and not closed) if parts or closed else found


def _either_or_anything(one: PayloadSchema, other: PayloadSchema) -> PayloadSchema:
    return ANYTHING if ANYTHING in (one, other) else either(one, other)


def _of_values(doc: Mapping[str, Any]) -> PayloadSchema:
    """By `const` and `enum`."""
    found = ANYTHING
    if "const" in doc:
        found = _of_value(doc["const"])
    if isinstance(doc.get("enum"), list) and doc["enum"]:
        found = both(found, _of_all(doc["enum"]))
    return found


def _of_all(values: Iterable[Any]) -> PayloadSchema:
    return reduce(_either_or_anything, map(_of_value, values))


def _of_value(value: Any) -> PayloadSchema:
    match value:
        case None:
            return ONLY_NULL
        case bool():
            return leaf("boolean")
        case int():
            return leaf(INTEGER)
        case float():
            return leaf(NUMBER)
        case str():
            return leaf("string")
        case _:
            return ANYTHING


def _with_meaning(found: PayloadSchema, doc: Mapping[str, Any]) -> PayloadSchema:
    """With what the words of Connect say about a number or a string."""
    connect, title = _word(doc, "connect.type"), _word(doc, "title")
    if connect == "bytes" and found in (leaf(NUMBER), leaf("string")):
        return _bytes(found, doc)
    if found == leaf(NUMBER) and connect in CONNECT_REALS:
        return leaf(CONNECT_REALS[connect])
    if found == leaf(INTEGER) and connect in CONNECT_NUMBERS:
        logical = LOGICAL.get((connect, title))
        return PayloadSchema(connect, logical, optional=True) if logical else leaf(connect)
    return found


def _bytes(found: PayloadSchema, doc: Mapping[str, Any]) -> PayloadSchema:
    if doc.get("title") == DECIMAL:
        try:
            scale, digits = scale_and_digits(doc.get("connect.parameters"), "#")
        except BadSchema:
            return found
        return PayloadSchema("bytes", pa.decimal128(digits, max(0, scale)), optional=True, scale=scale)
    return leaf("bytes") if found.type == "string" else found


def _word(doc: Mapping[str, Any], name: str) -> str:
    """Empty if it is no string."""
    found = doc.get(name)
    return found if isinstance(found, str) else ""


def _list(place: _Place, word: str) -> list[Any]:
    found = place.doc.get(word, [])
    if not isinstance(found, list):
        raise InvalidSchema(f"no JSON Schema: {place.where}/{word} is {described(found)}, and should be an array")
    return found


def _members(place: _Place, word: str) -> Mapping[str, Any]:
    found = place.doc.get(word, {})
    if not isinstance(found, Mapping):
        raise InvalidSchema(f"no JSON Schema: {place.where}/{word} is {described(found)}, and should be an object")
    return found
