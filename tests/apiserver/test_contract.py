"""The CustomResourceDefinition and the parser are one contract: the same fields, defaults and mistakes."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import reduce
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from s3sink_api.definition.not_in_cel import NOT_IN_CEL, only_the_parser_refuses
from s3sink_api.spec import FieldError, Spec, SpecError, format_quantity, parse, to_document
from tests.api.documents import documents, full, minimal, places, put
from tests.apiserver.conftest import DEFINITION
from tests.apiserver.manifests import by_hand, from_the_schema, manifests, routing
from tools.cluster.client import Client, Document, Refused, sinks

EXAMPLES = [
    document
    for file in sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
    if document["kind"] == "S3Sink"
]
FILE = yaml.safe_load(DEFINITION.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def as_kubectl_sends_it(value: Any) -> Any:
    """Go has one kind of number, and writes 5.0 as 5; it has no dates in YAML."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case float() if value.is_integer() and abs(value) < 2**63:
            return int(value)
        case dict():
            return {key: as_kubectl_sends_it(item) for key, item in value.items()}
        case list():
            return [as_kubectl_sends_it(item) for item in value]
        case _:
            return value


def parsers_errors(document: Mapping[str, Any]) -> tuple[FieldError, ...]:
    try:
        parse(document, built_only=False)
    except SpecError as error:
        return error.errors
    return ()


def disagreement(api: Client, document: Document) -> str:
    """What one of the two takes and the other does not, what they read differently; nothing where they agree."""
    document = document | {"metadata": {"name": document["metadata"]["name"]}}
    errors = parsers_errors(document)
    try:
        stored = api.try_post(sinks("default"), as_kubectl_sends_it(document))
    except Refused as refused:
        return "" if errors else f"the server alone refuses: {refused.message}"
    if errors:
        return "" if all(map(only_the_parser_refuses, errors)) else f"the parser alone refuses: {SpecError(errors)}"
    if parse(stored, built_only=False).spec != parse(document, built_only=False).spec:
        return f"what is stored means something else: {stored['spec']}"
    return ""


def of_each_field(tried: Iterator[tuple[str, Document]]) -> list[Any]:
    grouped: dict[str, list[Document]] = defaultdict(list)
    for path, document in tried:
        grouped[path].append(document)
    return [pytest.param(found, id=path) for path, found in grouped.items()]


@pytest.mark.parametrize("tried", of_each_field(by_hand()))
def test_the_server_and_the_parser_agree_on_every_value_of_the_table(api: Client, tried: list[Document]) -> None:
    for document in tried:
        assert disagreement(api, document) == "", document["spec"]


@pytest.mark.parametrize("tried", of_each_field(from_the_schema()))
def test_the_server_and_the_parser_agree_on_wrong_types_bounds_and_unknown_fields(
    api: Client, tried: list[Document]
) -> None:
    for document in tried:
        assert disagreement(api, document) == "", document["spec"]


at_random = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@at_random
@given(manifests())
def test_the_server_and_the_parser_agree_on_any_manifest(api: Client, document: Document) -> None:
    assert disagreement(api, document) == ""


@settings(at_random, max_examples=200)
@given(st.text("yMdaDr'/[# -é", min_size=1, max_size=12))
def test_the_server_and_the_parser_agree_on_any_date_pattern(api: Client, pattern: str) -> None:
    item = {"type": "Time", "source": "Record", "format": pattern}
    assert disagreement(api, put(minimal(), "spec.layout.partitionBy", [item])) == ""


@settings(at_random, max_examples=100)
@given(documents())
def test_any_valid_manifest_is_taken_by_both(api: Client, document: Document) -> None:
    assert parsers_errors(document) == ()
    assert disagreement(api, document) == ""


def bounded(start: Any, end: Any) -> Any:
    document = put(minimal(), "spec.run", "Once")
    document = put(document, "spec.source.startingOffsets", start)
    return put(document, "spec.source.endingOffsets", {"position": start["position"], **end})["spec"]


