"""Records that AWS' own serializers wrote, with AWS Glue Schema Registry as moto has it.

Each is in the bucket once, with every value.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pyarrow.parquet as pq
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from py4j.java_gateway import JavaGateway

from tests.decode.glue_registry import ROLE, always, credentials, error, refusal_of_sts, sessions
from tests.decode.registry_answers import Answer, answering
from tests.driver.test_avro_topics import findings
from tests.harness import World
from tests.java import java_gateway
from tools.parts.forward_proxy import ForwardProxy
from tools.parts.jars import glue_serializer_jars
from tools.parts.proxy import Call, FaultProxy
from tools.parts.s3 import Moto
from tools.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.spark]

REGION = "eu-central-1"
KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI")
PASSWORD = "p@ss/w:rd%"
ID, SKU = 0x08, 0x0A
"""Tags of the two fields: their number 1, and the kind of their value."""
Serialize = Callable[[Any], bytes]


@dataclass(frozen=True)
class Glue:
    """A registry, and AWS' serializers for it in a JVM."""

    moto: Moto
    java: JavaGateway

    def serializer(self, kind: str, topic: str, *, compressed: bool = False) -> Any:
        jvm, options = self.java.jvm, self.java.jvm.java.util.HashMap()
        settings = {
            "endpoint": self.moto.endpoint,
            "region": REGION,
            "dataFormat": kind,
            "compatibility": "NONE",
            "schemaAutoRegistrationEnabled": True,
            "compression": "ZLIB" if compressed else "NONE",
        }
        for name, setting in settings.items():
            options.put(name, setting)
        aws = jvm.software.amazon.awssdk.auth.credentials
        keys = aws.StaticCredentialsProvider.create(aws.AwsBasicCredentials.create(*KEYS))
        opened = jvm.com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer(keys, options)
        opened.configure(options, False)
        return opened

    def avro(self, topic: str, schema: Any, *, compressed: bool = False) -> Serialize:
        """Takes values in Avro's own JSON."""
        avro, serializer = self.java.jvm.org.apache.avro, self.serializer("AVRO", topic, compressed=compressed)
        parsed = avro.Schema.Parser().parse(json.dumps(schema))
        reader, decoders = avro.generic.GenericDatumReader(parsed), avro.io.DecoderFactory.get()

        def serialize(value: Any) -> bytes:
            read = reader.read(None, decoders.jsonDecoder(parsed, json.dumps(value)))
            return bytes(serializer.serialize(topic, read))

        return serialize

    def json(self, topic: str, schema: Any, *, compressed: bool = False) -> Serialize:
        package = self.java.jvm.com.amazonaws.services.schemaregistry.serializers.json
        serializer = self.serializer("JSON", topic, compressed=compressed)

        def serialize(value: Any) -> bytes:
            wrapped = package.JsonDataWithSchema.builder(json.dumps(schema), json.dumps(value)).build()
            return bytes(serializer.serialize(topic, wrapped))

        return serialize

    def protobuf(self, topic: str, file: FileDescriptorProto, message: str, *, compressed: bool = False) -> Serialize:
        """Takes the bytes of messages."""
        protobuf = self.java.jvm.com.google.protobuf
        parsed = protobuf.DescriptorProtos.FileDescriptorProto.parseFrom(file.SerializeToString())
        none = self.java.new_array(protobuf.Descriptors.FileDescriptor, 0)
        kind = protobuf.Descriptors.FileDescriptor.buildFrom(parsed, none)
        outer, *inner = message.split(".")
        descriptor = kind.findMessageTypeByName(outer)
        for name in inner:
            descriptor = descriptor.findNestedTypeByName(name)
        serializer = self.serializer("PROTOBUF", topic, compressed=compressed)

        def serialize(value: bytes) -> bytes:
            return bytes(serializer.serialize(topic, protobuf.DynamicMessage.parseFrom(descriptor, value)))

        return serialize


@pytest.fixture(scope="module")
def glue() -> Iterator[Glue]:
    with Moto() as moto, java_gateway(glue_serializer_jars()) as java:
        client: Any = boto3.client(
            "glue",
            endpoint_url=moto.endpoint,
            region_name=REGION,
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
        )
        client.create_registry(RegistryName="default-registry")
        yield Glue(moto, java)


@pytest.fixture
def registry(world: World, glue: Glue) -> dict[str, Any]:
    """The registry in a spec. The topic is there, and empty."""
    world.kafka.create_topic(world.topic, 1)
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    login = {name: key.encode() for name, key in zip(names, KEYS, strict=True)}
    world.secrets(glue=login, proxy={"username": b"sink", "password": PASSWORD.encode()})
    place = {"region": REGION, "endpoint": glue.moto.endpoint}
    return {"type": "Glue", **place, "credentialsFrom": {"secretRef": {"name": "glue"}}}


