"""How a process gets the schemas of typed records: what the driver handed out, and a client for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.retry import NO_RETRIES, RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registry_client import RegistryClient, registry_client
from s3sink_job.decode.registry_schemas import RegistrySchemas
from s3sink_job.decode.settings import SchemaSource
from s3sink_job.decode.writer_schemas import InlineSchema, SchemaLookup, WriterSchema

SchemasByRegistry = Mapping[str, Mapping[int, WriterSchema]]
"""By the name of a registry, see `registry_name`, and by id."""
INLINE_KIND = "AVRO"


def registry_name(registry: SchemaRegistry) -> str:
    """The URL, with the Secrets of the login: one URL may have other schemas for another login."""
    logins = [source.secret_ref.name for source in (registry.credentials_from, registry.cert_from) if source]
    return " ".join([registry.url, *logins])


class _Client:
    """Reads the secrets with the first request, not before: a task without typed records needs none of them."""

    def __init__(self, registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy) -> None:
        self._settings = registry, secrets, retry
        self._opened: RegistryClient | None = None
        # Several sinks may share a process.
        self.name = f"{secrets.folder} {registry_name(registry)}"

    def schema(self, number: int) -> WriterSchema | None:
        self._opened = self._opened or registry_client(*self._settings)
        return self._opened.schema(number)


@dataclass(frozen=True)
class SchemaAccess:
    secrets: Secrets
    retry: RetryPolicy
    handed_out: SchemasByRegistry = field(default_factory=dict)
    """Schemas that the driver sent with the task."""
    _opened: dict[str, RegistrySchemas] = field(default_factory=dict, compare=False)

    def lookup(self, source: SchemaSource) -> SchemaLookup | None:
        """None for formats without schemas. Key and value share the lookup of one registry."""
        if source.inline:
            return InlineSchema(WriterSchema(INLINE_KIND, source.inline))
        if source.registry is None:
            return None
        name = registry_name(source.registry)
        if name not in self._opened:
            client = _Client(source.registry, self.secrets, self.retry)
            self._opened[name] = RegistrySchemas(client, self.handed_out.get(name))
        return self._opened[name]

    @property
    def found(self) -> dict[str, dict[int, WriterSchema]]:
        """Schemas that were requested, for the driver to hand out next time."""
        return {name: schemas.found for name, schemas in self._opened.items() if schemas.found}


NO_ACCESS = SchemaAccess(Secrets(""), NO_RETRIES)
"""For formats without schemas, and for inline schemas."""
