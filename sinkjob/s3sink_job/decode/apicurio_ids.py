"""Schemas by Apicurio's own ids: those of a version (global ids) and those of a content.

The REST interface of Confluent has one of the two, by a setting of Apicurio. Its own interface has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from s3sink_job.base.errors import FinalError
from s3sink_job.decode.registry_http import Get
from s3sink_job.decode.schema_references import Link, StoredSchema, references_of
from s3sink_job.decode.settings import CONFLUENT_PATH
from s3sink_job.decode.writer_schemas import SchemaId, SchemaIdKind, WriterSchema

OWN_PATH = "/apis/registry/v3"
_NAMES: Mapping[SchemaIdKind, str] = {"Apicurio global id": "globalId", "Apicurio content id": "contentId"}


def apicurio_schema(schema: SchemaId, url: str, answer: Get) -> WriterSchema | None:
    """None if Apicurio does not have it. `url` is that of its Confluent interface. Raises `BrokenReferences`."""
    own, name = url.partition(CONFLUENT_PATH)[0] + OWN_PATH, _NAMES[schema.kind]
    versions = answer(f"{own}/search/versions?{name}={schema.value}&limit=1")
    try:
        kinds = [str(version["artifactType"]) for version in versions["versions"]]
    except (TypeError, KeyError):
        raise _invalid(url, f"the answer for {schema} has no versions") from None
    if not kinds:
        return None
    stored = _stored(f"{own}/ids/{name}s/{schema.value}", "", own, answer)
    if stored is None:
        return None
    references = references_of(stored, str(schema), lambda link: _stored(link.url, "/content", own, answer))
    return WriterSchema(kinds[0], stored.text, references)


def _stored(url: str, content: str, own: str, answer: Get) -> StoredSchema | None:
    """`content` is where the text is, below the URL."""
    text, references = answer(url + content, text=True), answer(f"{url}/references")
    if text is None or references is None:
        return None
    try:
        return StoredSchema(text, tuple(_link(reference, own) for reference in references))
    except (AttributeError, TypeError, KeyError):
        raise _invalid(own, f"the references at {url} have no artifact or no version") from None


def _link(reference: Any, own: str) -> Link:
    group, artifact, version = reference.get("groupId") or "default", reference["artifactId"], str(reference["version"])
    path = f"groups/{quote(group, safe='')}/artifacts/{quote(artifact, safe='')}/versions/{quote(version, safe='')}"
    return Link(
        str(reference.get("name", "")), f"artifact {artifact} of group {group}, version {version}", f"{own}/{path}"
    )


def _invalid(url: str, message: str) -> FinalError:
    return FinalError(f"schema registry {url}: {message}: is schemaRegistry.url right?", reason="RegistryInvalid")
