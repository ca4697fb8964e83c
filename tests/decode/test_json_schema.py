"""JSON Schemas as columns: references, combinators, all drafts, and schemas that cannot be used."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.decode.json_schema import MAX_COLUMN_DEPTH, MAX_TYPES
from s3sink_job.decode.settings import JsonSchemaOptions
from s3sink_job.decode.writer_schemas import InvalidSchema
from tests.decode.json_schema_samples import decoder

INT, TEXT = {"type": "integer"}, {"type": "string"}
DRAFTS = {
    "http://json-schema.org/draft-04/schema#": "definitions",
    "http://json-schema.org/draft-06/schema#": "definitions",
    "http://json-schema.org/draft-07/schema#": "definitions",
    "https://json-schema.org/draft/2019-09/schema": "$defs",
    "https://json-schema.org/draft/2020-12/schema": "$defs",
}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def columns(schema: Any, **references: Any) -> str:
    return str(decoder(schema, **references).type)


@pytest.mark.parametrize(("draft", "folder"), DRAFTS.items())
@pytest.mark.parametrize("validate", [False, True])
def test_every_draft_is_read(draft: str, folder: str, validate: bool) -> None:
    name = "id" if "draft-04" in draft else "$id"
    schema = {
        "$schema": draft,
        name: "http://example.com/order.json",
        **closed(a={"$ref": f"#/{folder}/money"}, b={"$ref": f"order.json#/{folder}/money"}),
        folder: {"money": closed(cents=INT)},
    }

    found = decoder(schema, JsonSchemaOptions(validate=validate))

    assert str(found.type) == "struct<a: struct<cents: int64>, b: struct<cents: int64>>"
    values, faults = found.decode(pa.array([b'{"a":{"cents":1},"b":{"cents":2}}']))
    assert (values.to_pylist(), faults) == ([{"a": {"cents": 1}, "b": {"cents": 2}}], {})


def test_columns_have_the_order_of_the_schema() -> None:
    assert columns(closed(z=INT, a=INT, m=TEXT)) == "struct<z: int64, a: int64, m: string>"


@pytest.mark.parametrize("validate", [False, True])
@pytest.mark.parametrize("own", [None, "http://example.com/schemas/sale.json", "sale.json"])
@pytest.mark.parametrize("name", ["customer.json", "http://example.com/schemas/customer.json"])
def test_references_of_the_registry_are_found_by_name(validate: bool, own: str | None, name: str) -> None:
    ids = {"$id": own} if own else {}
    address = closed(city=TEXT)
    customer = {**closed(home={"$ref": "address.json#/definitions/address"})}
    folder = {"definitions": {"address": address}}
    schema = {**ids, **closed(by={"$ref": name})}

    found = decoder(schema, JsonSchemaOptions(validate=validate), **{"address.json": folder, name: customer})

    assert str(found.type) == "struct<by: struct<home: struct<city: string>>>"
    _, faults = found.decode(pa.array([b'{"by":{"home":{"city":"x"}}}', b'{"by":{"home":{"city":1}}}']))
    assert list(faults) == [1]


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"allOf": [closed(a=INT), {"properties": {"b": TEXT}}]}, "struct<a: int64, b: string>"),
        ({"allOf": [{"properties": {"a": INT}}], "unevaluatedProperties": False}, "struct<a: int64>"),
        ({"oneOf": [closed(t={"const": "x"}, a=INT), closed(t={"const": "y"}, b=TEXT)]},
         "struct<t: string, a: int64, b: string>"),
        ({"oneOf": [closed(a=INT), closed(a=TEXT)]}, "struct<a: string>"),
        ({**closed(a=INT), "then": {"properties": {"b": TEXT}}}, "struct<a: int64, b: string>"),
        ({**closed(a=INT), "dependentSchemas": {"a": {"properties": {"b": TEXT}}}}, "struct<a: int64, b: string>"),
        ({**closed(a=INT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "struct<a: int64>"),
        (closed(a=False, b=True), "struct<b: string>"),
        ({"properties": {"_more": INT, "a": INT}}, "struct<a: int64, _more: string>"),
        ({"items": [INT, INT], "additionalItems": False, "type": "array"}, "list<item: int64>"),
        ({"prefixItems": [INT], "items": INT}, "list<item: int64>"),
        ({"type": "string", "enum": ["a"], "format": "date"}, "date32[day]"),
        ({"anyOf": [{**TEXT, "format": "date"}, TEXT]}, "string"),
        ({"type": ["integer", "number", "null"]}, "double"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/a", "properties": {"b": INT},
          "$defs": {"a": closed(a=INT)}}, "struct<a: int64, b: int64>"),
        ({"$ref": "#/$defs/a", "properties": {"b": INT}, "$defs": {"a": closed(a=INT)}}, "struct<a: int64>"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"$ref": "#one"}, "type": "array",
          "$defs": {"a": {"$anchor": "one", **INT}}}, "list<item: int64>"),
        ({"type": "object", "patternProperties": {"a": INT, "b": TEXT}, "additionalProperties": False}, "string"),
        ({"type": "object", "properties": {}, "additionalProperties": False}, "struct<>"),
        ({"$schema": "http://example.com/my-own#", "type": "integer"}, "int64"),
    ],
)  # fmt: skip
def test_combinations_give_one_type(schema: Any, wanted: str) -> None:
    assert columns(schema) == wanted


def test_two_schemas_inside_of_each_other_are_text_where_they_come_again() -> None:
    defs = {"a": closed(b={"$ref": "#/$defs/b"}), "b": closed(a={"$ref": "#/$defs/a"}, n=INT)}

    assert columns({"$defs": defs, **closed(x={"$ref": "#/$defs/a"})}) == (
        "struct<x: struct<b: struct<a: string, n: int64>>>"
    )


def nested(levels: int) -> dict[str, Any]:
    schema = closed(end=INT)
    for _ in range(levels):
        schema = closed(a=schema)
    return schema


def within(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = INT
    for _ in range(levels):
        schema = {"allOf": [schema]}
    return schema


def test_what_is_nested_deeply_is_text() -> None:
    found, value = decoder(nested(40)), b'{"a":' * 40 + b'{"end":1}' + b"}" * 40

    (row,), faults = found.decode(pa.array([value]))

    assert not faults
    assert str(row.type).count("struct") == MAX_COLUMN_DEPTH
    assert '{"end":1}' in str(row.as_py())


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "no JSON Schema: it is not JSON"),
        ("[]", "no JSON Schema: it is an array, and should be an object"),
        ("[" * 200_000, "no JSON Schema: it is nested too deeply"),
        (False, "a JSON Schema that no record fits: it is false"),
        ({"type": "int"}, "no JSON Schema: #/type has 'int', which is no type"),
        ({"type": 3}, "no JSON Schema: #/type has 3, which is no type"),
        (closed(a=3), "no JSON Schema: #/properties/a is a number, and should be an object"),
        ({"properties": []}, "no JSON Schema: #/properties is an array, and should be an object"),
        ({"allOf": {}}, "no JSON Schema: #/allOf is an object, and should be an array"),
        (closed(a={"$ref": "#/$defs/a"}), "#/properties/a/$ref is '#/$defs/a', which is neither in the schema nor"),
        ({"$ref": "http://example.com/a.json"}, "#/$ref is 'http://example.com/a.json', which is neither"),
        ({"$ref": "file:///etc/passwd"}, "#/$ref is 'file:///etc/passwd', which is neither"),
        ({"$ref": "#"}, "#/$ref leads back to itself: '#'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "leads back to itself"),
        (within(110), "a JSON Schema that is nested more than 100 levels deep"),
    ],
)
@pytest.mark.parametrize("validate", [False, True])
def test_a_schema_that_cannot_be_used_is_named(schema: Any, why: str, validate: bool) -> None:
    with pytest.raises(InvalidSchema) as error:
        decoder(schema, JsonSchemaOptions(validate=validate))

    assert why in str(error.value)


WORDS = (
    *("type", "properties", "items", "prefixItems", "additionalProperties", "patternProperties", "allOf", "anyOf"),
    *("oneOf", "$ref", "$id", "id", "$schema", "$defs", "definitions", "$anchor", "enum", "const", "format", "title"),
    *("connect.type", "connect.parameters", "then", "dependentSchemas", "unevaluatedProperties", "$dynamicRef"),
    "pattern",
)
VALUES = ("integer", "string", "object", "array", "#", "#/$defs/a", "a", "date", "bytes", "(", "http://x/%", *DRAFTS)
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(VALUES),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS) | st.just("a"), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(schema=st.dictionaries(st.sampled_from(WORDS), ODD, min_size=1, max_size=5), validate=st.booleans())
def test_any_schema_is_read_or_refused(schema: Any, validate: bool) -> None:
    with suppress(InvalidSchema):
        found = decoder(schema, JsonSchemaOptions(validate=validate))
        found.decode(pa.array([b"{}", b'{"a":1}', b"[]", b'"x"', b"1", b"null"]))


def test_a_schema_that_doubles_with_each_level_is_refused() -> None:
    defs = {f"d{n}": closed(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"}) for n in range(30)}
    with pytest.raises(InvalidSchema, match=f"more than {MAX_TYPES} types"):
        decoder({"$defs": {**defs, "d30": INT}, "$ref": "#/$defs/d0"})


@pytest.mark.parametrize("validate", [False, True])
def test_a_schema_of_two_megabytes_is_read(validate: bool) -> None:
    schema = closed(**{f"p{n}": {**TEXT, "description": "x" * 150} for n in range(10_000)})
    assert len(json.dumps(schema)) > 1.9e6
    start = time.process_time()

    found = decoder(schema, JsonSchemaOptions(validate=validate))
    values, faults = found.decode(pa.array([b'{"p7":"x"}'] * 20))

    assert not faults
    assert values[3]["p7"].as_py() == "x"
    assert time.process_time() - start < 10
