"""The records of `topic.py` with a JSON Schema, in the wire format of a schema registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.topic import STOCK, Events

WHOLE, REAL, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_closed(
            id=WHOLE,
            at=TEXT,
            kind=TEXT,
            session=TEXT,
            customer=_closed(id=WHOLE, country=TEXT),
            amount=REAL,
            score=REAL,
            quantity=WHOLE,
            member={"type": "boolean"},
            title=TEXT,
        ),
    }
)


class JsonSchemaEvents:
    """The same values as `Events` with the same seed."""

    def __init__(self, register: Callable[[str], int], stock: int = STOCK) -> None:
        self._events = Events(stock=stock)
        self._prefix = b"\x00" + register(SCHEMA).to_bytes(4, "big")

    def values(self, partition: int, start: int, count: int) -> Iterator[bytes]:
        for value in self._events.values(partition, start, count):
            yield self._prefix + value
