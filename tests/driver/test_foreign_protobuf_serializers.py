"""Protobuf records that other people's serializers wrote, with a real schema registry: Confluent's for Python,
Apicurio's for Java. Each record is in the bucket once, with every value."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc
from py4j.java_gateway import JavaGateway

from tests.decode.guid_registry import with_guids
from tests.harness import World
from tests.java import java_gateway
from tools.parts.jars import protobuf_serializer_jars
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

Headers = list[tuple[str, bytes | None]]
HEAD = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
"""
ADDRESS = "message Address { string city = 1; optional int32 code = 2; }"
ORDER = """
enum State { OPEN = 0; PAID = 1; }
message Order {
  int64 id = 1;
  google.protobuf.StringValue customer = 2;
  google.protobuf.Timestamp at = 3;
  State state = 4;
  Address address = 5;
  repeated sint32 counts = 6;
  map<int64, double> rates = 7;
  fixed64 total = 8;
  oneof note { string text = 9; bytes mark = 10; }
}
"""


def compiled(folder: Path, files: dict[str, str]) -> FileDescriptorSet:
    for name, text in files.items():
        (folder / name).write_text(text)
    well_known = Path(protoc.__file__).parent / "_proto"
    out = folder / "out"
    arguments = ["", f"-I{folder}", f"-I{well_known}", f"--descriptor_set_out={out}", "--include_imports", *files]
    assert protoc.main(arguments) == 0
    return FileDescriptorSet.FromString(out.read_bytes())


def message_class(files: FileDescriptorSet, name: str) -> Any:
    pool = DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


def order(made: Any, number: int) -> Any:
    message = made(id=number - 3, state=number % 2, total=2**64 - 1 - number)
    message.at.FromNanoseconds(1_700_000_000_123_456_789 + number)
    message.counts.extend(n - 2 for n in range(number % 5))
    message.rates[number] = number / 4
    message.address.city = "Łódź"
    if number % 2:
        message.address.code = 0
        message.customer.value = ""
        message.text = "t"
    elif number % 3:
        message.mark = b"\xff"
    return message


def expected(number: int) -> dict[str, Any]:
    odd = bool(number % 2)
    return {
        "id": number - 3,
        "customer": "" if odd else None,
        "at": 1_700_000_000_123_456_789 + number,
        "state": ["OPEN", "PAID"][number % 2],
        "address": {"city": "Łódź", "code": 0 if odd else None},
        "counts": [n - 2 for n in range(number % 5)],
        "rates": [(str(number), number / 4)],
        "total": 2**64 - 1 - number,
        "text": "t" if odd else None,
        "mark": b"\xff" if not odd and number % 3 else None,
    }


def rows_of(world: World) -> list[dict[str, Any]]:
    """Of the only object, in order."""
    (key,) = world.objects()
    found = pq.read_table(io.BytesIO(world.content(key))).to_pylist()
    return [{**row, "at": row["at"].value} for row in found]


def drained(world: World, registry: SchemaRegistry) -> list[dict[str, Any]]:
    value = {"format": "Protobuf", "schemaRegistry": {"url": registry.url}}
    driver = world.drain(source={"value": value}, format={"type": "Parquet"})
    assert world.verify(driver).ok
    return rows_of(world)


def test_confluents_serializer_loses_no_value(world: World, registry: SchemaRegistry, tmp_path: Path) -> None:
    """With a reference, a nested message behind a map, and the schema as a descriptor in base64."""
    world.kafka.create_topic(world.topic, 1)
    nested = f'{HEAD} import "address.proto"; message Batch {{ map<string, int32> sizes = 1; {ORDER} }}'
    files = compiled(tmp_path, {"address.proto": HEAD + ADDRESS, "order.proto": nested})
    made = message_class(files, "shop.Batch.Order")
    serializer = ProtobufSerializer(made, SchemaRegistryClient({"url": registry.url}), {"use.deprecated.format": False})
    context = SerializationContext(world.topic, MessageField.VALUE)
    world.produce([serializer(order(made, n), context) for n in range(100)])

    assert drained(world, registry) == [expected(n) for n in range(100)]


