"""The measured topics: records of about 220 bytes of JSON, like events of a shop.

Records differ in every field. All fields but number and time come from values made beforehand, because making a record
takes Python longer than the sink needs to write it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from confluent_kafka import KafkaError, Producer

from tools.parts.kafka import KafkaBroker
from tools.parts.processes import PartFailed

PARTITIONS = 4
STOCK = 100_000
KEPT = {"retention.ms": "-1"}
COUNTRIES = (
    *("AT", "BE", "BG", "CH", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GB", "GR", "HR", "HU", "IE"),
    *("IS", "IT", "LI", "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK", "TR", "UA"),
    *("US", "CA", "MX", "BR", "AR", "CL", "CO", "PE", "JP", "KR", "IN", "AU", "NZ", "ZA", "EG", "MA"),
)
"""50 values, to partition objects by."""
STORES = 2_000
"""As many values as a slice may have open objects, for topics with many."""
KINDS = ("view", "search", "basket_add", "basket_remove", "checkout", "refund")
WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "juniper", "knoll", "lagoon")
START, STEP = 1_767_225_600_000, 86.4
"""Milliseconds: the time of the first record, and the step to the next. Two million records span two days."""
MILLIS = [b".%03dZ" % millis for millis in range(0, 1000, 5)]
PATIENCE = 60.0
SAMPLE = "sample"
"""A header that is `yes` in every tenth record, in topics with headers."""
Headers: TypeAlias = list[tuple[str, str | bytes | None]]
HEADERS: list[Headers] = [[(SAMPLE, b"yes" if n == 0 else b"no")] for n in range(10)]


class Values(Protocol):
    def values(self, partition: int, start: int, count: int) -> Iterator[bytes]:
        """Numbers rise within a partition, and no two partitions have the same."""
        ...


class Events:
    """An endless stream of values; the same for the same seed."""

    def __init__(self, seed: int = 7, stock: int = STOCK, *, stores: bool = False) -> None:
        chance = random.Random(seed)
        self._tails = [_tail(chance, {"store": chance.randrange(STORES)} if stores else {}) for _ in range(stock)]

    def values(self, partition: int, start: int, count: int) -> Iterator[bytes]:
        tails = self._tails
        for n in range(start, start + count):
            number = n * PARTITIONS + partition
            yield b'{"id":%d,"at":"%b",%b' % (number, at(number), tails[place(n, partition, len(tails))])


def at(number: int) -> bytes:
    """The field `at` of a record."""
    return _second(number // 200) + MILLIS[number % 200]


@lru_cache(maxsize=16)
def _second(second: int) -> bytes:
    return b"2026-%02d-%02dT%02d:%02d:%02d" % (
        second // 2_419_200 % 12 + 1,
        second // 86_400 % 28 + 1,
        second // 3600 % 24,
        second // 60 % 60,
        second % 60,
    )


def place(n: int, partition: int, stock: int) -> int:
    """Which of the values that were made beforehand a record gets."""
    return (n * 7919 + partition) % stock


def _time(partition: int, n: int) -> int:
    return START + int((n * PARTITIONS + partition) * STEP)


def _tail(chance: random.Random, more: dict[str, int]) -> bytes:
    return json.dumps({**more, **fields(chance)}, separators=(",", ":")).encode()[1:]


def fields(chance: random.Random) -> dict[str, Any]:
    """All fields of a record but number and time."""
    return {
        "kind": chance.choice(KINDS),
        "session": f"{chance.getrandbits(64):016x}",
        "customer": {"id": chance.randrange(2_000_000), "country": chance.choice(COUNTRIES)},
        "amount": round(chance.expovariate(1 / 40), 2),
        "score": round(chance.random(), 9),
        "quantity": chance.randrange(1, 9),
        "member": chance.random() < 0.3,
        "title": " ".join(chance.choices(WORDS, k=chance.randrange(2, 6))),
    }


def create(kafka: KafkaBroker, topic: str) -> None:
    kafka.create_topic(topic, PARTITIONS, KEPT)


class Filler:
    """Appends the same number of events to every partition of a topic."""

    def __init__(self, kafka: KafkaBroker, events: Values, *, headers: bool = False) -> None:
        self._events, self._headers = events, HEADERS if headers else None
        self._written: dict[str, int] = {}
        self._failures: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "linger.ms": 5,
                "batch.num.messages": 50_000,
                "queue.buffering.max.messages": 200_000,
                "log_level": 0,
            }
        )

    def add(self, topic: str, per_partition: int, step: Callable[[int], None] = lambda count: None) -> None:
        """`step` is called for every few thousand records."""
        start = self._written.get(topic, 0)
        for partition in range(PARTITIONS):
            for n, value in enumerate(self._events.values(partition, start, per_partition), 1):
                headers: Headers = self._headers[n % 10] if self._headers else []
                self._send(topic, partition, value, _time(partition, start + n - 1), headers)
                if n % 10_000 == 0 or n == per_partition:
                    self._producer.poll(0)
                    step(10_000 if n % 10_000 == 0 else n % 10_000)
        left = self._producer.flush(PATIENCE)
        if left or self._failures:
            raise PartFailed(f"{left} records unsent, {len(self._failures)} refused: {self._failures[:1]}")
        self._written[topic] = start + per_partition

    def _send(self, topic: str, partition: int, value: bytes, time: int, headers: Headers) -> None:
        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    partition=partition,
                    timestamp=time,
                    headers=headers,
                    on_delivery=self._delivered,
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is not None:
            self._failures.append(error)
