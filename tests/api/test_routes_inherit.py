"""What a route does not say is what the sink says; records must not end up in another place or form."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given

from s3sink_api.spec import (
    Columns,
    Compression,
    Csv,
    Envelope,
    Flush,
    Format,
    Layout,
    Padding,
    Parquet,
    RouteColumns,
    RouteCsv,
    RouteDestination,
    RouteEnvelope,
    RouteFlush,
    RouteFormat,
    RouteLayout,
    RoutePadding,
    RouteParquet,
    RouteSchemaEvolution,
    SchemaEvolution,
    SchemaRegistry,
    SecretRef,
    SecretSource,
    Spec,
    Value,
    parse,
)
from tests.api.documents import Document, documents, full, minimal, put
from tests.api.test_any_manifest import slow_to_draw

SECTIONS = ("destination", "layout", "format", "flush")
SINK = {
    "source": {"bootstrapServers": "kafka:9092", "topics": ["orders", "payments"]},
    "destination": {"bucket": "lake", "prefix": "raw", "storageClass": "STANDARD_IA"},
    "layout": {
        "partitionBy": [{"type": "Topic"}],
        "hiveStyle": True,
        "padding": {"offset": 4, "partition": 2},
        "suffix": "-a",
    },
    "format": {"type": "Csv", "compression": {"codec": "Gzip", "level": 9}, "csv": {"delimiter": ";", "quote": "All"}},
    "flush": {"records": 7, "interval": "5m"},
    "nullValues": "Skip",
}


def own(**parts: Any) -> Spec:
    """The spec of a route's topics."""
    route = {"topics": ["payments"], **parts}
    spec = parse(put(minimal(), "spec", SINK | {"routes": [route]})).spec
    return spec.for_route(spec.routes[0])


def sink() -> Spec:
    return parse(put(minimal(), "spec", SINK)).spec


def test_a_route_that_says_nothing_is_the_sink() -> None:
    assert own() == sink()
    assert own(destination={}, layout={"padding": {}}, format={"csv": {}}, flush={}) == sink()


def test_a_route_has_no_routes_of_its_own() -> None:
    assert own(flush={"records": 1}).routes == ()


@pytest.mark.parametrize(
    ("parts", "section", "changed"),
    [
        ({"destination": {"prefix": "pay"}}, "destination", {"prefix": "pay"}),
        ({"destination": {"bucket": "vault"}}, "destination", {"bucket": "vault"}),
        ({"destination": {"prefix": ""}}, "destination", {"prefix": ""}),
        ({"layout": {"hiveStyle": False}}, "layout", {"hive_style": False}),
        ({"layout": {"partitionBy": []}}, "layout", {"partition_by": ()}),
        ({"layout": {"suffix": ""}}, "layout", {"suffix": ""}),
        ({"flush": {"interval": "1s"}}, "flush", {"interval": 1.0}),
        ({"flush": {"bytes": "1Mi"}}, "flush", {"bytes": 2**20}),
        ({"format": {"compression": {"codec": "Gzip"}}}, "format", {"compression": Compression(codec="Gzip")}),
        ({"format": {"csv": {"delimiter": ","}}}, "format", {"csv": Csv(quote="All")}),
        ({"format": {"csv": {"header": False}}}, "format", {"csv": Csv(header=False, delimiter=";", quote="All")}),
    ],
)
def test_a_route_changes_what_it_says_and_nothing_else(parts: Any, section: str, changed: dict[str, Any]) -> None:
    spec = sink()
    assert own(**parts) == replace(spec, **{section: replace(getattr(spec, section), **changed)})


def test_a_route_decodes_its_topics_with_its_own_registry() -> None:
    registry = {"url": "https://other", "credentialsFrom": {"secretRef": {"name": "other"}}}
    source = own(source={"value": {"format": "Avro", "schemaRegistry": registry}}).source
    assert (source.key, source.topics) == (sink().source.key, sink().source.topics)
    assert source.value == Value(
        format="Avro",
        schema_registry=SchemaRegistry(
            url="https://other", credentials_from=SecretSource(secret_ref=SecretRef(name="other"))
        ),
    )