def test_guids_and_indexes_in_headers_are_read(world: World, registry: SchemaRegistry, tmp_path: Path) -> None:
    """Confluent's serializer writes the indexes behind the GUID: of the first message, another one, a nested one."""
    world.kafka.create_topic(world.topic, 1)
    text = f"{HEAD} {ADDRESS} message Batch {{ {ORDER} }}"
    files = compiled(tmp_path, {"order.proto": text})
    order_made, of_key = message_class(files, "shop.Batch.Order"), message_class(files, "shop.Address")
    with with_guids(registry, []) as url:
        client = SchemaRegistryClient({"url": url})
        conf = {"use.deprecated.format": False, "subject.name.strategy.type": "TOPIC_RECORD"}
        in_header = {**conf, "schema.id.serializer": header_schema_id_serializer}
        made = {
            (of, own): ProtobufSerializer(of, client, in_header if own else conf)
            for of in (order_made, of_key)
            for own in (True, False)
        }

        def record(number: int) -> tuple[bytes, bytes, Headers, None]:
            headers: Headers = []
            own = bool(number % 3)
            key, value = (
                made[type(message), own](message, SerializationContext(world.topic, part, headers if own else None))
                for part, message in (
                    (MessageField.KEY, of_key(city=f"c{number}")),
                    (MessageField.VALUE, order(order_made, number)),
                )
            )
            return key, value, headers, None

        records = [record(n) for n in range(60)]
        in_value, in_key = dict(records[1][2])["__value_schema_id"], dict(records[1][2])["__key_schema_id"]
        assert (in_value[17:], in_key[17:]) == (b"\x04\x02\x00", b"\x00")
        assert records[1][1] == order(order_made, 1).SerializeToString()
        world.kafka.produce(world.topic, records, 0)
        part = {"format": "Protobuf", "schemaRegistry": {"url": url}}
        driver = world.drain(
            source={"key": part, "value": part}, format={"type": "Parquet", "columns": {"meta": "Kafka"}}
        )
        assert world.verify(driver).ok

    rows = rows_of(world)
    assert [json.loads(row["_key"]) for row in rows] == [{"city": f"c{n}"} for n in range(60)]
    assert [{name: row[name] for name in expected(0)} for row in rows] == [expected(n) for n in range(60)]


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    with java_gateway(protobuf_serializer_jars()) as opened:
        yield opened


class Apicurio:
    """Apicurio's serializers of version 2 for Java. They write the name of the message in place of its indexes."""

    def __init__(self, java: JavaGateway, world: World, registry: SchemaRegistry, files: FileDescriptorSet) -> None:
        self._java, self._topic, self._files = java, world.topic, files
        self._host = f"http://{registry.host}:{registry.port}"

    def serialize(self, message: Any, *, key: bool = False, **settings: str) -> tuple[bytes, Headers]:
        options, jvm = self._java.jvm.java.util.HashMap(), self._java.jvm
        required = {"url": f"{self._host}/apis/registry/v2", "auto-register": "true"}
        for name, setting in (required | settings).items():
            options.put(f"apicurio.registry.{name.replace('_', '-')}", setting)
        serializer = jvm.io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer()
        serializer.configure(options, key)
        descriptor = java_descriptor(self._java, self._files).findMessageTypeByName(message.DESCRIPTOR.name)
        parsed = jvm.com.google.protobuf.DynamicMessage.parseFrom(descriptor, bytearray(message.SerializeToString()))
        headers = jvm.org.apache.kafka.common.header.internals.RecordHeaders()
        value = bytes(serializer.serialize(self._topic, headers, parsed))
        serializer.close()
        return value, [(header.key(), bytes(header.value())) for header in headers.toArray()]

    def name_in_front(self, name: str) -> bytes:
        """As version 3 writes it beside the headers."""
        out = self._java.jvm.java.io.ByteArrayOutputStream()
        made = self._java.jvm.io.apicurio.registry.serde.protobuf.ref.RefOuterClass.Ref.newBuilder().setName(name)
        made.build().writeDelimitedTo(out)
        return bytes(out.toByteArray())


