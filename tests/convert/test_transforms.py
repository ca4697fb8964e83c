"""Transforms of Kafka Connect in the order in which they are listed: steps, Debezium's events, filters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_job.convert.conversion import convert
from s3sink_job.convert.report import Report

CONNECT = "org.apache.kafka.connect.transforms"


Options = dict[str, dict[str, str]]


def keys(kind: str, named: Options) -> dict[str, str]:
    return {f"{kind}.{name}.{key}": value for name, options in named.items() for key, value in options.items()}


def converted(predicates: Options | None = None, **transforms: dict[str, str]) -> tuple[dict[str, Any], Report]:
    config = {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders",
        "s3.bucket.name": "lake",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "transforms": ",".join(transforms),
        **keys("transforms", transforms),
        **keys("predicates", predicates or {}),
    }
    (sink,) = convert(json.dumps(config).encode(), "input").sinks
    return dict(sink.manifest["spec"]), sink.report


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"type": f"{CONNECT}.ReplaceField$Value", "exclude": "a,b", "renames": "c:d,e:f"}, [
            {"type": "Drop", "fields": ["a", "b"]},
            {"type": "Rename", "field": "c", "as": "d"},
            {"type": "Rename", "field": "e", "as": "f"},
        ]),
        ({"type": f"{CONNECT}.ReplaceField$Value", "blacklist": "a"}, [{"type": "Drop", "fields": ["a"]}]),
        ({"type": f"{CONNECT}.MaskField$Value", "fields": "a", "replacement": "***"}, [
            {"type": "Mask", "fields": ["a"], "replacement": "***"}
        ]),
        ({"type": f"{CONNECT}.InsertField$Value", "topic.field": "t!", "static.field": "s", "static.value": "v"}, [
            {"type": "Insert", "field": "t", "source": "Topic"},
            {"type": "Insert", "field": "s", "value": "v"},
        ]),
        ({"type": f"{CONNECT}.Cast$Value", "spec": "a:int64,b:string,c:int64"}, [
            {"type": "Cast", "fields": ["a", "c"], "to": "Int64"},
            {"type": "Cast", "fields": ["b"], "to": "String"},
        ]),
        ({"type": f"{CONNECT}.Flatten$Value"}, [{"type": "Flatten", "separator": "."}]),
        ({"type": f"{CONNECT}.HoistField$Value", "field": "v"}, [{"type": "Hoist", "field": "v"}]),
        ({"type": f"{CONNECT}.ExtractField$Value", "field": "v"}, [{"type": "Extract", "field": "v"}]),
    ],
)  # fmt: skip
def test_a_transform_becomes_steps(options: dict[str, str], steps: list[dict[str, Any]]) -> None:
    spec, report = converted(one=options)
    assert spec["transform"] == {"steps": steps}
    assert report.whole


def test_several_transforms_keep_their_order() -> None:
    spec, report = converted(
        unwrap={"type": "io.debezium.transforms.ExtractNewRecordState", "add.fields": "op,table"},
        flat={"type": f"{CONNECT}.Flatten$Value", "delimiter": "_"},
        drop={"type": f"{CONNECT}.ReplaceField$Value", "exclude": "x"},
        keep={"type": f"{CONNECT}.ReplaceField$Value", "include": "a,b"},
    )
    assert spec["transform"] == {
        "unwrap": "Debezium",
        "debezium": {"deletes": "Drop", "addFields": ["op", "source.table"]},
        "steps": [{"type": "Flatten", "separator": "_"}, {"type": "Drop", "fields": ["x"]}],
        "select": ['"a"', '"b"'],
    }
    assert spec["nullValues"] == "Skip"
    assert report.whole
    (added,) = [entry for entry in report.entries if entry.key == "transforms.unwrap.add.fields"]
    assert "source.table has the column __source_table" in added.text


def test_a_transform_in_an_order_that_s3sink_does_not_have_is_lost() -> None:
    spec, report = converted(
        keep={"type": f"{CONNECT}.ReplaceField$Value", "include": "a"},
        mask={"type": f"{CONNECT}.MaskField$Value", "fields": "a"},
    )
    assert spec["transform"] == {"select": ['"a"']}
    lost = [entry.key for entry in report.of("Lost")]
    assert lost == ["transforms", "transforms.mask.type", "transforms.mask.fields"]


def test_a_router_renames_the_folder_of_the_topic() -> None:
    spec, _ = converted(route={"type": f"{CONNECT}.RegexRouter", "regex": "pg\\.(.*)", "replacement": "$1"})
    assert spec["layout"]["topicReplacement"] == {"pattern": "pg\\.(.*)", "replacement": "$1"}
    assert "transform" not in spec


def test_filters_by_predicates() -> None:
    predicates = f"{CONNECT}.predicates"
    spec, report = converted(
        {
            "gone": {"type": f"{predicates}.RecordIsTombstone"},
            "test": {"type": f"{predicates}.HasHeaderKey", "name": "x"},
        },
        one={"type": f"{CONNECT}.Filter", "predicate": "gone"},
        two={"type": f"{CONNECT}.Filter", "predicate": "test"},
    )
    assert spec["nullValues"] == "Skip"
    assert spec["transform"] == {"where": "_headers['x'] IS NULL"}
    assert report.whole


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "org.example.Own"}, "S3Sink has no step like this class"),
        ({"type": f"{CONNECT}.MaskField$Key", "fields": "a"}, "S3Sink has no step like this class"),
        ({"type": f"{CONNECT}.Cast$Value", "spec": "int32"}, "it casts the whole value"),
        ({"type": f"{CONNECT}.Cast$Value", "spec": "a:decimal"}, "spec is none of int8"),
        (
            {"type": f"{CONNECT}.MaskField$Value", "fields": "a", "predicate": "p"},
            "for some records only, by a predicate",
        ),
        ({"type": f"{CONNECT}.Filter", "predicate": "p"}, "its predicate has no like in SQL"),
        ({"type": f"{CONNECT}.TimestampRouter", "topic.format": "x"}, "add a Time item"),
    ],
)
def test_what_has_no_like_is_lost_with_the_reason(options: dict[str, str], said: str) -> None:
    spec, report = converted(one=options)
    assert "transform" not in spec
    (found,) = [entry for entry in report.of("Lost") if entry.key == "transforms.one.type"]
    assert said in found.text
