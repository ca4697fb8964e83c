"""What the manifest alone shows: no two topics share a folder, and every topic has a route where it needs one."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_api.spec import SpecError, parse
from tests.api.documents import minimal


def sink(**spec: Any) -> dict[str, Any]:
    document = minimal()
    document["spec"]["source"]["topics"] = ["a", "b", "c"]
    for name, section in spec.items():
        document["spec"][name] = document["spec"].get(name, {}) | section if isinstance(section, dict) else section
    return document


def errors_of(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SpecError) as refused:
        parse(document)
    return {error.path: error.message for error in refused.value.errors}


def names(**folders: str) -> dict[str, Any]:
    return {"topicNames": [{"topic": topic, "as": folder} for topic, folder in folders.items()]}


def test_a_folder_that_is_another_topics_name_is_refused():
    both = "b would be the folder of topics a and b; give each its own"
    assert errors_of(sink(layout=names(a="b"))) == {"spec.layout.topicNames[0].as": both}


def test_two_topics_may_swap_their_names():
    assert parse(sink(layout=names(a="b", b="a"))).spec.layout.topic_names[0].as_ == "b"


def test_a_route_shares_the_folders_below_its_prefix():
    route, named = {"topics": ["b"]}, names(b="a")
    both = "a would be the folder of topics a and b; give each its own"
    assert errors_of(sink(layout=named, routes=[route])) == {"spec.layout.topicNames[0].as": both}
    apart = route | {"destination": {"prefix": "y"}}
    assert errors_of(sink(layout=named, routes=[apart])) == {"spec.layout.topicNames[0].as": both}
    assert parse(sink(layout=named, destination={"prefix": "x"}, routes=[apart]))
    assert parse(sink(layout=named, routes=[route | {"destination": {"bucket": "vault"}}]))


def test_what_only_the_cluster_knows_is_left_to_the_run():
    by_pattern = {"topicReplacement": {"pattern": "a|b", "replacement": "x"}}
    assert parse(sink(layout=by_pattern))
    assert parse(sink(layout=names(a="b"), routes=[{"topicPattern": "b", "destination": {"bucket": "vault"}}]))
    document = sink(layout=names(a="b"))
    document["spec"]["source"] = {"bootstrapServers": "kafka:9092", "topicPattern": ".*"}
    assert parse(document)


def test_a_topic_without_a_route_is_refused_where_it_needs_one():
    document = sink(source={"onUnroutedTopic": "Fail"}, routes=[{"topics": ["a", "c"]}])
    why = "is Fail, and topic b is in no route; add it to one, or take it out of source.topics"
    assert errors_of(document) == {"spec.source.onUnroutedTopic": why}
    document["spec"]["routes"].append({"topicPattern": "b.*"})
    assert parse(document)
    assert parse(sink(routes=[{"topics": ["a"]}]))
