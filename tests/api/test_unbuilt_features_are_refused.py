"""A setting that nothing acts on must never be taken in silence."""

from __future__ import annotations

import pytest

from s3sink_api.spec import CODECS, NOT_BUILT, parse
from tests.api.documents import drop, errors_of, everything_built, full, minimal, put

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
AVRO = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
SCHEMAS = {"Avro": AVRO, "Protobuf": "message R { optional int32 a = 1; }", "JsonSchema": "{}"}
PARTS = ("spec.source.key", "spec.source.value")
COLUMNS, THESE = {"Parquet", "Avro", "Orc", "Csv"}, "Parquet, Avro, Csv or Orc"
# What a person would write to use the feature of each row.
WANTED = {
    "spec.source.key.schema": SCHEMA,
    "spec.source.value.schema": SCHEMA,
}
# What has to stand beside it for the manifest to be valid otherwise.
BESIDE = {
    "spec.source.key.schema": {"spec.source.key.format": "Json"},
    "spec.destination.encryption.type": {"spec.destination.encryption.secretRef": {"name": "k"}},
}


@pytest.mark.parametrize("row", NOT_BUILT, ids=lambda row: row.path)
def test_what_is_not_built_is_refused_by_name(row):
    document = put(minimal(), row.path, WANTED[row.path])
    for path, value in BESIDE.get(row.path, {}).items():
        document = put(document, path, value)
    with everything_built():
        assert errors_of(document) == {}
    errors = errors_of(document)
    assert errors[row.path].endswith(f"not built yet; {row.instead}")
    assert all("not built yet; " in message for message in errors.values())


@pytest.mark.parametrize("kind", sorted(CODECS))
def test_a_supplied_schema_is_for_formats_with_columns(kind):
    document = put(put(minimal(), "spec.format.type", kind), "spec.source.value.schema", SCHEMA)
    errors = (
        {} if kind in COLUMNS else {"spec.source.value.schema": f"not built yet; use it with {THESE}, or leave it out"}
    )
    assert errors_of(document) == errors


@pytest.mark.parametrize("kind", sorted(CODECS))
def test_a_supplied_schema_is_for_routes_with_columns(kind):
    document = put(put(minimal(), "spec.format.type", "Parquet"), "spec.source.value.schema", SCHEMA)
    document = put(document, "spec.routes", [{"topics": ["orders"], "format": {"type": kind}}])
    said = f"{kind} with source.value.schema is not built yet; use {THESE}"
    assert errors_of(document) == ({} if kind in COLUMNS else {"spec.routes[0].format.type": said})


@pytest.mark.parametrize("kind", sorted(CODECS))
@pytest.mark.parametrize("part", PARTS)
def test_an_inline_avro_schema_is_for_every_format(part, kind):
    document = put(put(minimal(), "spec.format.type", kind), part, {"format": "Avro", "schema": AVRO})
    assert errors_of(document) == {}
    assert errors_of(put(document, "spec.routes", [{"topics": ["orders"], "format": {"type": "Text"}}])) == {}


def test_a_supplied_schema_is_not_inherited_by_a_route_that_decodes_otherwise():
    document = put(put(minimal(), "spec.format.type", "Parquet"), "spec.source.value.schema", SCHEMA)
    route = {"topics": ["orders"], "format": {"type": "Text"}, "source": {"value": {"format": "String"}}}
    assert errors_of(put(document, "spec.routes", [route])) == {}


def test_what_is_not_built_is_refused_within_the_source_of_a_route():
    route = {"topics": ["orders"], "source": {"value": {"format": "Json", "schema": SCHEMA}, "key": {"format": "Json"}}}
    path = "spec.routes[0].source.value.schema"
    said = f"not built yet; use it with {THESE}, or leave it out"
    assert errors_of(put(minimal(), "spec.routes", [route])) == {path: said}
    assert errors_of(put(minimal(), "spec.routes", [route | {"format": {"type": "Parquet"}}])) == {}
    route["source"]["key"] |= {"schema": SCHEMA}
    assert "spec.routes[0].source.key.schema" in errors_of(put(minimal(), "spec.routes", [route]))


@pytest.mark.parametrize("row", NOT_BUILT, ids=lambda row: row.path)
def test_writing_the_default_out_is_no_mistake(row):
    document = minimal()
    for value in row.built:
        document = put(document, row.path, value)
        if row.path == "spec.destination.encryption.type" and value == "KMS":
            document = put(document, "spec.destination.encryption.keyId", "k")
        assert errors_of(document) == {}


def test_no_row_names_a_field_that_the_resource_lacks():
    assert set(WANTED) == {row.path for row in NOT_BUILT}
    assert len(NOT_BUILT) == len(WANTED)


