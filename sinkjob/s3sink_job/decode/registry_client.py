"""Requests to a schema registry in Confluent's REST dialect: Confluent, Karapace, Apicurio below `/apis/ccompat/v7`.

Only these few requests are needed, so there is no second Kafka client for them. An id that the registry does not
know is None; everything else that goes wrong is an error, so that no record is skipped because of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.errors import FinalError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.apicurio_ids import apicurio_schema
from s3sink_job.decode.registry_http import Get, RegistryUnavailable, open_registry
from s3sink_job.decode.schema_references import BrokenReferences, Link, StoredSchema, references_of
from s3sink_job.decode.writer_schemas import RegisteredSchema, SchemaId, WriterSchema, numbered

HIGHEST_ID = 2**31 - 1
_DEFAULT_KIND = "AVRO"
"""Confluent leaves the type out for Avro."""


def registry_client(registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy | None = None) -> RegistryClient:
    """Reads the secrets: a client that is kept does not follow their changes."""
    return RegistryClient((registry.url or "").rstrip("/"), open_registry(registry, secrets), retry or RetryPolicy())


class RegistryClient:
    def __init__(self, url: str, get: Get, retry: RetryPolicy, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = self.name = url
        self._get = get
        self._retry = retry
        self._sleep = sleep

    def schema(self, schema: SchemaId) -> WriterSchema | None:
        """None if the registry does not have it."""
        match schema.kind:
            case "schema id":
                # Registries count in 32 bits. For other numbers they say that there is no such page.
                path = f"/schemas/ids/{schema.value}" if int(schema.value) <= HIGHEST_ID else ""
            case "schema GUID":
                path = f"/schemas/guids/{schema.value}"
            case _:
                return self._by_apicurio(schema)
        answer = self._answer(self.url + path) if path else None
        return None if answer is None else self._with_references(answer, str(schema))

    def _by_apicurio(self, schema: SchemaId) -> WriterSchema | None:
        try:
            return apicurio_schema(schema, self.url, self._answer)
        except BrokenReferences as error:
            raise self._invalid(str(error)) from None

    def usual_name(self, topic: str, part: str) -> str:
        return f"subject {_subject(topic, part)}"

    def latest(self, topic: str, part: str) -> RegisteredSchema | None:
        """The newest version of the usual subject, and None if there is no such subject."""
        return self._version(_subject(topic, part), "latest")

    def newest(self, topic: str, part: str, most: int) -> Iterator[RegisteredSchema]:
        """The newest versions of the usual subject, newest first. Each is requested when it is taken."""
        subject = _subject(topic, part)
        versions = self._answer(f"{self.url}/subjects/{quote(subject, safe='')}/versions")
        if versions is None:
            return
        if not isinstance(versions, list) or not all(isinstance(version, int) for version in versions):
            raise self._invalid(f"the versions of subject {subject} are not a list of numbers")
        for version in sorted(versions, reverse=True)[:most]:
            # It may be deleted by now.
            if (found := self._version(subject, version)) is not None:
                yield found

    def _version(self, subject: str, version: str | int) -> RegisteredSchema | None:
        what = f"subject {subject}, version {version}"
        answer = self._answer(self.url + _path_of(subject, version))
        if answer is None:
            return None
        schema = self._with_references(answer, what)
        number, guid = self._number(answer, "id", what), answer.get("guid")
        ids = (numbered(number), *([SchemaId("schema GUID", guid)] if isinstance(guid, str) else []))
        name = f"{subject}, version {self._number(answer, 'version', what)}, id {number}"
        return RegisteredSchema(name, ids, schema)

    def _with_references(self, answer: Any, what: str) -> WriterSchema:
        def find(link: Link) -> StoredSchema | None:
            found = self._answer(link.url)
            return None if found is None else self._stored(found, link.place)

        stored = self._stored(answer, what)
        try:
            references = references_of(stored, what, find)
        except BrokenReferences as error:
            raise self._invalid(str(error)) from None
        return WriterSchema(str(answer.get("schemaType") or _DEFAULT_KIND), stored.text, references)

    def _stored(self, answer: Any, what: str) -> StoredSchema:
        text = answer.get("schema") if isinstance(answer, Mapping) else None
        if not isinstance(text, str):
            raise self._invalid(f"the answer for {what} has no schema: is schemaRegistry.url right?")
        given = answer.get("references") or []
        if not isinstance(given, list):
            raise self._invalid(f"the references of {what} are not a list")
        try:
            links = tuple(self._link(str(i.get("name", "")), str(i["subject"]), str(i["version"])) for i in given)
        except (AttributeError, TypeError, KeyError):
            raise self._invalid(f"a reference of {what} has no subject or no version") from None
        return StoredSchema(text, links)

    def _link(self, name: str, subject: str, version: str) -> Link:
        # Records outlive the deletion of a version that their schema refers to.
        url = f"{self.url}{_path_of(subject, version)}?deleted=true"
        return Link(name, f"subject {subject}, version {version}", url)

    def _number(self, answer: Any, name: str, what: str) -> int:
        number = answer.get(name) if isinstance(answer, Mapping) else None
        if not isinstance(number, int):
            raise self._invalid(f"the answer for {what} has no {name}: is schemaRegistry.url right?")
        return number

    def _answer(self, url: str, *, text: bool = False) -> Any:
        """What is there, and None if the registry says that it has no such thing. Retried like requests to S3."""
        asked_to_wait = 0.0

        def attempt() -> Any:
            nonlocal asked_to_wait
            try:
                return self._get(url, text=text)
            except RegistryUnavailable as error:
                asked_to_wait = error.wait
                raise

        return self._retry.run(attempt, on_retry=lambda: self._sleep(asked_to_wait))

    def _invalid(self, message: str) -> FinalError:
        return FinalError(f"schema registry {self.url}: {message}", reason="RegistryInvalid")


def _subject(topic: str, part: str) -> str:
    """The usual one for keys or values of a topic."""
    return f"{topic}-{part}"


def _path_of(subject: str, version: str | int) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions/{quote(str(version), safe='')}"