def rows_of(world: World, prefix: str = "raw/") -> list[dict[str, Any]]:
    return [row for key in world.objects(prefix) for row in pq.read_table(io.BytesIO(world.content(key))).to_pylist()]


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def test_avro_of_aws_serializers_compressed_or_not(world: World, glue: Glue, registry: dict[str, Any]) -> None:
    """Two schemas, with and without compression, record by record; keys as well, and bad records between them."""
    narrow, wide = record(id="long", country="string"), record(id="long", country="string", paid="boolean")
    writers = [
        glue.avro(world.topic, schema, compressed=zipped) for schema in (narrow, wide) for zipped in (False, True)
    ]
    key = glue.avro(f"{world.topic}-key", record(id="long"))
    rows = [{"id": n, "country": ["de", "fr"][n % 2]} | ({"paid": n % 3 == 0} if n % 4 > 1 else {}) for n in range(80)]
    values = [writers[n % 4](row) for n, row in enumerate(rows)]
    bad = [b"{}", values[1][:-3], b"\x03\x00" + bytes(16) + values[0][18:]]
    produced = [(key({"id": n}), value, None, None) for n, value in enumerate(values)]
    world.kafka.produce(world.topic, [*produced[:40], *((b"", one, None, None) for one in bad), *produced[40:]], 0)
    avro = {"format": "Avro", "schemaRegistry": registry}

    driver = world.drain(
        source={"key": avro, "value": avro},
        format={"type": "Parquet", "columns": {"meta": "Kafka"}, "schemaEvolution": {"mode": "None"}},
        layout={"partitionBy": [{"type": "Field", "path": ["country"]}]},
        errors={"records": "Skip"},
    )

    found = sorted(rows_of(world), key=lambda row: row["id"])
    assert [{name: row[name] for name in ("id", "country", "paid")} for row in found] == [
        {"paid": None, **row} for row in rows
    ]
    assert [json.loads(row["_key"]) for row in found] == [{"id": n} for n in range(80)]
    assert world.state()["totals"]["skipped"] == len(bad)
    assert len(world.objects()) == 2
    report = world.verify(driver)
    assert report.ok, report.counts.findings
    url = f"AWS Glue at {glue.moto.endpoint}"
    found_by_check = findings(driver)
    assert [text for what, ok, text in found_by_check if what == "registry" and ok] == [f"{url} answers"]
    (columns,) = [text for what, ok, text in found_by_check if what == "schema" and ok]
    assert columns.startswith(f"schema {world.topic} in default-registry, version 2, id ")
    assert columns.endswith(": id int64, country string, paid bool")
    assert KEYS[1] not in json.dumps(world.state())


