from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from s3sink_api.spec import (
    ByField,
    ByPartition,
    ByTime,
    ByTopic,
    FromEarliest,
    Kms,
    parse,
)
from tests.api.documents import everything_built, full, minimal, parsed, put


def test_a_minimal_manifest_gets_every_documented_default():
    sink = parse(minimal())
    spec = sink.spec
    assert (sink.metadata.name, sink.metadata.namespace, sink.metadata.uid) == ("orders", "default", "")
    assert (sink.metadata.generation, sink.id) == (1, "default/orders")
    assert (spec.state, spec.run, spec.schedule, spec.mode, spec.reset) == (
        "Running",
        "Continuous",
        None,
        "Append",
        None,
    )
    assert not spec.allow_empty
    assert (spec.delivery, spec.null_values, spec.transform, spec.routes) == (
        "ExactlyOnce",
        "Write",
        None,
        (),
    )
    source = spec.source
    assert (source.bootstrap_servers, source.topics, source.topic_pattern) == (
        "kafka:9092",
        ("orders",),
        None,
    )
    assert (source.starting_offsets, source.on_data_loss) == (FromEarliest(), "Fail")
    assert (source.isolation, source.properties, source.properties_from) == ("ReadCommitted", {}, ())
    assert (source.key.format, source.value.format, source.value.schema) == ("String", "Json", "")
    place = spec.destination
    assert (place.bucket, place.prefix, place.state_prefix) == ("lake", "", ".s3sink")
    assert (place.part_size, place.max_connections, place.storage_class) == (8 * 2**20, 50, "STANDARD")
    assert (place.credentials, place.encryption, place.tags, place.endpoint) == (None, None, {}, None)
    layout = spec.layout
    assert (layout.partition_by, layout.hive_style) == ((ByTopic(), ByPartition()), False)
    assert (layout.object_name, layout.on_missing_value, layout.offset_digits) == ("Offset", "Default", 19)
    assert (layout.padding.offset, layout.padding.partition, layout.suffix, layout.extension) == (
        None,
        0,
        "",
        "",
    )
    flush = spec.flush
    assert (flush.records, flush.interval) == (1_000_000, 3600.0)
    assert (flush.bytes, flush.aligned, flush.record_window) == (None, None, None)
    errors = spec.errors
    assert (errors.records, errors.max_per_flush, errors.max_percent) == ("Fail", 1000, 10)
    assert (errors.dead_letter, errors.log_records) == (None, False)
    assert (errors.retries.max, errors.retries.backoff, errors.retries.max_backoff) == (20, 1.0, 60.0)
    assert (errors.request_retries.max, errors.request_retries.backoff) == (5, 0.05)
    assert (spec.spark.mode, spec.spark.driver.cores, spec.spark.conf) == ("Local", 1, {})
    assert (spec.spark.driver.memory, spec.spark.executor.instances) == (2 * 2**30, 2)


def test_every_field_of_a_full_manifest_arrives():
    with everything_built():
        spec = parse(full()).spec
    assert spec.destination.encryption == Kms(key_id="alias/lake")
    assert spec.layout.partition_by[2] == ByField(path=("customer", "country"), as_="country")
    assert isinstance(spec.layout.partition_by[5], ByTime)
    assert spec.layout.partition_by[5].every == 3600.0
    assert spec.flush.bytes == 500 * 2**20
    assert spec.errors.dead_letter.topic == "orders-dlq"
    assert spec.routes[0].format.type == "Avro"
    assert spec.routes[0].flush.interval == 60.0
    assert spec.routes[0].layout.padding.offset == 3
    assert spec.spark.driver.pod_template == {"spec": {"selector": {"a": None}}}
    assert spec.source.properties_from[0].secret_ref.name == "kafka-auth"


def test_a_route_leaves_what_it_does_not_name_to_the_sink():
    with everything_built():
        route = parse(put(minimal(), "spec.routes", [{"topics": ["orders"], "format": {"csv": {}}}])).spec.routes[0]
    assert (route.destination, route.layout, route.flush, route.format.type) == (None, None, None, None)
    assert route.format.csv.header is None


@pytest.mark.parametrize(
    ("item", "folder"),
    [
        ({"type": "Topic"}, ""),
        ({"type": "Topic", "as": "t"}, "t"),
        ({"type": "Partition"}, "partition"),
        ({"type": "Partition", "as": "p"}, "p"),
        ({"type": "Field", "path": ["customer", "country"]}, "country"),
        ({"type": "Field", "path": ["customer", "country"], "as": "c"}, "c"),
        ({"type": "Key"}, "key"),
        ({"type": "Key", "as": "k"}, "k"),
        ({"type": "Header", "name": "region"}, "region"),
        ({"type": "Header", "name": "region", "as": "r"}, "r"),
        ({"type": "Time", "source": "Record", "format": "'year='yyyy"}, ""),
    ],
)
def test_a_folder_is_named_after_its_value_unless_told(item, folder):
    assert parsed("spec.layout.partitionBy", [item]).spec.layout.partition_by[0].folder == folder


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        ("Json", "None"),
        ("Csv", "None"),
        ("Text", "None"),
        ("Bytes", "None"),
        ("Parquet", "Zstd"),
        ("Avro", "Zstd"),
        ("Orc", "Zstd"),
    ],
)
def test_compression_follows_from_the_format_unless_set(kind, codec):
    assert parsed("spec.format", {"type": kind}).spec.format.codec == codec
    explicit = parsed("spec.format", {"type": kind, "compression": {"codec": "None"}}).spec.format
    assert (explicit.codec, explicit.level) == ("None", None)


def test_a_level_is_kept():
    chosen = parsed("spec.format", {"type": "Json", "compression": {"codec": "Gzip", "level": 9}}).spec.format
    assert (chosen.codec, chosen.level) == ("Gzip", 9)


@pytest.mark.parametrize(("style", "digits"), [("Offset", 19), ("Lenses", 12), ("Confluent", 10)])
def test_names_are_padded_by_their_style_unless_told(style, digits):
    assert parsed("spec.layout.objectName", style).spec.layout.offset_digits == digits
    assert parsed("spec.layout", {"objectName": style, "padding": {"offset": 4}}).spec.layout.offset_digits == 4


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ({}, False),
        ({"endpoint": "http://localhost:9000"}, True),
        ({"endpoint": "http://localhost:9000", "pathStyle": False}, False),
        ({"pathStyle": True}, True),
    ],
)
def test_path_style_comes_with_a_custom_endpoint_unless_set(destination, expected):
    assert parsed("spec.destination", {"bucket": "lake", **destination}).spec.destination.use_path_style is expected


def test_what_the_api_server_adds_is_no_mistake():
    document = minimal()
    document["metadata"] |= {
        "resourceVersion": "5",
        "managedFields": [{"f:a": {}}],
        "creationTimestamp": None,
        "annotations": None,
    }
    document["status"] = {"phase": "Running", "anything": None}
    assert parse(document) == parse(minimal())


def test_a_sink_cannot_be_changed_by_accident_but_replaced_and_shipped():
    sink = parse(minimal())
    with pytest.raises(FrozenInstanceError):
        sink.spec.flush.records = 5
    once = replace(sink, spec=replace(sink.spec, run="Once", flush=replace(sink.spec.flush, interval=0.5)))
    assert (once.spec.run, once.spec.flush.interval, sink.spec.run) == ("Once", 0.5, "Continuous")
    assert pickle.loads(pickle.dumps(sink)) == sink
