"""Validation by JSON Schema: a record that is not valid is bad, with its place and rule, and no other one is."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job.decode.json_schema_decoder import JsonSchemaDecoder
from s3sink_job.decode.settings import JsonSchemaOptions
from s3sink_job.decode.writer_schemas import InvalidSchema
from tests.decode.json_schema_samples import decoder

LINE = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}, "required": ["count"]}
ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "mail": {"type": "string", "format": "email"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
        "lines": {"type": "array", "items": LINE},
    },
    "required": ["id"],
}


def strict(schema: Any) -> JsonSchemaDecoder:
    return decoder(schema, JsonSchemaOptions(validate=True))


def faults(by: JsonSchemaDecoder, *values: Any) -> dict[int, tuple[str, str]]:
    _, found = by.decode(pa.array([json.dumps(value).encode() for value in values]))
    return {row: tuple(fault) for row, fault in found.items()}


def test_a_record_that_is_not_valid_is_bad_with_place_and_rule() -> None:
    good = {"id": 1, "code": "AB", "lines": [{"count": 1}]}
    found = faults(strict(ORDER), good, {"id": 2, "lines": [{"count": 1}, {"count": 0}]}, good, {}, {"id": None}, good)

    assert {row: fault[0] for row, fault in found.items()} == dict.fromkeys([1, 3, 4], "SchemaMismatch")
    assert found[1][1] == (
        "is not valid by its own schema: $.lines[1].count: the value is less than the minimum of 1"
        " (rule properties/lines/items/properties/count/minimum)"
    )
    assert '$: "id" is a required property (rule required)' in found[3][1]
    assert "$.id: " in found[4][1]


def test_a_bad_value_is_not_in_the_message() -> None:
    found = faults(strict(ORDER), {"id": 1, "code": "my secret"}, {"id": "my secret"})
    assert len(found) == 2
    assert "secret" not in str(found)


@pytest.mark.parametrize(("draft", "bad"), [("http://json-schema.org/draft-07/schema#", True), ("", True)])
def test_formats_count_in_older_drafts(draft: str, bad: bool) -> None:
    schema = {**ORDER, "$schema": draft} if draft else ORDER
    assert bool(faults(strict(schema), {"id": 1, "mail": "nobody"})) == bad


def test_formats_do_not_count_in_newer_drafts() -> None:
    schema = {**ORDER, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert not faults(strict(schema), {"id": 1, "mail": "nobody"})


def test_without_validation_only_types_count() -> None:
    assert not faults(decoder(ORDER), {"code": "abc", "lines": [{"count": 0}, {}]})


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", r"^(?:(a|a)*)\1b$", "^(?=(a+)+b)", "x{999}{999}{999}"])
def test_a_pattern_that_would_take_years_takes_moments(pattern: str) -> None:
    by = strict({"type": "string", "pattern": pattern})
    start = time.process_time()

    found = faults(by, *["a" * 40 + "!"] * 50)

    assert set(found) == set(range(50))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("schema", [{"pattern": "("}, {"minLength": "x"}])
def test_a_schema_with_rules_that_mean_nothing_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match="that records cannot be validated with"):
        strict({"type": "string", **schema})


def test_a_record_beyond_the_depth_of_the_validator_is_bad_alone() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    found = faults(strict({"type": "object", "properties": {"a": {"type": "integer"}}}), {"a": 1}, {"b": deep}, {})
    assert set(found) <= {1}


def test_a_draft_that_cannot_validate_is_named_with_those_that_can() -> None:
    schema = {"$schema": "http://json-schema.org/draft-03/schema#", "type": "object"}
    decoder(schema)
    with pytest.raises(InvalidSchema) as refused:
        strict(schema)
    assert str(refused.value) == (
        "a JSON Schema that records cannot be validated with: its $schema is http://json-schema.org/draft-03/schema#, "
        "and drafts 4, 6, 7, 2019-09 and 2020-12 can be used"
    )


def test_nullable_is_no_keyword_of_json_schema_and_allows_no_null() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": ["string", "null"]}},
    }
    good, bad = {"a": "x", "b": None}, {"a": None, "b": "x"}
    assert set(faults(strict(schema), good, bad, {})) == {1}
    assert not faults(decoder(schema), good, bad, {})