def test_a_registry_is_not_inherited_by_a_route_with_another_format() -> None:
    avro = {"format": "Avro", "schemaRegistry": {"url": "https://registry"}}
    spec = SINK | {"source": SINK["source"] | {"value": avro}}  # type: ignore[operator]
    route = {"topics": ["payments"], "source": {"value": {"format": "String"}}}
    parsed = parse(put(minimal(), "spec", spec | {"routes": [route]})).spec
    assert parsed.for_route(parsed.routes[0]).source.value == Value(format="String")


def test_padding_is_inherited_by_each_of_its_fields() -> None:
    padding = own(layout={"padding": {"partition": 0}}).layout.padding
    assert (padding.offset, padding.partition) == (4, 0)


def test_options_of_one_format_are_not_inherited_by_another() -> None:
    text = own(format={"type": "Text"}).format
    assert (text.type, text.csv, text.parquet, text.compression) == (
        "Text",
        Csv(),
        Parquet(),
        sink().format.compression,
    )
    rows = own(format={"type": "Parquet", "parquet": {"dictionary": False}}).format
    assert (rows.csv, rows.parquet) == (Csv(), Parquet(dictionary=False))


def test_the_same_format_said_again_keeps_its_options() -> None:
    assert own(format={"type": "Csv"}) == sink()


def merged(base: Any, over: Any) -> Any:
    """By the letter of the manifest; lists and the compression are taken whole."""
    if not isinstance(base, dict) or not isinstance(over, dict) or "codec" in over:
        return copy.deepcopy(over)
    return {**base, **{name: merged(base.get(name), value) for name, value in over.items()}}


@slow_to_draw
@given(documents())
def test_the_spec_of_any_route_is_that_of_a_sink_which_says_the_same(document: Document) -> None:
    """Also: no route that was taken turns out to be impossible when its topics are met."""
    spec = parse(document, built_only=False).spec
    for route, given_route in zip(spec.routes, document["spec"].get("routes", ()), strict=True):
        alone = {name: value for name, value in document["spec"].items() if name != "routes"}
        for section in SECTIONS:
            if section in given_route:
                base = copy.deepcopy(alone.get(section, {}))
                if section == "format" and given_route[section].get("type", base.get("type")) != base.get("type"):
                    base.pop("csv", None)
                    base.pop("parquet", None)
                alone[section] = merged(base, given_route[section])
        assert spec.for_route(route) == parse(document | {"spec": alone}, built_only=False).spec


OVERRIDES = {
    RouteColumns: Columns,
    RouteCsv: Csv,
    RouteEnvelope: Envelope,
    RouteFlush: Flush,
    RouteFormat: Format,
    RouteLayout: Layout,
    RoutePadding: Padding,
    RouteParquet: Parquet,
    RouteSchemaEvolution: SchemaEvolution,
}


@pytest.mark.parametrize(("override", "section"), OVERRIDES.items(), ids=lambda kind: kind.__name__)
def test_a_route_can_set_every_field_of_a_section_and_has_no_default(override: Any, section: Any) -> None:
    assert override.__name__ == f"Route{section.__name__}"
    of_sinks = {"topic_names", "topic_replacement"}
    assert [field.name for field in fields(override)] == [f.name for f in fields(section) if f.name not in of_sinks]
    assert all(field.default is None for field in fields(override))


def test_of_the_destination_a_route_sets_where_its_objects_go() -> None:
    assert [field.name for field in fields(RouteDestination)] == ["bucket", "prefix"]


def test_a_spec_with_routes_can_be_sent_to_another_process() -> None:
    spec = parse(full(), built_only=False).spec
    assert pickle.loads(pickle.dumps(spec)) == spec
