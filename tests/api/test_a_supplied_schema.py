"""A JSON Schema in the manifest: the columns it asks for, and what keeps it from being columns."""

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