# For each row of the list a document that the server takes.
UNROUTED = {"bootstrapServers": "kafka:9092", "topics": ["a", "b"], "onUnroutedTopic": "Fail"}
STORED_ALL_THE_SAME: list[tuple[str, Any]] = [
    ("spec.destination.endpoint", None),
    ("spec.source", {"bootstrapServers": "kafka:9092", "topicPattern": "("}),
    ("spec.routes", [{"topicPattern": "("}]),
    ("spec.routes", [{"topics": ["other"]}]),
    ("spec.source.value.schema", "{"),
    (
        "spec.source.startingOffsets",
        {"position": "Offsets", "offsets": [{"topic": "other", "partition": 0, "offset": 1}]},
    ),
    ("spec", bounded({"position": "Timestamp", "timestamp": "2026-02-01"}, {"timestamp": "2026-01-01"})),
    (
        "spec",
        bounded(
            {"position": "Offsets", "offsets": [{"topic": "orders", "partition": 0, "offset": 9}]},
            {"offsets": [{"topic": "orders", "partition": 0, "offset": 8}]},
        ),
    ),
    ("spec", routing()["spec"] | {"routes": [{"topics": ["a"]}, {"topics": ["b", "a"]}]}),
    (
        "spec.layout",
        {"hiveStyle": True, "partitionBy": [{"type": "Time", "source": "Record", "format": "'a='yyyy/'a='MM"}]},
    ),
    ("spec.routes", [{"topics": ["orders"], "layout": {"partitionBy": [{"type": "Key", "path": ["id"]}]}}]),
    ("spec.layout.topicReplacement", {"pattern": "(", "replacement": ""}),
    ("spec.layout.topicNames", [{"topic": "orders", "as": ".s3sink"}]),
    (
        "spec.routes",
        [{"topics": ["orders"], "format": {"type": "Avro", "envelope": {"enabled": True, "keyAs": "Fields"}}}],
    ),
    ("spec", routing()["spec"] | {"source": UNROUTED, "routes": [{"topics": ["a"]}]}),
    ("spec.transform", {"where": "now() > a"}),
    ("spec.routes", [{"topics": ["orders"], "format": {"type": "Text"}, "transform": {"select": ["a"]}}]),
    ("spec.spark.driver.podTemplate", {"deep": reduce(lambda inner, _: [inner], range(70), [1])}),
]


def test_what_only_the_parser_finds_is_listed_and_nothing_is_listed_without_need(api: Client) -> None:
    for row, (path, value) in zip(NOT_IN_CEL, STORED_ALL_THE_SAME, strict=True):
        document = put(minimal(), path, value)
        api.try_post(sinks("default"), document)
        assert parsers_errors(document), row
        assert all(map(row.covers, parsers_errors(document))), row
        assert row.why.endswith(".")


def test_a_null_is_never_stored(api: Client, namespace: str) -> None:
    """A file that the command line refuses for a null is one without it on the server."""
    document = full()
    del document["metadata"]["namespace"], document["spec"]["spark"]["driver"]["podTemplate"]
    for steps, value in places(document["spec"], ("spec",)):
        if not isinstance(value, dict | list) and not any(isinstance(step, int) for step in steps):
            try:
                stored = api.try_post(sinks(namespace), put(document, steps, None))
            except Refused:
                continue
            assert all(held is not None for _, held in places(stored["spec"])), steps


def fields_of(section: Any, at: str = "spec", *, in_list: bool = False) -> Iterator[tuple[str, Any]]:
    """Every field below a dataclass, with its default as a manifest writes it; list items have none."""
    for info in section.__pydantic_fields__.values():
        path, members = f"{at}.{info.alias}", list(_sections(info.annotation))
        default = info.get_default(call_default_factory=True)
        if in_list or info.is_required() or default is None or default in ("", (), {}):
            yield path, None
        elif dataclasses.is_dataclass(default) and len(members) == 1:
            yield path, {}
        else:
            kind: Any = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
            yield path, TypeAdapter(kind).dump_python(default, mode="json", by_alias=True, exclude_none=True)
        listed = in_list or len(members) > 1 or get_origin(_bare(info.annotation)) is tuple
        for member in members:
            inside = f"{path}[]" if get_origin(_bare(info.annotation)) is tuple else path
            yield from fields_of(member, inside, in_list=listed)


