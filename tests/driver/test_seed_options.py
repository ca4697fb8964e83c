"""Options of the sinks that users migrate from, with real parts: folders of topics, columns, envelopes, keys of S3."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow.orc
import pyarrow.parquet
import pytest

from s3sink_job.proof.preflight import preflight_checks
from tests.harness import World
from tests.stores.test_access import KeyedStore
from tools.parts.proxy import FaultProxy

ENVELOPE = {"enabled": True, "keyAs": "Fields", "headersAs": "Map"}
RECORDS = [
    (b'{"id":1,"at":{"x":true}}', b'{"n":1}', [("h", b"1"), ("g", b"\xff"), ("h", b"2")]),
    (b'{"id":2}', b'{"n":2}', []),
    (None, None, [("h", None)]),
]
KEYS = [{"id": 1, "at": {"x": True}}, {"id": 2, "at": None}, None]
HEADERS: list[dict[str, bytes | None]] = [{"g": b"\xff", "h": b"2"}, {}, {"h": None}]


def shared(world: World) -> list[str]:
    """Three topics with ten records each: two of them differ only in what a replacement makes alike."""
    names = [f"{world.topic}-a.b", f"{world.topic}-a-b", f"{world.topic}-c"]
    for name in names:
        world.kafka.create_topic(name)
        world.produce([{"n": n} for n in range(10)], topic=name)
    return names


def test_folders_of_topics_have_other_names_by_list_and_by_replacement(world: World) -> None:
    one, other, last = shared(world)
    layout = {
        "topicNames": [{"topic": one, "as": "first"}],
        "topicReplacement": {"pattern": "-", "replacement": "_"},
        "suffix": "_v1",
    }
    driver = world.drain(source={"topics": [one, other, last]}, layout=layout)

    name = f"{0:019d}_v1.jsonl"
    folders = ["first", other.replace("-", "_"), last.replace("-", "_")]
    assert sorted(world.objects()) == sorted(f"raw/{folder}/0/{name}" for folder in folders)
    world.produce([{"n": 10}], topic=one)
    again = world.drain(source={"topics": [one, other, last]}, layout={**layout, "suffix": ""})
    assert f"raw/first/0/{10:019d}.jsonl" in world.objects()
    for run in (driver, again):
        assert world.verify(run).ok


def test_two_topics_with_one_folder_wait_while_the_others_go_on(world: World) -> None:
    one, other, last = shared(world)
    source = {"topics": [], "topicPattern": f"{world.topic}-.*"}
    layout = {"topicReplacement": {"pattern": r"\.", "replacement": "-"}}
    driver = world.drain(source=source, layout=layout)

    for topic in (one, other):
        problem = driver.problems[topic, 0]
        assert problem.reason == "TopicsShareFolder"
        assert f"topics {other} and {one} would share the folder {other!r}" in problem.message
    assert world.objects() == [f"raw/{last}/0/{0:019d}.jsonl"]
    failed = [result for result in checked(world, driver) if not result.ok]
    assert [result.text.partition(":")[0] for result in failed] == ["TopicsShareFolder"]

    layout["topicNames"] = [{"topic": one, "as": "first"}]  # type: ignore[assignment]
    mended = world.drain(source=source, layout=layout)
    assert not mended.problems
    assert len(world.objects()) == 3
    assert world.verify(mended).ok


def checked(world: World, driver: Any) -> list[Any]:
    from s3sink_job.cli.opened_sink import OpenedSink
    from s3sink_job.kafka.admin import Admin

    opened = OpenedSink(driver.sink, driver.secrets)
    admin = Admin(world.spark._jvm, opened.connection())
    try:
        return list(preflight_checks(driver.sink, opened.bucket, opened.ledger, lambda: admin, driver.secrets))
    finally:
        admin.close()


def test_a_topic_that_no_route_takes_is_an_error_where_that_is_wanted(world: World) -> None:
    one, other, last = shared(world)
    source: dict[str, Any] = {"topics": [one, other, last]}
    routes = [{"topicPattern": f"{world.topic}-a.*", "destination": {"prefix": "routed"}}]
    driver = world.drain(source={**source, "onUnroutedTopic": "Fail"}, routes=routes)

    problem = driver.problems[last, 0]
    assert problem.reason == "UnroutedTopic"
    assert f"topic {last} is in no route" in problem.message
    assert len(world.objects("routed/")) == 2
    assert not world.objects("raw/")
    failed = [result.text for result in checked(world, driver) if not result.ok]
    assert failed == [f"UnroutedTopic: {problem.message}"]

    later = world.drain(source=source, routes=routes)
    assert world.objects("raw/") == [f"raw/{last}/0/{0:019d}.jsonl"]
    assert not later.problems


def test_more_folders_than_twelve(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"c": {str(n): n for n in range(14)}}])
    items = [{"type": "Topic"}, *({"type": "Field", "path": ["c", str(n)]} for n in range(14))]
    world.drain(layout={"partitionBy": items})

    folders = "/".join(map(str, range(14)))
    assert world.objects() == [f"raw/{world.topic}/{folders}/{world.topic}+0+{0:019d}.jsonl"]


@pytest.mark.parametrize("format", ["Parquet", "Json"])
def test_fields_of_values_are_columns_beside_those_of_quix(world: World, tmp_path: Path, format: str) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(
        world.topic,
        [(b"k1", b'{"a":1,"b":{"c":"x"}}', None, 5), (None, b'{"a":2}', None, 6), (b"k3", b'{"_key":1}', None, 7)],
    )
    spec = {"format": {"type": format, "columns": {"meta": "Quix", "flatten": True}}}
    driver = world.drain(**spec, errors={"records": "Skip", "maxPercent": 100})

    (path,) = world.download(tmp_path)
    rows = duckdb.sql(f"SELECT * FROM '{path}' ORDER BY _timestamp").fetchall()
    assert rows == [(5, "k1", 1, {"c": "x"}), (6, None, 2, None)], "a record with a field _key of its own is a bad one"
    assert driver.reporter.status()["retry"]["skippedRecords"] == 1
    report = world.verify(driver)
    assert report.ok, report.to_doc()


@pytest.mark.parametrize("format", ["Parquet", "Avro", "Orc", "Json"])
def test_an_envelope_has_the_fields_of_keys_and_headers_by_name(world: World, tmp_path: Path, format: str) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(key, value, headers, n) for n, (key, value, headers) in enumerate(RECORDS)])
    driver = world.drain(source={"key": {"format": "Json"}}, format={"type": format, "envelope": ENVELOPE})

    (path,) = world.download(tmp_path)
    found = _read(path, format)
    if format == "Json":
        keys = [{"id": 1, "at": {"x": True}}, {"id": 2}, None]
        texts: list[Any] = [{"g": {"base64": "/w=="}, "h": "2"}, {}, {"h": None}]
        assert [(row["key"], row["headers"]) for row in found] == list(zip(keys, texts, strict=True))
    else:
        assert [(row["key"], dict(row["headers"])) for row in found] == list(zip(KEYS, HEADERS, strict=True))
    assert [row["metadata"]["offset"] for row in found] == [0, 1, 2]
    report = world.verify(driver)
    assert report.ok, report.to_doc()

    # The types of keys are known from then on, like those of values.
    world.kafka.produce(world.topic, [(b'{"id":"x"}', b'{"n":3}', [], 3)])
    later = world.drain(source={"key": {"format": "Json"}}, format={"type": format, "envelope": ENVELOPE})
    (newest,) = [p for p in world.download(tmp_path / "later") if p.name.startswith(f"{3:019d}")]
    (row,) = _read(newest, format)
    assert row["key"] == ({"id": "x"} if format == "Json" else {"id": "x", "at": None})
    assert world.verify(later).ok


def _read(path: Path, format: str) -> list[dict[str, Any]]:
    match format:
        case "Parquet":
            return pyarrow.parquet.read_table(path).to_pylist()
        case "Orc":
            return pyarrow.orc.read_table(path).to_pylist()
        case "Avro":
            with path.open("rb") as file:
                return list(fastavro.reader(file))  # type: ignore[arg-type]
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_sink_with_the_users_own_key_goes_on_with_another_one(world: World, proxy: FaultProxy) -> None:
    keyed = KeyedStore(proxy)
    world.endpoint = proxy.endpoint
    world.kafka.create_topic(world.topic)
    encryption = {"encryption": {"type": "CustomerKey", "secretRef": {"name": "mine"}}, "acl": "Private"}
    for n in range(2):
        world.produce([{"n": n}])
        key = base64.b64encode(os.urandom(32))
        secrets = world.secrets(mine={"SSE_CUSTOMER_KEY": key})
        driver = world.drain(world.driver(secrets=secrets, destination=encryption))
        assert not driver.problems
        if n == 0:
            assert world.verify(driver).ok

    of_data = {path for path in keyed.keys if "/raw/" in path}
    assert len(of_data) == 2
    assert all(keyed.keys[path] for path in of_data)
    state = [path for path in keyed.keys if path.endswith("/state.json")]
    assert state
    assert not any(keyed.keys[path] for path in state)
