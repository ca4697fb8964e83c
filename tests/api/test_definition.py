"""The CustomResourceDefinition and the parser are one contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from s3sink_api.definition import definition, to_yaml
from s3sink_api.definition.descriptions import DESCRIPTIONS
from s3sink_api.definition.schema import section_schema
from s3sink_api.spec import parse, to_document
from s3sink_api.spec.pydantic_config import CONFIG

ROOT = Path(__file__).parents[2]
FILE = ROOT / "crds" / "s3sinks.s3sink.dev.yaml"
VERSION = definition()["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")


def test_the_file_is_up_to_date() -> None:
    again = "run `python -m s3sink_api.definition > crds/s3sinks.s3sink.dev.yaml`"
    assert FILE.read_text() == to_yaml(definition()), again


def test_every_field_has_a_sentence() -> None:
    fields = [(p, s) for p, s in walk(SCHEMA) if p not in {"", ".metadata"} and not p.endswith("[]")]
    assert len(fields) > 200
    assert not [path for path, schema in fields if not str(schema.get("description", "")).endswith(".")]


def test_no_description_is_left_of_a_field_that_is_gone() -> None:
    used = {s["description"] for _, s in walk(SCHEMA) if "description" in s}
    given = [text for section in DESCRIPTIONS.values() for text in section.values()]
    # Those of sizes and durations also say how they are written.
    assert not [text for text in given if not any(found.startswith(text) for found in used)]


def test_sizes_durations_and_amounts_say_how_they_are_written() -> None:
    spec = SCHEMA["properties"]["spec"]["properties"]
    assert spec["flush"]["properties"]["bytes"]["description"].endswith("A quantity such as 64Mi.")
    assert "A duration such as 50ms, 30s, 15m or 1h30m." in spec["flush"]["properties"]["interval"]["description"]
    driver = spec["spark"]["properties"]["driver"]["properties"]
    assert "500m" in driver["cpuRequest"]["description"]


def defaults_in_lists(schema: Mapping[str, Any], path: str = "", listed: bool = False) -> Iterator[str]:
    """Where a default stands below any `items`, however deep and by whatever keyword."""
    if listed and "default" in schema:
        yield path
    for keyword, held in schema.items():
        inside = listed or keyword == "items"
        match held:
            case dict() if keyword == "properties":
                for name, inner in held.items():
                    yield from defaults_in_lists(inner, f"{path}.{name}", inside)
            case dict() if keyword != "default":
                yield from defaults_in_lists(held, f"{path}[]" if keyword == "items" else path, inside)
            case [dict(), *_]:
                for inner in held:
                    yield from defaults_in_lists(inner, path, inside)


def test_items_of_lists_have_no_defaults_that_git_would_drift_from() -> None:
    """Argo CD compares items as a whole: one that was filled in differs for ever, and no example need have it."""
    (version,) = yaml.safe_load(FILE.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert list(defaults_in_lists(schema)) == []
    route = schema["properties"]["spec"]["properties"]["routes"]["items"]["properties"]
    route["format"]["properties"]["csv"]["properties"]["header"]["default"] = True
    assert list(defaults_in_lists(schema)) == [".spec.routes[].format.csv.header"]


def test_lists_and_texts_are_bounded() -> None:
    """The API server estimates the cost of rules from the largest document there may be."""
    for path, schema in walk(SCHEMA["properties"]["spec"], "spec"):
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
        if schema.get("type") == "string" and "enum" not in schema:
            assert "maxLength" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path
            assert "maxLength" in schema["additionalProperties"], path


def test_every_rule_says_what_would_be_right() -> None:
    rules = [rule for _, schema in walk(SCHEMA) for rule in schema.get("x-kubernetes-validations", [])]
    assert len(rules) > 200
    for rule in rules:
        assert rule["message"].strip()
        assert "\n" not in rule["message"]


def defaulted(schema: dict[str, Any], value: Any) -> Any:
    """What the API server stores: defaults filled in from the outside in."""
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    known = schema["properties"]
    filled = dict(value)
    for name, inner in known.items():
        if name not in filled and "default" in inner:
            filled[name] = inner["default"]
    return {name: defaulted(known[name], held) if name in known else held for name, held in filled.items()}


def examples() -> list[dict[str, Any]]:
    found = []
    for file in sorted((ROOT / "examples").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] == "S3Sink":
                found.append(document)
    return found


@pytest.mark.parametrize("document", examples(), ids=lambda d: d["metadata"]["name"])
def test_the_server_and_the_parser_have_the_same_defaults(document: dict[str, Any]) -> None:
    stored = {**document, "spec": defaulted(SCHEMA["properties"]["spec"], document["spec"])}
    assert parse(stored) == parse(document)
    # And nothing has a default in one of them only.
    ours = to_document(parse(document))["spec"]
    assert _without_nothing(ours) == _without_nothing(to_document(parse(stored))["spec"])
    assert _paths(_without_nothing(ours)) == _paths(_without_nothing(stored["spec"]))


def _without_nothing(value: Any) -> Any:
    """Empty texts, lists and maps mean "none", which the server leaves out."""
    if isinstance(value, dict):
        kept = {k: _without_nothing(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v not in ("", [], {}, None)}
    return value


def _paths(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {p for k, v in value.items() for p in _paths(v, f"{path}.{k}")}
    return {path}


def test_people_see_what_they_ask_for_first() -> None:
    columns = {c["name"]: c.get("priority", 0) for c in VERSION["additionalPrinterColumns"]}
    assert [n for n, p in columns.items() if not p] == [
        *("State", "Ready", "Accepted", "Lag", "Last Flush", "Retries", "Restarts", "Age"),
    ]
    assert [n for n, p in columns.items() if p] == ["Topics", "Pattern", "Bucket", "Format"]
    names = definition()["spec"]["names"]
    assert (names["shortNames"], names["categories"]) == (["s3s"], ["all"])
    assert VERSION["subresources"]["scale"]["specReplicasPath"] == ".spec.spark.executor.instances"


def test_a_validator_without_cel_stops_the_generator() -> None:
    @dataclass(frozen=True, kw_only=True, config=CONFIG)
    class Flush:
        records: Annotated[int, AfterValidator(abs)] = 1

    with pytest.raises(TypeError, match="has no CEL"):
        section_schema(Flush)
