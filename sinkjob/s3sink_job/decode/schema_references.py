"""The schemas that a schema refers to, and those that these refer to, as a registry has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from s3sink_job.decode.writer_schemas import Reference

MOST_REFERENCES = 1000
"""Of one schema, those of its references included."""


class Link(NamedTuple):
    """A reference as a registry lists it."""

    name: str
    place: str
    """Where the registry has it, for messages."""
    url: str


@dataclass(frozen=True)
class StoredSchema:
    text: str
    links: tuple[Link, ...]


class BrokenReferences(ValueError):
    """References that do not exist, are too many, or form a cycle."""


def references_of(
    schema: StoredSchema, name: str, find: Callable[[Link], StoredSchema | None]
) -> tuple[Reference, ...]:
    """Each after those that it refers to itself. `name` is the one of the schema. Raises `BrokenReferences`."""
    known: dict[Link, Reference] = {}
    _add(schema, name, find, known, ())
    return tuple(known.values())


def _add(
    schema: StoredSchema,
    name: str,
    find: Callable[[Link], StoredSchema | None],
    known: dict[Link, Reference],
    parents: tuple[Link, ...],
) -> None:
    for link in schema.links:
        if link in known:
            continue
        if link in parents:
            raise BrokenReferences(f"{link.place} refers to itself: register the schemas without a cycle")
        if len(known) + len(parents) >= MOST_REFERENCES:
            raise BrokenReferences(f"{name} has more than {MOST_REFERENCES} references")
        found = find(link)
        if found is None:
            raise BrokenReferences(f"{name} refers to {link.place}, which does not exist: register it again")
        _add(found, link.place, find, known, (*parents, link))
        known[link] = Reference(link.name, found.text)
