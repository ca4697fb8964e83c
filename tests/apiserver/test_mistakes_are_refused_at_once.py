"""What the API server refuses by itself, in words that name the field and say what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_api.spec import CODECS, parse
from tests.api.documents import drop, minimal, put
from tools.cluster.client import Client, Document, Refused, sinks

SECRET = "hunter2"
TOPICS = "spec.source.topics"
START = "spec.source.startingOffsets"
FOLDERS = "spec.layout.partitionBy"


def refusal(api: Client, document: Document, namespace: str = "default") -> str:
    """What the server says; nothing where it would take the document."""
    try:
        api.try_post(sinks(namespace), document)
    except Refused as refused:
        return refused.message
    return ""


SPEC = minimal()["spec"]
BY_CLOCK = {"type": "Time", "source": "Wallclock", "format": "yyyy"}
WRAPPED = {"type": "Json", "envelope": {"enabled": True, "key": False, "headers": False, "metadata": False}}


def routed(**parts: Any) -> list[Any]:
    return [{"topics": ["orders"], **parts}]


# path, value, what is said
REFUSED: list[tuple[str, Any, str]] = [
    (
        "spec.source.topicPattern",
        "a.*",
        f"{TOPICS}: Forbidden: must not be set together with topicPattern; keep one of them",
    ),
    (TOPICS, [], f"{TOPICS}: Required value: must name at least one topic, unless topicPattern is set"),
    (TOPICS, ["a", "a"], f'{TOPICS}[1]: Duplicate value: "a"'),
    ("spec.mode", "FullRefresh", "spec.mode: Invalid value: FullRefresh needs run: Once or Scheduled"),
    ("spec.allowEmpty", True, "spec.allowEmpty: Forbidden: is only for mode: FullRefresh"),
    ("spec.schedule", "0 * * * *", "spec.schedule: Forbidden: is only for run: Scheduled"),
    ("spec.run", "Scheduled", "spec.schedule: Required value: must be set, since run is Scheduled"),
    (
        "spec",
        minimal()["spec"] | {"run": "Scheduled", "schedule": "5-1 * * * *"},
        'spec.schedule: Invalid value: "5-1 * * * *": must be a cron schedule of five fields, such as "0 * * * *"',
    ),
    (
        "spec.source.endingOffsets",
        {"position": "Latest"},
        "spec.source.endingOffsets: Forbidden: is only for run: Once",
    ),
    (START, {}, f"{START}.position: Required value"),
    (START, {"position": "Timestamp"}, f"{START}.timestamp: Required value: must be set with position: Timestamp"),
    (
        START,
        {"position": "Latest", "timestamp": "2026-01-01T00:00:00Z"},
        f"{START}.timestamp: Forbidden: is only for position: Timestamp",
    ),
    (START, {"position": "Offsets"}, f"{START}.offsets: Required value: must be set with position: Offsets"),
    (
        START,
        {"position": "Offsets", "offsets": [{"topic": "orders", "partition": 0, "offset": n} for n in (1, 2)]},
        f"{START}.offsets[1]: Duplicate value",
    ),
    (
        "spec.destination.encryption",
        {"type": "KMS"},
        "spec.destination.encryption.keyId: Required value: must be set with type: KMS",
    ),
    (
        "spec.destination.encryption",
        {"type": "AES256", "keyId": "x"},
        "spec.destination.encryption.keyId: Forbidden: is only for type: KMS",
    ),
    (FOLDERS, [{"type": "Field"}], f"{FOLDERS}[0].path: Required value: must be set with type: Field"),
    (
        FOLDERS,
        [{"type": "Time", "source": "Record", "format": "yyyy", "as": "x"}],
        f"{FOLDERS}[0].as: Forbidden: is only for type: Topic, Partition, Field, Key, Header",
    ),
    (
        FOLDERS,
        [{"type": "Time", "source": "Record", "format": "year=yyyy"}],
        f'{FOLDERS}[0].format: Invalid value: "year=yyyy": must not use letters outside of quotes but D E H K L',
    ),
    (
        FOLDERS,
        [{"type": "Time", "source": "Record", "format": "'year=yyyy"}],
        f"""{FOLDERS}[0].format: Invalid value: "'year=yyyy": must close every quote, as in 'year='yyyy""",
    ),
    (
        FOLDERS,
        [{"type": "Time", "source": "Record", "format": "yyyy[MM]"}],
        f'{FOLDERS}[0].format: Invalid value: "yyyy[MM]": must have [ ] {{ }} # in quotes, since Java reserves them',
    ),
    (
        FOLDERS,
        [{"type": "Time", "source": "Record", "format": "MMMMMM"}],
        f'{FOLDERS}[0].format: Invalid value: "MMMMMM": must have no more of a letter in a row than 1 of a, 2 of',
    ),
    (
        FOLDERS,
        [{"type": "Time", "source": "Record", "format": "yyyy//MM"}],
        f'{FOLDERS}[0].format: Invalid value: "yyyy//MM": must have a folder name on both sides of each /',
    ),
    (
        "spec.layout",
        {"hiveStyle": True, "partitionBy": [{"type": "Header", "name": "key"}, {"type": "Key"}]},
        f"{FOLDERS}: Invalid value: must not give two folders the same name; set a different one with as",
    ),
    (
        FOLDERS,
        [{"type": "Key", "path": ["id"]}],
        f"{FOLDERS}: Invalid value: path needs fields, and String and Bytes have none; use format Json",
    ),
    (
        "spec",
        SPEC | {"format": {"type": "Bytes"}, "layout": {"objectName": "Upload"}},
        "spec.layout.objectName: Invalid value: must not be Upload, since Bytes names each object by its record",
    ),
    (
        "spec",
        SPEC | {"format": {"type": "Bytes"}, "layout": {"partitionBy": [BY_CLOCK]}},
        f"{FOLDERS}: Invalid value: source must not be Wallclock, since Bytes names each object by its record",
    ),
    (
        "spec.format.columns",
        {"flatten": True},
        "spec.format.columns.flatten: Forbidden: is only for columns.meta Airbyte and Quix: it writes",
    ),
    (
        "spec.format",
        {"type": "Csv", "envelope": {"enabled": True}},
        "spec.format.envelope.enabled: Invalid value: must be false, since Csv, Text, Bytes support no envelope; use",
    ),
    (
        "spec.format",
        {"type": "Json", "columns": {"meta": "Quix"}, "envelope": {"enabled": True}},
        "spec.format.envelope.enabled: Invalid value: must be false if columns.meta is set; keep one of them",
    ),
    (
        "spec.format.envelope",
        {"enabled": True, "key": False, "value": False, "headers": False, "metadata": False},
        "spec.format.envelope.value: Invalid value: must include at least one of key, value, headers and metadata",
    ),
    (
        FOLDERS,
        [{"type": "Time", "source": "Field", "format": "yyyy"}],
        f"{FOLDERS}[0].path: Required value: must name the field that holds the time, since source is Field",
    ),
    (FOLDERS, [{"type": "Key"}, {"type": "Key"}], f"{FOLDERS}: Invalid value: must not repeat an item"),
    ("spec.errors.records", "DeadLetter", "spec.errors.deadLetter: Required value: must be set, since records is"),
    ("spec.errors.deadLetter", {}, "spec.errors.deadLetter.topic: Required value: must be set, unless prefix is"),
    (
        "spec.source.value",
        {"format": "Avro"},
        "spec.source.value.schema: Required value: Avro, Protobuf and JsonSchema need schemaRegistry or",
    ),
    (
        "spec.source.value",
        {"format": "Json", "validate": True},
        "spec.source.value.validate: Forbidden: is only for JsonSchema",
    ),
    ("spec.transform", {}, "spec.transform.select: Required value: must be set, unless where, unwrap or steps is"),
    (
        "spec.routes",
        routed(format={"type": "Avro", "compression": {"codec": "Gzip"}}),
        "spec.routes: Invalid value: format.compression.codec: Avro supports None, Snappy, Zstd, Bzip2, Deflate, Xz",
    ),
    (
        "spec",
        SPEC | {"format": {"type": "Json", "compression": {"codec": "Gzip"}}, "routes": routed(format={"type": "Orc"})},
        "spec.routes: Invalid value: format.compression.codec: Orc supports None, Snappy, Lz4, Zstd, Deflate; the",
    ),
    (
        "spec.routes",
        routed(format={"csv": {"header": False}}),
        "spec.routes: Invalid value: format.csv: is only for format.type Csv",
    ),
    (
        "spec.routes",
        routed(format={"parquet": {"rowGroupBytes": "1Mi"}}),
        "spec.routes: Invalid value: format.parquet: is only for format.type Parquet",
    ),
    (
        "spec.routes",
        routed(format={"columns": {"flatten": True}}),
        "spec.routes: Invalid value: format.columns.flatten: is only for columns.meta Airbyte and Quix: it writes",
    ),
    (
        "spec",
        SPEC | {"format": WRAPPED, "routes": routed(format={"type": "Csv"})},
        "spec.routes: Invalid value: format.envelope.enabled: must be false, since Csv, Text, Bytes support no",
    ),
    (
        "spec",
        SPEC | {"format": WRAPPED, "routes": routed(format={"columns": {"meta": "Kafka"}})},
        "spec.routes: Invalid value: format.envelope.enabled: must be false if columns.meta is set; keep one of them",
    ),
    (
        "spec",
        SPEC | {"format": WRAPPED, "routes": routed(format={"envelope": {"value": False}})},
        "spec.routes: Invalid value: format.envelope.value: must include at least one of key, value, headers",
    ),
    (
        "spec",
        SPEC | {"layout": {"objectName": "Upload"}, "routes": routed(format={"type": "Bytes"})},
        "spec.routes: Invalid value: layout.objectName: must not be Upload, since Bytes names each object by its",
    ),
    (
        "spec.routes",
        routed(destination={"prefix": ".s3sink/x"}),
        "spec.routes: Invalid value: destination.prefix: must not overlap with statePrefix, which holds the state",
    ),
    (
        "spec",
        SPEC
        | {
            "destination": {"bucket": "lake", "prefix": "raw", "statePrefix": "orders"},
            "routes": routed(destination={"prefix": ""}),
        },
        "spec.routes: Invalid value: destination.prefix: must not be empty, since a topic would share its folder with",
    ),
    (
        "spec.routes",
        routed(topicPattern="o.*"),
        "spec.routes[0].topics: Forbidden: must not be set together with topicPattern; keep one of them",
    ),
    (
        "spec.routes",
        [{"destination": {"prefix": "x"}}],
        "spec.routes[0].topics: Required value: must name at least one topic, unless topicPattern is set",
    ),
    (
        "spec.destination.credentials",
        {"secretRef": {"name": "a", "namespace": "b"}},
        'unknown field "spec.destination.credentials.secretRef.namespace"',
    ),
    ("spec.flush.interval", "5", 'spec.flush.interval: Invalid value: "5": must be a duration such as 50ms, 30s, 15m'),
    ("spec.flush.interval", "1d", 'spec.flush.interval: Invalid value: "1d": must be a duration such as'),
    ("spec.destination.partSize", "64mb", "must be a quantity such as 64Mi"),
    ("spec.destination.partSize", "1Mi", 'spec.destination.partSize: Invalid value: "1Mi": must be at least 5Mi and'),
    (
        "spec.destination.bucket",
        "s3://lake",
        'spec.destination.bucket: Invalid value: "s3://lake": must be the bucket name only; the rest is',
    ),
    ("spec.destination.prefix", "/raw/", "must have no slash at either end"),
    (
        "spec.destination.statePrefix",
        "orders",
        "spec.destination.prefix: Required value: must not be empty, since a topic would share its folder with",
    ),
    ("spec.spark.driver.memory", 2, "spec.spark.driver.memory: Invalid value: 2: must be at least 512Mi"),
    ("spec.state", "running", 'spec.state: Unsupported value: "running": supported values: "Running", "Paused", "Stop'),
    ("spec.flushh", {}, 'unknown field "spec.flushh"'),
    ("metadata.name", "a" * 53, "metadata.name: Invalid value: must have at most 52 characters"),
    ("metadata.name", "a.b", "metadata.name: Invalid value: must be lower-case letters, digits and hyphens"),
    ("metadata.name", "zamówienia", 'metadata.name: Invalid value: "zamówienia": a lowercase RFC 1123 subdomain'),
]


@pytest.mark.parametrize(("path", "value", "said"), REFUSED, ids=[f"{row[0]}={str(row[1])[:40]}" for row in REFUSED])
def test_a_mistake_is_refused_with_the_field_and_what_would_be_right(
    api: Client, path: str, value: Any, said: str
) -> None:
    assert said in refusal(api, put(minimal(), path, value))


def test_every_mistake_is_named_at_once(api: Client) -> None:
    """The one that the documentation shows."""
    document = minimal()
    document["spec"] = {
        "schedule": "0 * * * *",
        "source": {"bootstrapServers": "kafka", "topics": ["orders"], "properties": {"sasl.jaas.config": "x"}},
        "destination": {"bucket": "s3://lake/raw", "partSize": "1Mi"},
        "format": {"type": "Json", "compression": {"codec": "Snappy"}},
        "flush": {"interval": "1d"},
    }
    said = refusal(api, document)
    for path in ("schedule", "source.bootstrapServers", "source.properties", "destination.bucket", "flush.interval"):
        assert f"spec.{path}: " in said
    assert "spec.destination.partSize: " in said
    assert "spec.format.compression.codec: " in said


@pytest.mark.parametrize("kind", sorted(CODECS))
def test_each_format_takes_the_codecs_of_the_table_and_no_other(api: Client, kind: Any) -> None:
    for codec in sorted({codec for codecs in CODECS.values() for codec in codecs}):
        said = refusal(api, put(minimal(), "spec.format", {"type": kind, "compression": {"codec": codec}}))
        expected = f"spec.format.compression.codec: Invalid value: {kind} supports {', '.join(CODECS[kind])}"
        assert said.endswith(expected) if codec not in CODECS[kind] else not said


@pytest.mark.parametrize("run", ["Once", "Scheduled"])
def test_a_full_refresh_that_ends_is_taken(api: Client, run: str) -> None:
    spec = {"run": run, "mode": "FullRefresh"} | ({"schedule": "@hourly"} if run == "Scheduled" else {})
    assert refusal(api, put(minimal(), "spec", minimal()["spec"] | spec)) == ""


def test_a_full_refresh_of_objects_that_show_at_once_is_refused(api: Client) -> None:
    spec = minimal()["spec"] | {"run": "Once", "mode": "FullRefresh", "allowEmpty": True}
    said = "must not be Bytes with mode: FullRefresh, since its objects are visible before the run is complete"
    for place in ({"format": {"type": "Bytes"}}, {"routes": [{"topics": ["orders"], "format": {"type": "Bytes"}}]}):
        assert said in refusal(api, put(minimal(), "spec", spec | place))
        assert refusal(api, put(minimal(), "spec", spec | place | {"mode": "Append", "allowEmpty": False})) == ""


def test_a_pattern_alone_is_taken(api: Client) -> None:
    document = drop(minimal(), TOPICS)
    assert refusal(api, put(document, "spec.source.topicPattern", r"shop\..*")) == ""


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("spec.source.properties", {"sasl.jaas.config": SECRET}, "sasl.jaas.config may hold a secret; put it into a"),
        (
            "spec.source.properties",
            {"client.id": f"http://u:{SECRET}@x"},
            "client.id must not contain a URL with a",
        ),
        (
            "spec.source.properties",
            {"client.id": f"x.PlainLoginModule {SECRET}"},
            "client.id must not contain JAAS;",
        ),
        ("spec.source.properties", {"interceptor.classes": SECRET}, "interceptor.classes would load code into the"),
        ("spec.source.bootstrapServers", f"u:{SECRET}@kafka:9092", "must not contain a user or password; put them"),
        ("spec.destination.endpoint", f"https://u:{SECRET}@s3", "must not contain a user or password; put them"),
        ("spec.spark.conf", {"spark.kubernetes.namespace": SECRET}, "spark.kubernetes.namespace could take over the"),
        (
            "spec.spark.conf",
            {"spark.x": f"http://u:{SECRET}@proxy"},
            "spark.x must not contain a URL with a user",
        ),
        ("spec.spark.conf", {"spark.authenticate.secret": SECRET}, "spark.authenticate.secret may hold a secret and"),
    ],
)
def test_a_back_door_is_refused_and_no_secret_is_repeated(api: Client, path: str, value: Any, said: str) -> None:
    message = refusal(api, put(minimal(), path, value))
    assert f"{path}: Forbidden: {said}" in message
    assert SECRET not in message


def test_the_longest_name_is_taken(api: Client, namespace: str) -> None:
    api.post(sinks(namespace), put(minimal(), "metadata.name", "a" * 52))
    assert api.get(sinks(namespace, "a" * 52))["metadata"]["name"] == "a" * 52


def test_a_generated_name_is_taken_while_it_is_short_enough(api: Client, namespace: str) -> None:
    made = api.post(sinks(namespace), minimal() | {"metadata": {"generateName": "orders-"}})
    assert made["metadata"]["name"].startswith("orders-")
    with pytest.raises(Refused, match="at most 52 characters"):
        api.post(sinks(namespace), minimal() | {"metadata": {"generateName": "a" * 50}})


def test_text_of_any_script_arrives_as_it_was_written(api: Client, namespace: str) -> None:
    document = put(minimal(), "spec.destination.prefix", "données/日本/😀")
    document = put(document, "spec.destination.tags", {"ключ": "значение"})
    api.post(sinks(namespace), document)
    stored = parse(api.get(sinks(namespace, "orders")))
    assert stored.spec.destination.prefix == "données/日本/😀"
    assert stored.spec.destination.tags == {"ключ": "значение"}


def test_a_huge_spec_is_taken_and_a_larger_one_refused_with_the_limit(api: Client, namespace: str) -> None:
    """Rules have a budget for each request, which the largest document must not use up."""
    topics = [f"{'t' * 100}{n:04}" for n in range(5000)]
    offsets = [{"topic": topics[0], "partition": n, "offset": n} for n in range(5000)]
    document = put(minimal(), TOPICS, topics)
    document = put(document, START, {"position": "Offsets", "offsets": offsets})
    document = put(document, "spec.source.properties", {f"client.x{n}": "x" * 1000 for n in range(128)})
    document = put(document, "spec.spark.conf", {f"spark.x{n}": "x" * 100 for n in range(256)})
    api.post(sinks(namespace), document)
    assert parse(api.get(sinks(namespace, "orders"))).spec.source.topics == tuple(topics)
    assert f"{TOPICS}: Too many: 5001: must have at most 5000 items" in refusal(
        api, put(document, TOPICS, [*topics, "one-more"])
    )


def test_as_many_routes_as_there_may_be_are_taken(api: Client, namespace: str) -> None:
    """Each with all that the rules look at, and as long as it may be."""
    folders = [BY_CLOCK | {"format": f"{'yyyy-' * 48}yyyy'{n:02}'", "every": f"{n + 1}m"} for n in range(12)]
    route = {
        "destination": {"bucket": "vault", "prefix": "p/" * 255 + "q"},
        "layout": {"partitionBy": folders, "hiveStyle": True, "objectName": "Lenses"},
        "format": {"type": "Csv", "compression": {"codec": "Zstd", "level": 3}, "parquet": {"rowGroupBytes": "64Mi"}},
        "flush": {"interval": "1h30m", "bytes": "500Mi"},
    }
    routes = [{"topics": [f"topic{n}-{i}" for i in range(250)], **route} for n in range(64)]
    document = put(drop(minimal(), TOPICS), "spec.source.topicPattern", ".*")
    document = put(document, "spec.routes", routes)
    api.post(sinks(namespace), document)
    api.patch(sinks(namespace, "orders"), {"spec": {"flush": {"interval": "5m"}}})
    assert len(parse(api.get(sinks(namespace, "orders"))).spec.routes) == 64


PLACES = [("bucket", "lake", "sea"), ("prefix", "raw", "cooked")]


@pytest.mark.parametrize(("field", "old", "new"), PLACES)
def test_a_sink_moves_only_with_a_reset(api: Client, namespace: str, field: str, old: str, new: str) -> None:
    path = sinks(namespace, "orders")
    api.post(sinks(namespace), put(minimal(), f"spec.destination.{field}", old))
    move = {"spec": {"destination": {field: new}}}
    said = f"spec.destination.{field}: Forbidden: must not change without a new reset.nonce, since .* is stored there"
    with pytest.raises(Refused, match=said):
        api.patch(path, move)
    api.patch(path, {"spec": {"flush": {"interval": "5m"}}})
    api.patch(path, {"spec": move["spec"] | {"reset": {"nonce": "1"}}})
    with pytest.raises(Refused, match=f"spec.destination.{field}: Forbidden"):
        api.patch(path, {"spec": {"destination": {field: old}}})
    with pytest.raises(Refused, match=f"spec.destination.{field}: Forbidden"):
        api.patch(path, {"spec": {"destination": {field: old}, "reset": None}})
    api.patch(path, {"spec": {"destination": {field: old}, "reset": {"nonce": "2"}}})


@pytest.mark.parametrize("beside", [{"prefix": "cooked"}, {"bucket": "sea"}])
def test_a_state_moves_only_with_a_reset_and_never_alone(api: Client, namespace: str, beside: dict[str, str]) -> None:
    """Without its state the sink would begin its first generation once more, under names that are taken."""
    path, moved = sinks(namespace, "orders"), {"statePrefix": ".other"}
    said = r"spec\.destination\.statePrefix: Forbidden: must "
    api.post(sinks(namespace), minimal())
    with pytest.raises(Refused, match=f"{said}not change without a new reset.nonce, since the sink's state is stored"):
        api.patch(path, {"spec": {"destination": moved | beside}})
    with pytest.raises(Refused, match=f"{said}not change alone: .*; change prefix as well"):
        api.patch(path, {"spec": {"destination": moved, "reset": {"nonce": "1"}}})
    api.patch(path, {"spec": {"destination": moved | beside, "reset": {"nonce": "1"}}})


def test_a_prefix_neither_comes_nor_goes_without_a_reset(api: Client, namespace: str) -> None:
    api.post(sinks(namespace), minimal())
    path, said = sinks(namespace, "orders"), "spec.destination.prefix: Forbidden"
    with pytest.raises(Refused, match=said):
        api.patch(path, {"spec": {"destination": {"prefix": "raw"}}})
    api.patch(path, {"spec": {"destination": {"prefix": "raw"}, "reset": {"nonce": "1"}}})
    with pytest.raises(Refused, match=said):
        api.patch(path, {"spec": {"destination": {"prefix": None}}})