def test_json_schema_and_protobuf_of_aws_serializers(world: World, glue: Glue, registry: dict[str, Any]) -> None:
    """In Protobuf the message is the second of its file by place, and the third by name."""
    other = f"{world.topic}-protobuf"
    world.kafka.create_topic(other, 1)
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "additionalProperties": False,
    }
    file = FileDescriptorProto(name="orders.proto", syntax="proto3")
    for name in ("Zebra", "Order"):
        message = file.message_type.add(name=name)
        message.field.add(name="id", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
        inner = message.nested_type.add(name="Line")
        inner.field.add(name="sku", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    rows = [{"id": n, "name": f"n{n}"} for n in range(20)]
    as_json = [glue.json(world.topic, schema, compressed=zipped) for zipped in (False, True)]
    orders = [glue.protobuf(other, file, "Order", compressed=zipped) for zipped in (False, True)]
    lines = glue.protobuf(other, file, "Order.Line")
    world.produce([as_json[n % 2](row) for n, row in enumerate(rows)])
    values = [orders[n % 2](bytes([ID, n])) for n in range(20)]
    world.produce([*values, lines(bytes([SKU, 1, ord("s")]))], topic=other)

    driver = world.drain(
        source={"topics": [world.topic, other], "value": {"format": "JsonSchema", "schemaRegistry": registry}},
        format={"type": "Parquet"},
        routes=[
            {
                "topics": [other],
                "destination": {"prefix": "protobuf"},
                "source": {"value": {"format": "Protobuf", "schemaRegistry": registry}},
            }
        ],
    )

    assert rows_of(world) == rows
    assert rows_of(world, "protobuf/") == [*({"id": n, "sku": None} for n in range(20)), {"id": None, "sku": "s"}]
    assert world.verify(driver).ok


def test_workers_verify_and_check_use_the_role_and_the_proxy(
    world: World, glue: Glue, registry: dict[str, Any]
) -> None:
    """Nothing is sent to Glue with the first credentials, and nothing but through the proxy."""
    write = glue.avro(world.topic, record(id="long"))
    world.produce([write({"id": n}) for n in range(20)])
    sent: list[tuple[str, str]] = []
    with FaultProxy("127.0.0.1", glue.moto.port) as between, ForwardProxy("sink", PASSWORD) as proxy:
        between.on(lambda request: sent.append(credentials(request)) is not None, Call())
        role = {"arn": ROLE, "externalId": "ours:42", "sessionName": "workers", "endpoint": glue.moto.endpoint}
        registry |= {"endpoint": between.endpoint, "assumeRole": role}
        registry["proxy"] = {"url": proxy.url, "credentialsFrom": {"secretRef": {"name": "proxy"}}}
        source = {"value": {"format": "Avro", "schemaRegistry": registry}}
        driver = world.drain(source=source, format={"type": "Parquet"})
        by_workers = len(sent)
        assert world.verify(driver).ok
        found = findings(driver)
        to_glue = [target for _, target in proxy.requests if target.startswith(between.endpoint)]

    assert [row["id"] for row in rows_of(world)] == list(range(20))
    assumed = sessions(glue.moto, "workers")
    assert {(one["role_arn"], one["external_id"]) for one in assumed} == {(ROLE, "ours:42")}
    assert set(sent) == {(one["access_key_id"], one["session_token"]) for one in assumed}
    assert by_workers
    assert len(to_glue) == len(sent)
    assert len(proxy.requests) == len(to_glue) + len(assumed), "and those to STS"
    assert ("registry", True, f"AWS Glue at {between.endpoint} with role {ROLE} answers") in found
    shown = json.dumps(world.state()) + str(driver.reporter.status()) + str(found)
    assert not [one for one in (KEYS[1], PASSWORD, assumed[0]["secret_access_key"]) if one in shown]


NO_PERMISSION = (
    "400 AccessDeniedException: no, because: check schemaRegistry.credentialsFrom, or the role of the pod, and"
)
NO_ROLE = "AssumeRole: 403 AccessDenied: User: arn:aws:iam::1:user/sink is not authorized to perform: sts:AssumeRole on"


@pytest.mark.parametrize(
    ("answer", "role", "why"),
    [(error("AccessDeniedException"), False, NO_PERMISSION), (refusal_of_sts("AccessDenied"), True, NO_ROLE)],
    ids=["Glue", "STS"],
)
def test_records_wait_while_access_is_denied_and_status_and_check_say_why(
    world: World, glue: Glue, registry: dict[str, Any], answer: Answer, role: bool, why: str
) -> None:
    """Even where bad records are skipped."""
    write = glue.avro(world.topic, record(id="long"))
    world.produce([write({"id": n}) for n in range(20)])
    spec: dict[str, Any] = {"format": {"type": "Parquet"}, "errors": {"records": "Skip"}, "flush": {"interval": "1s"}}
    with answering(always(answer)) as denying:
        place = {"assumeRole": {"arn": ROLE, "endpoint": denying}} if role else {"endpoint": denying}
        source = {"value": {"format": "Avro", "schemaRegistry": {**registry, **place}}}
        driver = world.driver(source=source, run="Continuous", **spec)
        until("the flush to fail", lambda: (driver.step(), driver.problems)[1], 60)
        (problem,) = driver.problems.values()
        status = driver.reporter.status()
        *_, (checked, ok, text) = findings(driver)

    assert problem.reason == "RegistryDenied"
    assert why in problem.message
    assert not role or f"with role {ROLE}" in problem.message
    assert status["phase"] == "Degraded"
    found = {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}
    assert found["LastFlushSucceeded"] == ("False", "RegistryDenied", problem.message)
    assert found["Ready"] == ("False", "Degraded", problem.message)
    assert found["CaughtUp"] == ("False", "RegistryDenied", f"{world.topic}-0: {problem.message}")
    assert status["retry"]["lastError"] == f"RegistryDenied: {problem.message}"
    assert (status["retry"]["skippedRecords"], status["lag"]["records"]) == (0, 20)
    assert (checked, ok) == ("registry", False)
    assert text.startswith("RegistryDenied: schema registry: AWS Glue at ")
    assert why in text
    assert KEYS[1] not in str(status) + text
    assert not world.objects()

    driver = world.drain(source={"value": {"format": "Avro", "schemaRegistry": registry}}, **spec)
    assert [row["id"] for row in rows_of(world)] == list(range(20))
    assert world.verify(driver).ok
