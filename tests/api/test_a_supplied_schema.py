"""A schema in the manifest: the columns that a JSON Schema asks for, and mistakes in it or in an Avro schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_api.spec import columns_of
from tests.api.documents import errors_of, minimal, put


def rows(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return columns_of(json.dumps({"type": "object", "properties": properties, **more}))["struct"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        ({"type": "integer"}, "int64"),
        ({"type": "number"}, "double"),
        ({"type": ["integer", "number", "null"]}, "double"),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "boolean"}, "bool"),
        ({"type": "array", "items": {"type": "integer"}}, {"list": "int64"}),
        ({"type": "array"}, "json"),
        ({"type": "object", "properties": {"b": {"type": "string"}}}, {"struct": {"b": "text"}}),
        ({"type": "object"}, "json"),
        ({"type": ["string", "integer"]}, "json"),
        ({}, "json"),
    ],
)
def test_each_type_has_its_column(schema: dict[str, Any], column: Any) -> None:
    assert rows({"a": schema})["a"] == column


def test_fields_without_a_column_have_a_place_unless_they_are_forbidden() -> None:
    assert list(rows({"a": {}})) == list(rows({"a": {}}, additionalProperties=True)) == ["a", "_more"]
    assert list(rows({"a": {}}, additionalProperties=False)) == ["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON Schema of an object"),
        ('{"type": "array"}', "must be a JSON Schema of an object"),
        ('{"type": "object"}', "has no properties"),
        ('{"type": "object", "properties": []}', "$.properties must be an object"),
        ('{"type": "object", "properties": {"a": 1}}', "$.a must be an object that says a type"),
        ('{"type": "object", "properties": {"a": {"type": "int"}}}', "$.a has the type 'int'"),
        ('{"type": "object", "properties": {"_more": {}}}', "has a property '_more'"),
    ],
)
def test_what_is_no_schema_of_a_row_is_refused_with_the_place(text: str, words: str) -> None:
    document = put(put(minimal(), "spec.format", {"type": "Parquet"}), "spec.source.value.schema", text)
    assert words in errors_of(document)["spec.source.value.schema"]


FIELD = {"name": "a", "type": "int"}


@pytest.mark.parametrize(
    "schema",
    [
        "long",
        {"type": "long", "logicalType": "timestamp-millis"},
        ["null", {"type": "array", "items": "string"}, {"type": "map", "values": ["null", "bytes"]}],
        {"type": "record", "name": "R", "fields": []},
        {"type": "record", "name": "R", "namespace": "a.b", "fields": [{"name": "next", "type": ["null", "R"]}]},
        {"type": "record", "name": "a.R", "fields": [{"name": "next", "type": ["null", "a.R", {"type": "int"}]}]},
        [{"type": "enum", "name": "E", "symbols": ["X"]}, {"type": "fixed", "name": "F", "size": 4}, "int"],
        {"type": {"type": "record", "name": "R", "fields": [FIELD]}},
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": 1}}, {"name": "b", "type": "F"}],
        },
    ],
)
def test_an_avro_schema_is_taken(schema: Any) -> None:
    assert errors_of(put(minimal(), "spec.source.value", {"format": "Avro", "schema": json.dumps(schema)})) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "$ is too deeply nested"),
        ("5", "$ must be an Avro schema"),
        ("{}", "$ must be an Avro schema"),
        ("[]", "$ is a union without a type"),
        ('"strin"', "$ names the type 'strin'"),
        ('["null", {"type": "text"}]', "$[1].type names the type 'text'"),
        ('{"type": "array"}', "$.items must be an Avro schema"),
        ('{"type": "map", "values": "x"}', "$.values names the type 'x'"),
        ('{"type": "record", "fields": []}', "$.name must be the name of the type"),
        ('{"type": "record", "name": "R"}', "$.fields must be a list"),
        ('{"type": "record", "name": "R", "fields": ["a"]}', "$.fields[0] must be a field with a name and a type"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "$.fields[0].type must be an Avro schema"),
        (json.dumps({"type": "record", "name": "R", "fields": [FIELD, FIELD]}), "$.fields[1] is a second field 'a'"),
        ('{"type": "enum", "name": "E", "symbols": [1]}', "$.symbols must be a list of names"),
        ('{"type": "fixed", "name": "F", "size": "4"}', "$.size must be a number"),
        ('[{"type": "fixed", "name": "F", "size": 4}, {"type": "enum", "name": "F", "symbols": []}]', "a second time"),
    ],
)
def test_what_is_no_avro_schema_is_refused_with_the_place(text: str, words: str) -> None:
    errors = errors_of(put(minimal(), "spec.source.value", {"format": "Avro", "schema": text}))
    assert words in errors["spec.source.value.schema"]
