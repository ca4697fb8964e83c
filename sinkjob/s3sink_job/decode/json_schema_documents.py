"""A JSON Schema with the schemas that it refers to. Nothing is fetched: what is not there does not exist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, specification_with

from s3sink_job.decode.json_inference import described
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema

HERE = "http://schema.invalid/"
"""The address of a schema that has none. No host has this name."""
REF_ALONE = (DRAFT4, DRAFT6, DRAFT7)
"""Drafts in which nothing beside `$ref` counts."""


@dataclass(frozen=True)
class Documents:
    root: Any
    address: str
    named: Mapping[str, Any]
    """The references, by the name that the schema uses for them."""

    @property
    def draft(self) -> Any:
        """The specification, as `referencing` has it."""
        return _draft(self.root)

    @property
    def ref_alone(self) -> bool:
        return self.draft in REF_ALONE

    @property
    def by_address(self) -> dict[str, Any]:
        return {**{urljoin(self.address, name): doc for name, doc in self.named.items()}, self.address: self.root}

    def at(self, address: str) -> Any:
        """A reference by an address that ends with its name. Raises `LookupError`."""
        for name, doc in self.named.items():
            if address == name or address.endswith(f"/{name}"):
                return doc
        raise LookupError(address)

    @property
    def resolver(self) -> Any:
        """Of `referencing`, beginning at the root."""

        def resource(doc: Any) -> Resource[Any]:
            found: Resource[Any] = _draft(doc, self.draft).create_resource(doc)
            return found

        def retrieve(address: str) -> Resource[Any]:
            try:
                return resource(self.at(address))
            except LookupError:
                raise NoSuchResource(ref=address) from None  # type: ignore[call-arg]

        registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
        found = registry.with_resources((address, resource(doc)) for address, doc in self.by_address.items())
        try:
            return found.crawl().resolver(self.address)
        except (TypeError, ValueError, AttributeError):
            # A part that should be a schema is none. Whoever reads it finds the place.
            return found.resolver(self.address)


def documents_of(schema: WriterSchema) -> Documents:
    """Raises `InvalidSchema`."""
    root = _parsed(schema.text, "it")
    named = {
        reference.name: _parsed(reference.text, f"its reference {reference.name}") for reference in schema.references
    }
    own = _draft(root).id_of(root) if isinstance(root, dict) else None
    return Documents(root, urljoin(HERE, own) if isinstance(own, str) else HERE, named)


def _parsed(text: str, what: str) -> Any:
    try:
        found = json.loads(text)
    except RecursionError:
        raise InvalidSchema(f"no JSON Schema: {what} is nested too deeply") from None
    except ValueError as error:
        raise InvalidSchema(f"no JSON Schema: {what} is not JSON: {error}") from None
    if not isinstance(found, dict | bool):
        raise InvalidSchema(f"no JSON Schema: {what} is {described(found)}, and should be an object")
    return found


def _draft(doc: Any, default: Any = DRAFT7) -> Any:
    """Without `$schema`, and for drafts that nobody knows, it is draft 7, as for Confluent's serializers."""
    named = doc.get("$schema") if isinstance(doc, dict) else None
    return specification_with(named.rstrip("#"), default=default) if isinstance(named, str) else default
