"""Records that Kafka Connect's own JsonConverter wrote are read with every value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import JavaGateway

from tests.decode.connect import Kind, envelope, structs
from tests.decode.inputs import batch_of_column, opened_input
from tests.decode.test_connect_json import same
from tests.java import java_gateway
from tools.parts.jars import connect_json_jars


class Connect:
    """JsonConverters in a JVM. Hypothesis cannot print objects of the JVM, so tests hold none."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._jvm = gateway.jvm
        self._converters = {decimals: self._converter(decimals) for decimals in ("BASE64", "NUMERIC")}

    def _converter(self, decimals: str) -> Any:
        opened, config = self._jvm.org.apache.kafka.connect.json.JsonConverter(), self._jvm.java.util.HashMap()
        config.put("schemas.enable", "true")
        config.put("decimal.format", decimals)
        opened.configure(config, False)
        return opened

    def written(self, value: bytes, decimals: str) -> bytes:
        """The record, read by Connect and written again."""
        by = self._converters[decimals]
        found = by.toConnectData("orders", value)
        return bytes(by.fromConnectData("orders", found.schema(), found.value()))

    def double(self, value: float) -> bytes:
        kind = self._jvm.org.apache.kafka.connect.data.Schema.FLOAT64_SCHEMA
        return bytes(self._converters["BASE64"].fromConnectData("orders", kind, value))


@pytest.fixture(scope="module")
def connect() -> Iterator[Connect]:
    with java_gateway(connect_json_jars()) as gateway:
        yield Connect(gateway)


def unordered(value: Any) -> Any:
    """Connect keeps no order of the entries of a map."""
    match value:
        case dict():
            return {name: unordered(inner) for name, inner in value.items()}
        case [tuple(), *_]:
            return sorted(([unordered(part) for part in pair] for pair in value), key=repr)
        case list():
            return [unordered(item) for item in value]
        case _:
            return value


def batch_of(kind: Kind) -> st.SearchStrategy[tuple[Kind, list[Any]]]:
    return st.tuples(st.just(kind), st.lists(kind.values, min_size=1, max_size=3))


@settings(max_examples=100, deadline=None)
@given(batch=structs.flatmap(batch_of), decimals=st.sampled_from(["BASE64", "NUMERIC"]))
def test_what_connect_writes_is_read_with_every_value(
    connect: Connect, batch: tuple[Kind, list[Any]], decimals: str
) -> None:
    kind, values = batch
    wanted = [envelope(kind, value) for value in values]
    # Connect writes these, but reads them as 0.
    assume(not any(word in value for value in wanted for word in (b'"NaN"', b'Infinity"', b"-0.0")))

    column = pa.array([connect.written(value, decimals) for value in wanted], pa.binary())
    rows, faults = opened_input("ConnectJson").rows(batch_of_column(column))

    assert faults == {}
    for row, value in zip(rows.to_pylist(), values, strict=True):
        assert same(unordered(row), unordered(value))


def test_the_doubles_that_connect_writes_but_cannot_read_are_read(connect: Connect) -> None:
    values = [float("nan"), float("inf"), float("-inf"), -0.0, 0.5]

    column = pa.array([connect.double(value) for value in values], pa.binary())
    rows, faults = opened_input("ConnectJson").rows(batch_of_column(column))

    assert faults == {}
    assert same(rows.column("value").to_pylist(), values)
