"""KCQL statements as a sink and its routes: each topic goes where its statement says, and no other is read."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.convert.conversion import convert
from s3sink_job.convert.kcql import read_kcql
from s3sink_job.convert.report import Report

LENSES = "connector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector\n"


def converted(kcql: str, more: str) -> tuple[dict[str, Any], Report]:
    (sink,) = convert(f"{LENSES}connect.s3.kcql={kcql}\n{more}\n".encode(), "input").sinks
    return dict(sink.manifest["spec"]), sink.report


def text_of(report: Report, key: str) -> str:
    (entry,) = [entry for entry in report.entries if entry.key == key]
    return f"{entry.outcome}: {entry.text}"


def test_every_statement_has_its_own_settings_and_inherits_none_of_the_first() -> None:
    first = "INSERT INTO one:a SELECT * FROM x PARTITIONBY f STOREAS `AVRO`"
    first += " PROPERTIES('store.envelope'=true,'key.suffix'='-s')"
    spec, _ = converted(f"{first}; INSERT INTO two SELECT * FROM y STOREAS `CSV_WITHHEADERS`", "topics=x,y")
    (route,) = spec["routes"]
    assert route["topics"] == ["y"]
    assert route["destination"] == {"bucket": "two", "prefix": ""}
    assert route["layout"] == {
        "objectName": "Offset",
        "hiveStyle": False,
        "suffix": "",
        "padding": {"offset": 12},
        "partitionBy": [{"type": "Topic"}, {"type": "Partition"}],
    }
    assert route["format"] == {
        "type": "Csv",
        "csv": {"header": True},
        "envelope": {"enabled": False},
        "compression": {"codec": "None"},
    }


def test_a_topic_that_no_statement_reads_is_not_read() -> None:
    spec, report = converted("INSERT INTO lake SELECT * FROM x", "topics=x,y")
    assert spec["source"]["topics"] == ["x"]
    assert text_of(report, "topics").startswith("Different: spec.source.topics: [x], without y: no statement reads it")


def test_with_a_pattern_the_topics_of_the_statements_are_read() -> None:
    spec, report = converted("INSERT INTO lake SELECT * FROM x; INSERT INTO lake:b SELECT * FROM y", "topics.regex=.*")
    assert spec["source"]["topics"] == ["x", "y"]
    assert "topicPattern" not in spec["source"]
    assert text_of(report, "topics.regex").startswith("Different")
    spec, _ = converted("INSERT INTO lake SELECT * FROM `*`", "topics.regex=a.*")
    assert spec["source"]["topicPattern"] == "a.*"


def test_a_statement_for_all_topics_is_for_those_without_another() -> None:
    spec, _ = converted("INSERT INTO one:a SELECT * FROM x; INSERT INTO one:b SELECT * FROM `*`", "topics.regex=.*")
    assert spec["destination"]["prefix"] == "b"
    assert [(route["topics"], route["destination"]["prefix"]) for route in spec["routes"]] == [(["x"], "a")]


def test_a_second_statement_for_a_topic_is_lost_with_advice() -> None:
    spec, report = converted("INSERT INTO lake SELECT * FROM x; INSERT INTO other SELECT * FROM x", "topics=x")
    assert "routes" not in spec
    assert "into a second sink" in text_of(report, "connect.s3.kcql[2] FROM x")


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ("f", ("f",)),
        ("_value.a.b", ("_value", "a", "b")),
        ("`a.b`", ("a.b",)),
        ("_key.`x y`.z", ("_key", "x y", "z")),
        ("_header.`trace-id`", ("_header", "trace-id")),
        ("_date.`yyyy/MM/dd`", ("_date", "yyyy/MM/dd")),
    ],
)
def test_paths_are_split_at_dots_but_not_in_quotes(part: str, path: tuple[str, ...]) -> None:
    (statement,) = read_kcql(f"insert into b:p select * from t partitionby {part} storeas json", "kcql")
    assert statement.partition_by == (path,)
    assert (statement.bucket, statement.prefix, statement.topic, statement.store_as) == ("b", "p", "t", "json")


def test_defaults_of_lenses_are_written_down() -> None:
    spec, _ = converted("INSERT INTO lake SELECT * FROM x STOREAS `PARQUET`", "topics=x")
    assert spec["flush"] == {"records": 50000, "bytes": "500M", "interval": "1h"}
    assert spec["format"]["compression"] == {"codec": "None"}
    assert spec["layout"]["padding"] == {"offset": 12}
