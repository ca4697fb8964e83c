"""Schemas that headers name: by a GUID, and by the ids of Apicurio, which are two different numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.decode.writer_schemas import Reference, SchemaId, WriterSchema, numbered
from tests.decode.registry_answers import AVRO, FOUND, Answer, answering
from tests.decode.test_registry_client import client_of, record
from tools.parts.registry import SchemaRegistry

GUID = SchemaId("schema GUID", "89791762-2336-4186-9674-299b90a802e2")
UNKNOWN = Answer(404, b'{"error_code": 40403, "message": "Schema not found"}')


def content_id(number: int) -> SchemaId:
    return SchemaId("Apicurio content id", str(number))


def global_id(number: int) -> SchemaId:
    return SchemaId("Apicurio global id", str(number))


def ids_of(registry: SchemaRegistry, artifact: str) -> tuple[int, int]:
    """The ids of the newest version: of its content, and of itself."""
    found = registry.own_request("GET", f"/groups/default/artifacts/{artifact}/versions/branch=latest")
    return found["contentId"], found["globalId"]


def test_apicurios_ids_are_told_apart(registry: SchemaRegistry, topic_name: str) -> None:
    """The same content twice has one content id and two global ids: one number means two things."""
    client, text = client_of(registry.url), record("Order", **{topic_name.replace("-", "_"): "long"})
    artifacts = [f"{topic_name}-one", f"{topic_name}-two"]
    for artifact in artifacts:
        registry.register(artifact, text)
    (content,), versions = map(set, zip(*(ids_of(registry, artifact) for artifact in artifacts), strict=True))
    assert len(versions) == 2
    assert client.schema(content_id(content)) == WriterSchema("AVRO", text)
    for version in versions:
        assert client.schema(global_id(version)) == WriterSchema("AVRO", text)
    # The registry counts both from 1, so one of the versions may have the number of the content.
    for version in versions - {content}:
        assert client.schema(content_id(version)) != WriterSchema("AVRO", text)


def test_references_are_found_by_apicurios_ids(registry: SchemaRegistry, topic_name: str) -> None:
    address, customer = f"{topic_name}-address", f"{topic_name}-customer"
    texts = [record("shop.Address", city="string"), record("shop.Customer", home="shop.Address")]
    registry.register(address, texts[0])
    refer = [{"name": "shop.Address", "subject": address, "version": 1}]
    registry.register(customer, texts[1], references=refer)
    order = record("shop.Order", by="shop.Customer")
    refer = [{"name": "shop.Customer", "subject": customer, "version": 1}]
    registry.register(topic_name, order, references=refer)
    content, version = ids_of(registry, topic_name)
    wanted = WriterSchema("AVRO", order, (Reference("shop.Address", texts[0]), Reference("shop.Customer", texts[1])))
    client = client_of(registry.url)
    assert client.schema(content_id(content)) == wanted
    assert client.schema(global_id(version)) == wanted


def test_the_kind_of_a_schema_is_that_of_the_artifact(registry: SchemaRegistry, topic_name: str) -> None:
    registry.register(topic_name, 'syntax = "proto3"; message A {}', kind="PROTOBUF")
    found = client_of(registry.url).schema(global_id(ids_of(registry, topic_name)[1]))
    assert found is not None
    assert (found.kind, "message A" in found.text) == ("PROTOBUF", True)


@pytest.mark.parametrize("schema", [content_id(2**40), global_id(2**40), global_id(-1), content_id(-(2**63))])
def test_an_id_that_apicurio_does_not_have_is_unknown(registry: SchemaRegistry, schema: SchemaId) -> None:
    assert client_of(registry.url).schema(schema) is None


@pytest.mark.parametrize(
    "broken", ["/search/versions", "/ids/contentIds/7/references", "/ids/contentIds/7"], ids=["kind", "links", "text"]
)
@pytest.mark.parametrize("body", [b"[1]", b'{"versions": 1}', b"7", b"\xff"])
def test_answers_that_apicurio_never_gives_are_errors(broken: str, body: bytes) -> None:
    """Text is read as it is, so only bytes that are no text are wrong there."""

    def respond(path: str, _: Mapping[str, str]) -> Answer:
        path = path.removeprefix("/apis/registry/v3").partition("?")[0]
        if path == broken:
            return Answer(body=body)
        good = {"/search/versions": b'{"versions": [{"artifactType": "AVRO"}]}', "/ids/contentIds/7": AVRO.encode()}
        return Answer(body=good.get(path, b"[]"))

    with answering(respond) as url:
        client = client_of(f"{url}/apis/ccompat/v7")
        if broken == "/ids/contentIds/7" and body != b"\xff":
            assert client.schema(content_id(7)) == WriterSchema("AVRO", body.decode())
            return
        with pytest.raises(S3SinkError) as raised:
            client.schema(content_id(7))
    assert raised.value.reason in {"RegistryInvalid", "RegistryNotJson"}


def test_a_guid_is_requested_as_it_is_written() -> None:
    asked = []

    def respond(path: str, _: Mapping[str, str]) -> Answer:
        asked.append(path)
        return FOUND

    with answering(respond) as url:
        assert client_of(url).schema(GUID) == WriterSchema("AVRO", AVRO)
    assert asked == [f"/schemas/guids/{GUID.value}"]


def test_a_guid_that_the_registry_does_not_have_is_unknown() -> None:
    with answering(lambda *_: UNKNOWN) as url:
        assert client_of(url).schema(GUID) is None


def test_a_registry_that_serves_no_guids_is_an_error_and_no_bad_record(registry: SchemaRegistry) -> None:
    with pytest.raises(FinalError, match=f"/schemas/guids/{GUID.value}"):
        client_of(registry.url).schema(GUID)


def test_the_newest_versions_are_known_by_their_guids_as_well() -> None:
    def respond(path: str, _: Mapping[str, str]) -> Answer:
        version = {"schema": AVRO, "id": 7, "version": 3, "guid": GUID.value}
        return Answer(body=json.dumps([3] if path.endswith("/versions") else version).encode())

    with answering(respond) as url:
        (found,) = client_of(url).newest("orders", "value", 5)
    assert (found.ids, found.schema) == ((numbered(7), GUID), WriterSchema("AVRO", AVRO))
