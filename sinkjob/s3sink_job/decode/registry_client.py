"""Requests to a schema registry in Confluent's REST dialect: Confluent, Karapace, Apicurio below `/apis/ccompat/v7`.

Only these three requests are needed, so there is no second Kafka client for them. An id that the registry does not
know is None; everything else that goes wrong is an error, so that no record is skipped because of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.errors import FinalError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registry_http import Get, RegistryUnavailable, open_registry
from s3sink_job.decode.writer_schemas import WriterSchema

HIGHEST_ID = 2**31 - 1
MOST_REFERENCES = 1000
"""Of one schema, those of its references included."""
_DEFAULT_KIND = "AVRO"
"""Confluent leaves the type out for Avro."""


@dataclass(frozen=True)
class RegisteredSchema:
    """A version of a subject."""

    id: int
    version: int
    schema: WriterSchema


def registry_client(registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy | None = None) -> RegistryClient:
    """Reads the secrets: a client that is kept does not follow their changes."""
    return RegistryClient(registry.url, open_registry(registry, secrets), retry or RetryPolicy())


class RegistryClient:
    def __init__(self, url: str, get: Get, retry: RetryPolicy, sleep: Callable[[float], None] = time.sleep) -> None:
        self.url = self.name = url
        self._get = get
        self._retry = retry
        self._sleep = sleep

    def schema(self, number: int) -> WriterSchema | None:
        """The schema with this id, and None if the registry has none."""
        # Registries count in 32 bits. For other numbers they say that there is no such page.
        if not 0 <= number <= HIGHEST_ID:
            return None
        answer = self._answer(f"/schemas/ids/{number}")
        return None if answer is None else self._with_references(answer, f"schema {number}")

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest version of a subject, and None if there is no such subject."""
        return self._version(subject, "latest")

    def ids_of(self, subject: str, newest: int) -> tuple[int, ...]:
        """The ids of a subject's newest versions, newest first."""
        versions = self._answer(f"/subjects/{quote(subject, safe='')}/versions")
        if versions is None:
            return ()
        if not isinstance(versions, list) or not all(isinstance(version, int) for version in versions):
            raise self._invalid(f"the versions of subject {subject} are not a list of numbers")
        chosen = sorted(versions, reverse=True)[:newest]
        # A version may be deleted between the two requests.
        found = (self._answer(_path_of(subject, version)) for version in chosen)
        return tuple(self._number(answer, "id", f"subject {subject}") for answer in found if answer is not None)

    def _version(self, subject: str, version: str) -> RegisteredSchema | None:
        what = f"subject {subject}, version {version}"
        answer = self._answer(_path_of(subject, version))
        if answer is None:
            return None
        schema = self._with_references(answer, what)
        return RegisteredSchema(self._number(answer, "id", what), self._number(answer, "version", what), schema)

    def _with_references(self, answer: Any, what: str) -> WriterSchema:
        text = self._text(answer, what)
        texts: dict[tuple[str, str], str] = {}
        self._add_references(answer, what, texts, ())
        return WriterSchema(str(answer.get("schemaType") or _DEFAULT_KIND), text, tuple(texts.values()))

    def _add_references(
        self, answer: Any, what: str, texts: dict[tuple[str, str], str], parents: tuple[tuple[str, str], ...]
    ) -> None:
        """Adds the texts of all references to `texts`, each after those that it refers to itself."""
        for reference in self._references(answer, what):
            if reference in texts:
                continue
            subject, version = reference
            own = f"subject {subject}, version {version}"
            if reference in parents:
                raise self._invalid(f"{own} refers to itself: register the schemas without a cycle")
            if len(texts) + len(parents) >= MOST_REFERENCES:
                raise self._invalid(f"{what} has more than {MOST_REFERENCES} references")
            # Records outlive the deletion of a version that their schema refers to.
            found = self._answer(f"{_path_of(subject, version)}?deleted=true")
            if found is None:
                raise self._invalid(f"{what} refers to {own}, which does not exist: register it again")
            text = self._text(found, own)
            self._add_references(found, own, texts, (*parents, reference))
            texts[reference] = text

    def _references(self, answer: Mapping[str, Any], what: str) -> list[tuple[str, str]]:
        given = answer.get("references") or []
        if not isinstance(given, list):
            raise self._invalid(f"the references of {what} are not a list")
        try:
            return [(str(item["subject"]), str(item["version"])) for item in given]
        except (TypeError, KeyError):
            raise self._invalid(f"a reference of {what} has no subject or no version") from None

    def _text(self, answer: Any, what: str) -> str:
        text = answer.get("schema") if isinstance(answer, Mapping) else None
        if not isinstance(text, str):
            raise self._invalid(f"the answer for {what} has no schema: is schemaRegistry.url right?")
        return text

    def _number(self, answer: Any, name: str, what: str) -> int:
        number = answer.get(name) if isinstance(answer, Mapping) else None
        if not isinstance(number, int):
            raise self._invalid(f"the answer for {what} has no {name}: is schemaRegistry.url right?")
        return number

    def _answer(self, path: str) -> Any:
        """The document at the path, and None if the registry says that it has none. Retried like requests to S3."""
        asked_to_wait = 0.0

        def attempt() -> Any:
            nonlocal asked_to_wait
            try:
                return self._get(path)
            except RegistryUnavailable as error:
                asked_to_wait = error.wait
                raise

        return self._retry.run(attempt, on_retry=lambda: self._sleep(asked_to_wait))

    def _invalid(self, message: str) -> FinalError:
        return FinalError(f"schema registry {self.url}: {message}", reason="RegistryInvalid")


def _path_of(subject: str, version: str | int) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions/{quote(str(version), safe='')}"
