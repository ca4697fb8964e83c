"""The clients of schema registries, by the type in the spec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.glue_client import GlueClient
from s3sink_job.decode.registry_client import registry_client
from s3sink_job.decode.writer_schemas import RegisteredSchema, SchemaId, WriterSchema


class SchemaClient(Protocol):
    url: str
    """For messages."""

    def schema(self, schema: SchemaId) -> WriterSchema | None:
        """None if the registry does not have it."""
        ...

    def usual_name(self, topic: str, part: str) -> str:
        """Of the schemas of keys or values of a topic, with what it is a name of; empty if there is none."""
        ...

    def latest(self, topic: str, part: str) -> RegisteredSchema | None:
        """The newest version under the usual name; None if there is none."""
        ...

    def newest(self, topic: str, part: str, most: int) -> Iterator[RegisteredSchema]:
        """The newest versions under the usual name, newest first. Each is requested when it is taken."""
        ...


def open_client(registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy) -> SchemaClient:
    """Reads the secrets: a client that is kept does not follow their changes."""
    client = GlueClient if registry.type == "Glue" else registry_client
    return client(registry, secrets, retry)


def registry_name(registry: SchemaRegistry) -> str:
    """Where it is, with the Secrets of the login: one address may have other schemas for another login or role."""
    if registry.type == "Glue":
        place = ["Glue", registry.region or "", registry.endpoint or ""]
        place += [str(access) for access in (registry.assume_role, registry.proxy) if access]
    else:
        place = [registry.url or ""]
    logins = [source.secret_ref.name for source in (registry.credentials_from, registry.cert_from) if source]
    return " ".join([*place, *logins])
