"""The records of `topic.py` as Avro, in the wire format of a schema registry: same fields, same values.

Versions of the schema take turns record by record. Each has one more optional field than the one before it.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import fastavro

from benchmarks.topic import PARTITIONS, STOCK, at, fields, place

TAIL: list[dict[str, Any]] = [
    {"name": "kind", "type": "string"},
    {"name": "session", "type": "string"},
    {
        "name": "customer",
        "type": {
            "type": "record",
            "name": "Customer",
            "fields": [{"name": "id", "type": "long"}, {"name": "country", "type": "string"}],
        },
    },
    {"name": "amount", "type": "double"},
    {"name": "score", "type": "double"},
    {"name": "quantity", "type": "long"},
    {"name": "member", "type": "boolean"},
    {"name": "title", "type": "string"},
]
HEAD = [{"name": "id", "type": "long"}, {"name": "at", "type": "string"}]
Register: TypeAlias = Callable[[str], int]
"""Gives a schema its id."""
NULL = b"\x00"
MORE_STOCK = 1_000
"""Values of the added fields, for each version."""


def schema(version: int = 1) -> dict[str, Any]:
    return _record(HEAD + TAIL + _added(version))


class AvroEvents:
    """The same numbers and values as `Events` with the same seed."""

    def __init__(
        self, register: Register, versions: int = 1, seed: int = 7, stock: int = STOCK, *, last_only: bool = False
    ) -> None:
        """With `last_only` the last version writes the rows of all versions, with nulls for what they lack."""
        tail, chance = fastavro.parse_schema(_record(TAIL)), random.Random(seed)
        self._tails = [_encoded(tail, fields(chance)) for _ in range(stock)]
        self._versions = []
        for version in range(1, versions + 1):
            number = register(json.dumps(schema(versions if last_only else version)))
            lacking = NULL * (versions - version if last_only else 0)
            more = fastavro.parse_schema(_record(_added(version)))
            stock_of_more = [_encoded(more, _more(chance, version)) + lacking for _ in range(MORE_STOCK)]
            self._versions.append((b"\x00" + number.to_bytes(4, "big"), stock_of_more))

    def values(self, partition: int, start: int, count: int) -> Iterator[bytes]:
        tails, versions = self._tails, self._versions
        for n in range(start, start + count):
            number = n * PARTITIONS + partition
            prefix, more = versions[n % len(versions)]
            tail = tails[place(n, partition, len(tails))]
            yield b"%b%b\x30%b%b%b" % (prefix, unsigned(number << 1), at(number), tail, more[n % MORE_STOCK])


def _record(members: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": "Event", "fields": members}


def _added(version: int) -> list[dict[str, Any]]:
    kinds = ("long", "string")
    return [
        {"name": f"added_{number}", "type": ["null", kinds[number % 2]], "default": None}
        for number in range(2, version + 1)
    ]


def _more(chance: random.Random, version: int) -> dict[str, Any]:
    """Half of the values are null."""
    values = (lambda: chance.randrange(1_000), lambda: f"{chance.getrandbits(32):08x}")
    return {f"added_{n}": values[n % 2]() if chance.random() < 0.5 else None for n in range(2, version + 1)}


def _encoded(parsed: Any, value: dict[str, Any]) -> bytes:
    output = io.BytesIO()
    fastavro.schemaless_writer(output, parsed, value)
    return output.getvalue()


def unsigned(number: int) -> bytes:
    """A number as both Avro and Protobuf write it, without a sign: seven bits in each byte."""
    return LOW[number & MOST_LOW] + _high(number >> 14) if number > MOST_LOW else _high(number)


@lru_cache(maxsize=16)
def _high(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


MOST_LOW = 2**14 - 1
LOW = [bytes([low & 0x7F | 0x80, low >> 7 | 0x80]) for low in range(MOST_LOW + 1)]
"""The first two bytes of longer numbers."""
