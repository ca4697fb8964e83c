"""Protobuf records that other people's serializers wrote, with a real schema registry: Confluent's for Python,
Apicurio's for Java. Each record is in the bucket once, with every value."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc
from py4j.java_gateway import JavaGateway

from tests.harness import World
from tests.java import java_gateway
from tools.parts.jars import protobuf_serializer_jars
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

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


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    with java_gateway(protobuf_serializer_jars()) as opened:
        yield opened


def test_a_java_serializer_loses_no_value(
    java: JavaGateway, world: World, registry: SchemaRegistry, tmp_path: Path
) -> None:
    """Apicurio's, which writes the name of the message in front of it."""
    world.kafka.create_topic(world.topic, 1)
    files = compiled(tmp_path, {"order.proto": HEAD + ORDER + ADDRESS})
    made = message_class(files, "shop.Order")
    google, options = java.jvm.com.google.protobuf, java.jvm.java.util.HashMap()
    host = f"http://{registry.host}:{registry.port}"
    settings = {"url": f"{host}/apis/registry/v2", "auto-register": "true", "as-confluent": "true"}
    settings |= {"use-id": "contentId", "headers.enabled": "false"}
    for name, setting in settings.items():
        options.put(f"apicurio.registry.{name}", setting)
    serializer = java.jvm.io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer()
    serializer.configure(options, False)
    descriptor = java_descriptor(java, files)

    def serialized(message: Any) -> bytes:
        parsed = google.DynamicMessage.parseFrom(descriptor, bytearray(message.SerializeToString()))
        return bytes(serializer.serialize(world.topic, parsed))

    world.produce([serialized(order(made, n)) for n in range(60)])

    assert drained(world, registry) == [expected(n) for n in range(60)]


def java_descriptor(java: JavaGateway, files: FileDescriptorSet) -> Any:
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
    return google.Descriptors.FileDescriptor.buildFrom(parsed, needed).findMessageTypeByName("Order")