IN_FRONT = {"as_confluent": "true", "use_id": "contentId", "headers.enabled": "false"}


def test_a_java_serializer_loses_no_value(
    java: JavaGateway, world: World, registry: SchemaRegistry, tmp_path: Path
) -> None:
    world.kafka.create_topic(world.topic, 1)
    files = compiled(tmp_path, {"order.proto": HEAD + ORDER + ADDRESS})
    made, apicurio = message_class(files, "shop.Order"), Apicurio(java, world, registry, files)
    world.produce([apicurio.serialize(order(made, n), **IN_FRONT)[0] for n in range(60)])

    assert drained(world, registry) == [expected(n) for n in range(60)]


def test_names_of_messages_in_headers_and_in_front_are_mixed_in_one_topic(
    java: JavaGateway, world: World, registry: SchemaRegistry, tmp_path: Path
) -> None:
    """Version 2 writes the name into a header and nothing in front. Version 3 writes both."""
    world.kafka.create_topic(world.topic, 1)
    files = compiled(tmp_path, {"order.proto": HEAD + ADDRESS + ORDER})
    made, of_key = message_class(files, "shop.Order"), message_class(files, "shop.Address")
    apicurio = Apicurio(java, world, registry, files)
    in_front = apicurio.name_in_front("Order")

    def record(number: int) -> tuple[bytes, bytes, Headers, None]:
        by = IN_FRONT if number % 4 == 3 else {"use_id": ["globalId", "contentId"][number % 2]}
        key, key_headers = apicurio.serialize(of_key(city=f"c{number}"), key=True, **by)
        value, headers = apicurio.serialize(order(made, number), **by)
        return key, in_front + value if number % 4 == 2 else value, key_headers + headers, None

    records = [record(n) for n in range(24)]
    names = [{name for name, _ in headers} for _, _, headers, _ in records]
    for kind, number in {"globalId": 0, "contentId": 1}.items():
        wanted = {"apicurio.protobuf.type", "apicurio.protobuf.type.key"}
        assert names[number] >= wanted | {f"apicurio.{part}.{kind}" for part in ("key", "value")}
        assert records[number][1] == order(made, number).SerializeToString()
    assert not names[3]
    long, no_headers = apicurio.serialize(order(made, 0), **{"headers.enabled": "false"})
    assert (long[:5], no_headers) == (bytes(5), []), "ids of 8 bytes, which docs/schemas.md warns of"
    world.kafka.produce(world.topic, records, 0)

    part = {"format": "Protobuf", "schemaRegistry": {"url": registry.url}}
    parquet = {"type": "Parquet", "columns": {"meta": "Kafka"}}
    driver = world.drain(source={"key": part, "value": part}, format=parquet)

    rows = rows_of(world)
    assert [json.loads(row["_key"]) for row in rows] == [{"city": f"c{n}"} for n in range(24)]
    assert [{name: row[name] for name in expected(0)} for row in rows] == [expected(n) for n in range(24)]
    assert world.verify(driver).ok


def java_descriptor(java: JavaGateway, files: FileDescriptorSet) -> Any:
    """Of the file."""
    google = java.jvm.com.google.protobuf
    built: dict[str, Any] = {
        "google/protobuf/timestamp.proto": google.TimestampProto.getDescriptor(),
        "google/protobuf/wrappers.proto": google.WrappersProto.getDescriptor(),
    }
    (file,) = [file for file in files.file if file.name not in built]
    needed = java.new_array(google.Descriptors.FileDescriptor, len(file.dependency))
    for place, name in enumerate(file.dependency):
        needed[place] = built[name]
    parsed = google.DescriptorProtos.FileDescriptorProto.parseFrom(bytearray(file.SerializeToString()))
    return google.Descriptors.FileDescriptor.buildFrom(parsed, needed)
