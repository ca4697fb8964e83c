"""A topic, written by the sink and restored: records come back byte for byte where the docs say so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.harness import World
from tests.restore.worlds import BINARY_RECORDS, LINE_BREAKS, TEXT_RECORDS, contents, fill, restore, restored

pytestmark = pytest.mark.spark

META = {"columns": {"meta": "Kafka"}}
ENVELOPE = {"envelope": {"enabled": True}}
FORMATS = ("Parquet", "Avro", "Orc", "Json", "Csv")
SAMPLE = {("Bytes", "Parquet", "meta"), ("String", "Json", "envelope")}
EXACT = [
    (input, format, shape)
    for input in ("Bytes", "String")
    for format in FORMATS
    for shape in ("meta", "envelope")
    if (format, shape) != ("Csv", "envelope")
]


@pytest.mark.parametrize(
    ("input", "format", "shape"),
    [pytest.param(*case, marks=[] if case in SAMPLE else pytest.mark.long) for case in EXACT],
)
def test_every_kind_of_record_comes_back_byte_for_byte(world: World, input: str, format: str, shape: str) -> None:
    fill(world, TEXT_RECORDS + LINE_BREAKS + (BINARY_RECORDS if input == "Bytes" else []))
    driver = world.drain(
        source={"key": {"format": input}, "value": {"format": input}},
        format={"type": format, **(META if shape == "meta" else ENVELOPE)},
        flush={"records": 7},
    )
    report = restore(world, driver)
    assert report.ok, report.findings
    assert not report.losses
    assert restored(world) == contents(world.messages())
    assert report.records == report.found == len(world.messages())


JSON_VALUES = [
    b'{"a": 1.10, "b": [null, {"c": "\\u0000]}"}]}',
    b"{}",
    b'"text"',
    b"12e3",
    b'{ "a" : 123456789012345678 }',
    b'{"z": 1, "headers": [], "metadata": {"topic": "t"}}',
]


@pytest.mark.parametrize(
    ("format", "exact"),
    [
        pytest.param({"type": "Json", **ENVELOPE}, JSON_VALUES, id="lines in an envelope"),
        pytest.param({"type": "Json", **META}, JSON_VALUES, id="lines with meta fields", marks=pytest.mark.long),
        pytest.param({"type": "Json", "columns": {"meta": "Quix"}}, JSON_VALUES, id="Quix", marks=pytest.mark.long),
        pytest.param({"type": "Text"}, JSON_VALUES, id="Text", marks=pytest.mark.long),
        pytest.param({"type": "Bytes"}, JSON_VALUES, id="objects of one record", marks=pytest.mark.long),
        pytest.param(
            {"type": "Parquet", **META},
            [b'{"a":1,"b":"x"}', b'{"a":2}', b'{"a":3,"c":{"d":[1.5]}}'],
            id="columns",
        ),
    ],
)
def test_json_comes_back_once_its_losses_are_accepted(world: World, format: dict[str, Any], exact: list[bytes]) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"k", value, [("h", b"\x00")], 5) for value in exact], 0)
    driver = world.drain(format=format)
    assert restore(world, driver, dry_run=True).losses
    report = restore(world, driver, accept_losses=True)
    assert report.ok, report.findings
    found, wanted = restored(world), contents(world.messages())
    values = [message.value for message in found]
    assert list(map(json.loads, values)) == list(map(json.loads, exact))
    # Only spaces at the ends of a value are lost, where its fields are beside others.
    assert [value.replace(b"{ ", b"{") for value in values] == [value.replace(b"{ ", b"{") for value in exact]
    if format["type"] not in {"Text", "Bytes"}:
        assert [message.key for message in found] == [b"k"] * len(exact)
    if format.get("columns", {}).get("meta") == "Kafka" or "envelope" in format:
        assert [replace(m, value=b"") for m in found] == [replace(m, value=b"") for m in wanted]
