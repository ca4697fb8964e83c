"""How a process gets the schemas of typed records: what the driver handed out, and a client for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.retry import NO_RETRIES, RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registries import SchemaClient, open_client, registry_name
from s3sink_job.decode.registry_schemas import RegistrySchemas
from s3sink_job.decode.settings import SchemaSource
from s3sink_job.decode.writer_schemas import InlineSchema, SchemaId, SchemaLookup, WriterSchema

SchemasByRegistry = Mapping[str, Mapping[SchemaId, WriterSchema]]
"""By the name of a registry, see `registry_name`."""


class _Client:
    """Reads the secrets with the first request, not before: a task without typed records needs none of them."""

    def __init__(self, registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy) -> None:
        self._settings = registry, secrets, retry
        self._opened: SchemaClient | None = None
        # Several sinks may share a process.
        self.name = f"{secrets.folder} {registry_name(registry)}"

    def schema(self, schema: SchemaId) -> WriterSchema | None:
        self._opened = self._opened or open_client(*self._settings)
        return self._opened.schema(schema)


@dataclass(frozen=True)
class SchemaAccess:
    secrets: Secrets
    retry: RetryPolicy
    handed_out: SchemasByRegistry = field(default_factory=dict)
    """Schemas that the driver sent with the task."""
    _opened: dict[str, RegistrySchemas] = field(default_factory=dict, compare=False)

    def lookup(self, source: SchemaSource, kind: str) -> SchemaLookup | None:
        """None for formats without schemas. Key and value share the lookup of one registry.

        `kind` is the one of the inline schema.
        """
        if source.inline:
            return InlineSchema(WriterSchema(kind, source.inline))
        if source.registry is None:
            return None
        name = registry_name(source.registry)
        if name not in self._opened:
            client = _Client(source.registry, self.secrets, self.retry)
            self._opened[name] = RegistrySchemas(client, self.handed_out.get(name))
        return self._opened[name]

    @property
    def found(self) -> dict[str, dict[SchemaId, WriterSchema]]:
        """Schemas that were requested, for the driver to hand out next time."""
        return {name: schemas.found for name, schemas in self._opened.items() if schemas.found}


NO_ACCESS = SchemaAccess(Secrets(""), NO_RETRIES)
"""For formats without schemas, and for inline schemas."""
