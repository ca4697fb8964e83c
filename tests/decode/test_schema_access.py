"""Where tasks get schemas from: one lookup for each registry and login, opened when it is needed."""

from __future__ import annotations

import pytest

from s3sink_api.spec import SchemaRegistry, SecretRef, SecretSource
from s3sink_job.base.errors import FinalError
from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.schema_access import SchemaAccess, registry_name
from s3sink_job.decode.settings import SchemaSource
from s3sink_job.decode.writer_schemas import WriterSchema, numbered

URL = "http://127.0.0.1:1"


def registry(login: str = "") -> SchemaRegistry:
    source = SecretSource(secret_ref=SecretRef(name=login)) if login else None
    return SchemaRegistry(url=URL, credentials_from=source)


def test_one_url_with_two_logins_is_two_registries() -> None:
    """A registry in the cloud may have other schemas under the same ids for another login."""
    handed_out = {
        registry_name(registry(name)): {numbered(1): WriterSchema("AVRO", f'"{name}"')} for name in ("one", "two")
    }
    access = SchemaAccess(Secrets("nowhere"), NO_RETRIES, handed_out)
    one, two = (access.lookup(SchemaSource(registry=registry(name)), "AVRO") for name in ("one", "two"))
    assert one is not None
    assert two is not None
    assert [one.find(numbered(1)), two.find(numbered(1))] == [
        WriterSchema("AVRO", '"one"'),
        WriterSchema("AVRO", '"two"'),
    ]


def test_key_and_value_share_the_lookup_of_one_registry() -> None:
    access = SchemaAccess(Secrets("nowhere"), NO_RETRIES)
    source = SchemaSource(registry=registry())
    assert access.lookup(source, "AVRO") is access.lookup(source, "AVRO")


def test_a_missing_secret_is_an_error_of_the_request_that_needs_it() -> None:
    access = SchemaAccess(Secrets("nowhere"), NO_RETRIES)
    lookup = access.lookup(SchemaSource(registry=registry("login")), "AVRO")
    assert lookup is not None
    with pytest.raises(FinalError, match="Secret 'login' is missing or empty"):
        lookup.find(numbered(1))


def test_formats_without_schemas_have_no_lookup() -> None:
    assert SchemaAccess(Secrets("nowhere"), NO_RETRIES).lookup(SchemaSource(), "") is None
