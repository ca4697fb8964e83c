"""Encodings in manifests: a lost object can be written again by its manifest, also one of typed records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_api.spec import parse
from s3sink_job.flush.rollback import OF_TYPED_RECORDS, known_to_0_1
from s3sink_job.task.encoding import Encoding, encoding_of
from s3sink_job.task.encoding_documents import encoding_from_doc, encoding_to_doc

REGISTRY = {
    "url": "https://registry.example.com/apis",
    "credentialsFrom": {"secretRef": {"name": "login"}},
    "caFrom": {"secretRef": {"name": "ca"}},
    "certFrom": {"secretRef": {"name": "client"}},
}


def encoding(**source: Any) -> Encoding:
    spec = {"source": {"bootstrapServers": "k:1", "topics": ["t"], **source}, "destination": {"bucket": "lake"}}
    document = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "s"}, "spec": spec}
    return encoding_of(parse(document).spec)


@pytest.mark.parametrize(
    "source",
    [
        {"value": {"format": "Avro", "schemaRegistry": REGISTRY}},
        {
            "key": {"format": "Avro", "schemaRegistry": {"url": "http://r"}},
            "value": {"format": "Avro", "schema": '"long"'},
        },
        {"key": {"format": "ConnectJson"}, "value": {"format": "ConnectJson"}},
    ],
    ids=["registry", "inline", "connect"],
)
def test_a_manifest_keeps_how_typed_records_are_read(source: Any) -> None:
    wanted = encoding(**source)
    doc = json.loads(json.dumps(encoding_to_doc(wanted)))
    assert encoding_from_doc(doc) == wanted
    assert not known_to_0_1(doc), "0.1.0 would take the values for text"


def test_a_manifest_of_untyped_records_is_as_before() -> None:
    doc = encoding_to_doc(encoding(value={"format": "Json"}))
    assert not set(OF_TYPED_RECORDS) & set(doc)
    assert known_to_0_1(doc)


def test_a_manifest_names_secrets_and_holds_none() -> None:
    doc = encoding_to_doc(encoding(value={"format": "Avro", "schemaRegistry": REGISTRY}))
    assert doc["value_registry"]["credentials_from"] == {"secret_ref": {"name": "login"}}