def _bare(kind: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bare(args[0])
    if origin in {Union, UnionType}:
        (*members,) = (member for member in args if member is not NoneType)
        return _bare(members[0]) if len(members) == 1 else kind
    return kind


def _sections(kind: Any) -> Iterator[Any]:
    bare = _bare(kind)
    if dataclasses.is_dataclass(bare):
        yield bare
    elif get_origin(bare) in {Union, UnionType, tuple}:
        for member in get_args(bare):
            yield from _sections(member)


def properties_of(schema: Any, at: str = "spec") -> Iterator[tuple[str, Any]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{at}.{name}", inner.get("default")
        yield from properties_of(inner, f"{at}.{name}")
    if "items" in schema:
        yield from properties_of(schema["items"], f"{at}[]")


def test_every_field_of_the_parser_is_one_of_the_definition_with_the_same_default() -> None:
    ours = {path: _sized(value) for path, value in fields_of(Spec)}
    theirs = {path: _sized(value) for path, value in properties_of(FILE)}
    assert len(ours) > 150
    assert ours == theirs


def _sized(default: Any) -> Any:
    """Sizes are numbers in the parser, and written with a unit in the definition."""
    return format_quantity(default) if isinstance(default, int) and default >= 2**20 else default


def test_the_server_stores_every_default_of_the_parser_and_no_other(api: Client, namespace: str) -> None:
    document = minimal()
    api.post(sinks(namespace), document)
    stored = api.get(sinks(namespace, "orders"))
    assert parse(stored).spec == parse(document).spec
    assert _leaves(stored["spec"]) == _leaves(to_document(parse(document))["spec"])


def _leaves(spec: Any) -> dict[str, Any]:
    """Values by their paths. Empty texts, lists and maps mean "none", which the server leaves out."""
    found = {}
    for steps, value in places(spec):
        if value not in ("", [], {}) and not isinstance(value, dict):
            found[".".join(map(str, steps))] = format_quantity(value) if _is_size(steps[-1], value) else value
    return found


def _is_size(name: str | int, value: Any) -> bool:
    return isinstance(value, int) and name in {"partSize", "rowGroupBytes", "memory", "spill"}


def test_nothing_of_the_fullest_manifest_is_lost_on_the_server(api: Client, namespace: str) -> None:
    document = full()
    document["metadata"] = {"name": "orders"}
    api.post(sinks(namespace), document, fieldValidation="Strict")
    stored = api.get(sinks(namespace, "orders"))
    missing = [steps for steps, value in places(document["spec"]) if _at(stored["spec"], steps) != value]
    assert not [steps for steps in missing if not isinstance(_at(document["spec"], steps), dict | list)]
    assert parse(stored, built_only=False).spec == parse(document, built_only=False).spec


def test_the_fullest_manifest_holds_every_field_but_those_that_exclude_each_other() -> None:
    held = {_without_numbers(steps) for steps, _ in places(full()["spec"], ("spec",))}
    every = {path for path, _ in properties_of(FILE)}
    assert sorted(path for path in every - held if path.rpartition(".")[0] in held) == [
        "spec.destination.encryption.secretRef",
        "spec.errors.deadLetter.format",
        "spec.errors.deadLetter.prefix",
        "spec.reset.to.offsets",
        "spec.routes[].layout.partitionBy[].as",
        "spec.routes[].layout.partitionBy[].every",
        "spec.routes[].layout.partitionBy[].format",
        "spec.routes[].layout.partitionBy[].locale",
        "spec.routes[].layout.partitionBy[].name",
        "spec.routes[].layout.partitionBy[].path",
        "spec.routes[].layout.partitionBy[].source",
        "spec.routes[].layout.partitionBy[].timezone",
        "spec.routes[].source.key.schemaRegistry",
        "spec.routes[].source.value.schema",
        "spec.routes[].source.value.schemaRegistry.certFrom",
        "spec.routes[].source.value.schemaRegistry.url",
        "spec.routes[].topicPattern",
        "spec.routes[].transform",
        "spec.source.endingOffsets",
        "spec.source.key.schema",
        "spec.source.key.schemaRegistry",
        "spec.source.startingOffsets.timestamp",
        "spec.source.topicPattern",
        "spec.source.value.schema",
        "spec.source.value.schemaRegistry.assumeRole",
        "spec.source.value.schemaRegistry.endpoint",
        "spec.source.value.schemaRegistry.proxy",
        "spec.source.value.schemaRegistry.region",
        "spec.spark.executor.podTemplate",
    ]


def _without_numbers(steps: tuple[str | int, ...]) -> str:
    path = ""
    for step in steps:
        path += "[]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        value = value[step]
    return value


@pytest.mark.parametrize("document", EXAMPLES, ids=lambda document: document["metadata"]["name"])
def test_examples_are_taken(api: Client, document: Document) -> None:
    parse(document)
    assert disagreement(api, document) == ""
