"""A wrong inline schema stops the sink at its start, and `check` shows it: both name the field and say why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_api.spec import parse
from s3sink_job.base.secrets import Secrets
from s3sink_job.proof.registry_check import registry_checks
from s3sink_job.task.routing import Routing
from tests.api.documents import minimal
from tests.harness import failure_of

CUT = {"format": "Protobuf", "schema": 'syntax = "proto3";\nmessage Order { int64 id = 1 }'}
EMPTY = {"format": "Protobuf", "schema": "enum Kind { A = 0; }"}
IMPORT = {"format": "Protobuf", "schema": 'import "shop.proto"; message Order {}'}
OPTION = {"format": "Protobuf", "schema": "option features.field_presence = NEVER; message Order {}"}
ELSEWHERE = {"format": "JsonSchema", "schema": json.dumps({"$ref": "https://example.com/order.json"})}
PATTERN = {"format": "JsonSchema", "schema": json.dumps({"type": "string", "pattern": "("}), "validate": True}
GOOD = {"format": "Protobuf", "schema": "message Order { optional int64 id = 1; }"}
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "value": ({"value": CUT}, "source.value", "not a Protobuf schema: line 2: ';' is expected, and not '}'"),
    "key": ({"key": CUT}, "source.key", "not a Protobuf schema: line 2: ';' is expected, and not '}'"),
    "no message": ({"value": EMPTY}, "source.value", "without the message [0]: it has 0 messages"),
    "import": ({"value": IMPORT}, "source.value", "imports 'shop.proto', which is not among its references"),
    "features": ({"value": OPTION}, "source.value", "features that this release does not know"),
    "$ref": ({"value": ELSEWHERE}, "source.value", "https://example.com/order.json"),
    "validate": ({"value": PATTERN}, "source.value", "a JSON Schema that records cannot be validated with"),
}


def spec_with(source: dict[str, Any], routes: list[dict[str, Any]] | None = None) -> Any:
    document = minimal()
    spec = {**document["spec"], "format": {"type": "Parquet"}, "routes": routes or []}
    return parse({**document, "spec": {**spec, "source": {**spec["source"], "topics": ["a", "b"], **source}}}).spec


def assert_both_refuse(spec: Any, place: str, why: str) -> None:
    error = failure_of(Routing(spec).check)
    assert error.reason == "InvalidSchema"
    assert str(error).startswith(f"spec.{place}.schema is ")
    assert why in str(error)
    (text,) = [text for what, ok, text in registry_checks(spec, Secrets("")) if what == "schema" and not ok]
    assert text == str(error)


@pytest.mark.parametrize(("source", "place", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_inline_schema_is_refused_before_the_first_record(source: dict[str, Any], place: str, why: str) -> None:
    assert_both_refuse(spec_with(source), place, why)


def test_a_wrong_inline_schema_of_a_route_is_named_with_its_route() -> None:
    routes = [{"topics": ["a"]}, {"topics": ["b"], "source": {"value": CUT}}]
    spec = spec_with({"value": GOOD}, routes)
    assert_both_refuse(spec, "routes[1].source.value", "line 2: ';' is expected")


def test_check_shows_the_columns_of_an_inline_schema() -> None:
    routes = [{"topics": ["a"]}, {"topics": ["b"], "source": {"value": {**GOOD, "schema": "message Other {}"}}}]
    spec = spec_with({"value": GOOD}, routes)
    Routing(spec).check()
    assert list(registry_checks(spec, Secrets(""))) == [
        ("schema", True, "spec.source.value.schema: id int64"),
        ("schema", True, "spec.routes[1].source.value.schema: a record without fields"),
    ]