@pytest.mark.parametrize("kind", sorted(CODECS))
def test_every_format_is_built_with_all_of_its_codecs(kind):
    for codec in CODECS[kind]:
        assert errors_of(put(minimal(), "spec.format", {"type": kind, "compression": {"codec": codec}})) == {}


def test_the_default_format_takes_its_own_codecs():
    assert errors_of(drop(minimal(), "spec.format")) == {}
    for codec in CODECS["Parquet"]:
        assert errors_of(put(drop(minimal(), "spec.format"), "spec.format.compression.codec", codec)) == {}


def test_nothing_of_a_full_manifest_is_left_to_build():
    assert errors_of(full()) == {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.state", "Paused"),
        ("spec.state", "Stopped"),
        ("spec.run", "Once"),
        ("spec", minimal()["spec"] | {"run": "Scheduled", "schedule": "@hourly"}),
        ("spec", minimal()["spec"] | {"run": "Once", "mode": "FullRefresh", "allowEmpty": True}),
        ("spec.delivery", "AtLeastOnce"),
        ("spec.errors.records", "Skip"),
        ("spec.errors", {"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter", "format": "Json"}}),
        (
            "spec.errors",
            {"records": "DeadLetter", "deadLetter": {"topic": "dlq", "replicationFactor": 3, "headers": False}},
        ),
        ("spec.errors", {"maxPercent": 0, "deadLetter": {"prefix": "_dead_letter"}}),
        ("spec.source.startingOffsets", {"position": "Latest"}),
        ("spec.source.startingOffsets", {"position": "Timestamp", "timestamp": "2026-01-01T00:00:00Z"}),
        ("spec.reset", {"nonce": "1"}),
        ("spec.reset", {"nonce": "1", "to": {"position": "Timestamp", "timestamp": "2026-01-01T00:00:00Z"}}),
        ("spec.source.onDataLoss", "Skip"),
        ("spec.source.isolation", "ReadUncommitted"),
        ("spec.source.publishOffsetsTo", "orders-s3"),
        ("spec.source.value.format", "Bytes"),
        ("spec.source.value.format", "ConnectJson"),
        ("spec.source.value", {"format": "Avro", "schemaRegistry": {"url": "https://r/apis/ccompat/v7"}}),
        ("spec.source.key", {"format": "Avro", "schema": AVRO}),
        ("spec.routes", [{"topics": ["orders"], "source": {"key": {"format": "ConnectJson"}}}]),
        ("spec.source.propertiesFrom", [{"secretRef": {"name": "a"}}]),
        ("spec.destination.encryption", {"type": "KMS", "keyId": "k"}),
        ("spec.destination.caFrom", {"secretRef": {"name": "ca"}}),
        ("spec.format.type", "Text"),
        ("spec.format.compression", {"codec": "Gzip", "level": 6}),
        ("spec.format.compression", {"codec": "Zstd", "level": 3}),
        ("spec.format.columns", {"meta": "Kafka"}),
        ("spec.format.columns", {"meta": "Quix"}),
        ("spec.format.columns", {"meta": "Airbyte", "flatten": True}),
        ("spec.format.envelope", {"enabled": True, "key": False, "headers": False, "metadata": False}),
        ("spec.format", {"type": "Csv", "csv": {"header": False, "delimiter": ";", "quote": "All"}}),
        (
            "spec.layout.partitionBy",
            [{"type": "Field", "path": ["a", "b"], "as": "c"}, {"type": "Header", "name": "h"}],
        ),
        ("spec.layout.partitionBy", [{"type": "Time", "source": "Record", "format": "'year='yyyy", "every": "1h"}]),
        ("spec.layout", {"hiveStyle": True, "onMissingValue": "Fail", "padding": {"offset": 5, "partition": 3}}),
        ("spec.layout", {"objectName": "Upload", "suffix": "-a", "extension": ".x"}),
        ("spec.layout.objectName", "Confluent"),
        ("spec.layout.objectName", "Lenses"),
        ("spec.nullValues", "Skip"),
        ("spec.nullValues", "Fail"),
        ("spec.nullValues", "Separate"),
        ("spec.routes", [{"topics": ["orders"], "destination": {"bucket": "vault", "prefix": "x"}}]),
        ("spec.routes", [{"topicPattern": "a.*", "format": {"type": "Avro"}, "flush": {"records": 5}}]),
        ("spec.flush", {"records": 5, "interval": "10s"}),
        ("spec.flush", {"bytes": "500Mi", "aligned": "15m", "recordWindow": "1h"}),
        ("spec.source.maxBytesPerSecond", "50Mi"),
        ("spec.spark", {"driver": {"cores": 2}, "conf": {"spark.sql.session.timeZone": "UTC"}, "image": "x"}),
    ],
)
def test_what_is_built_is_taken(path, value):
    parse(put(minimal(), path, value))
