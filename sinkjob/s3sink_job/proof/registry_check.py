"""`s3sink check` for typed records: the registry answers, and the latest schema of each topic as its columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from s3sink_api.spec import Spec
from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.avro_decoder import decoder_of
from s3sink_job.decode.avro_schema import InvalidSchema
from s3sink_job.decode.registry_client import RegistryClient, registry_client
from s3sink_job.decode.settings import SchemaSource, decoding_of
from s3sink_job.decode.writer_schemas import WriterSchema

PARTS = ("key", "value")
CHECK = "schema"


def registry_checks(spec: Spec, secrets: Secrets) -> Iterator[tuple[str, bool, str]]:
    """What was tested, whether it is well, and a sentence."""
    routes = [(route.topics, spec.for_route(route)) for route in spec.routes]
    routed = {topic for topics, _ in routes for topic in topics}
    own = tuple(topic for topic in spec.source.topics if topic not in routed)
    answered: set[str] = set()
    for topics, one in ((own, spec), *routes):
        decoding = decoding_of(one)
        retries = one.errors.request_retries
        for part in PARTS:
            source = decoding.key_schemas if part == "key" else decoding.value_schemas
            try:
                yield from _check(topics, part, source, secrets, RetryPolicy(retries.max, retries.backoff), answered)
            except S3SinkError as error:
                yield "registry", False, f"{error.reason}: {error}"


def _check(
    topics: tuple[str, ...], part: str, source: SchemaSource, secrets: Secrets, retry: RetryPolicy, answered: set[str]
) -> Iterator[tuple[str, bool, str]]:
    if source.inline:
        yield _columns(f"spec.source.{part}.schema", WriterSchema("AVRO", source.inline))
    if source.registry is None:
        return
    client = registry_client(source.registry, secrets, retry)
    for topic in topics or ("",):
        found = list(_subject(client, f"{topic}-{part}"))
        if client.url not in answered:
            answered.add(client.url)
            yield "registry", True, f"{client.url} answers"
        if topic:
            yield from found


def _subject(client: RegistryClient, subject: str) -> Iterator[tuple[str, bool, str]]:
    latest = client.latest(subject)
    if latest is None:
        elsewhere = "records are read by the id they carry, whatever the subject of their schema"
        yield CHECK, True, f"the registry has no subject {subject}; {elsewhere}"
        return
    yield _columns(f"{subject}, version {latest.version}, id {latest.id}", latest.schema)


def _columns(name: str, schema: WriterSchema) -> tuple[str, bool, str]:
    if schema.kind != "AVRO":
        return CHECK, False, f"{name} is {schema.kind}, and the format in the manifest is Avro"
    try:
        return CHECK, True, f"{name}: {_text(decoder_of(schema).type)}"
    except InvalidSchema as error:
        return CHECK, False, f"{name} is {error}"


def _text(kind: pa.DataType) -> str:
    if not pa.types.is_struct(kind):
        return str(kind)
    return ", ".join(f"{field.name} {field.type}" for field in kind) or "a record without fields"
