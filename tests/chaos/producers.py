"""Producers as people run them: plain, idempotent, with transactions that commit, abort, last long or are abandoned.

Each record of a run has its own id. After a failed delivery only Kafka knows whether the record was written, so the
proof reads the topic and uses nothing of the producers.
"""

from __future__ import annotations

import json
import string
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from tests.chaos.choices import SIZES, Choices

IDS_EACH = 10**9
"""The ids of producer 2 begin at 2 * IDS_EACH."""
HOUR_MS = 3_600_000
PATIENCE = 20.0
KINDS = ("view", "basket", "order", "refund", None)
REGIONS = ("eu", "us", "asia")
_LETTERS = "".join(Random(7).choices(string.ascii_letters + string.digits + " ,;\"'äß€", k=50_000))
COMMON = {
    "linger.ms": 20,
    "acks": "all",
    "message.timeout.ms": 15_000,
    "reconnect.backoff.max.ms": 1_000,
    "log_level": 0,
}
SETTINGS: dict[str, dict[str, Any]] = {
    # A retry without idempotence may write a record twice: then Kafka has two records.
    "plain": {"enable.idempotence": False},
    "idempotent": {"enable.idempotence": True},
    "transactional": {"enable.idempotence": True, "transaction.timeout.ms": 20_000},
}


@dataclass(frozen=True)
class Record:
    key: bytes | None
    value: bytes
    headers: list[tuple[str, str | bytes | None]]
    timestamp: int


def records(number: int, choices: Choices) -> Iterator[Record]:
    """An endless stream; the same for the same seed, except timestamps."""
    chance = Random(f"records of {choices.seed}: {number}")
    shortest, longest = SIZES[choices.sizes]
    for n in count(number * IDS_EACH):
        start, size = chance.randrange(len(_LETTERS) - longest), chance.randrange(shortest, longest)
        customer = chance.randrange(1_000)
        value = {
            "id": n,
            "kind": chance.choice(KINDS),
            "customer": {"country": chance.choice(("DE", "FR", "PL")), "number": customer},
            # Sometimes an integer, sometimes a double: columns widen during the run.
            "amount": chance.randrange(500) if chance.random() < 0.5 else round(chance.uniform(1, 500), 2),
            "text": _LETTERS[start : start + size],
        }
        yield Record(
            key=str(customer).encode() if chance.random() < 0.7 else None,
            value=json.dumps(value).encode(),
            headers=[("region", chance.choice(REGIONS))] if chance.random() < 0.9 else [],
            timestamp=int(time.time() * 1000) - HOUR_MS * chance.randrange(3),
        )


@dataclass
class _Client:
    """One producer in a thread of its own."""

    kind: str
    number: int
    bootstrap: str
    topic: str
    choices: Choices
    rate: float
    stop: threading.Event
    did: Counter[str] = field(default_factory=Counter)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._records = records(self.number, self.choices)
        self._chance = Random(f"producer of {self.choices.seed}: {self.number}")
        self._thread = threading.Thread(target=self._guarded, name=f"{self.kind} producer", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(4 * PATIENCE)
        if self.failure is not None:
            raise self.failure
        assert not self._thread.is_alive(), f"the {self.kind} producer {self.number} did not end"

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:
            self.failure = failure

    def _run(self) -> None:
        turn = self._transaction if self.kind == "transactional" else self._send_some
        producer = self._connect()
        while not self.stop.is_set():
            try:
                turn(producer)
            except _Left:
                self.did["transactions left open"] += 1
                producer = self._connect()
            except KafkaException as error:
                self.did["errors"] += 1
                if not self._recovers(producer, error):
                    producer = self._connect()
        producer.flush(PATIENCE)
        if self.kind == "transactional":
            # This ends an open transaction, as the producer's next start would.
            self._connect()

    def _connect(self) -> Producer:
        """A new client. With transactions it retries until Kafka has ended the former client's transaction."""
        ids = {"transactional.id": f"chaos-{self.number}"} if self.kind == "transactional" else {}
        while True:
            producer = Producer({"bootstrap.servers": self.bootstrap, **COMMON, **SETTINGS[self.kind], **ids})
            if not ids:
                return producer
            try:
                producer.init_transactions(PATIENCE)
                return producer
            except KafkaException:
                self.did["errors"] += 1
                time.sleep(0.5)

    def _recovers(self, producer: Producer, error: KafkaException) -> bool:
        """Whether the client can go on after an error, after an abort of its transaction."""
        if self.kind != "transactional":
            return not error.args[0].fatal()
        try:
            producer.abort_transaction(PATIENCE)
        except KafkaException:
            return False
        self.did["aborted transactions"] += 1
        return True

    def _transaction(self, producer: Producer) -> None:
        """Most are short; some last long and hold the last stable offset back."""
        producer.begin_transaction()
        for _ in range(self._chance.choice([1, 1, 2, 5, 20])):
            self._send_some(producer)
        fate = self._chance.random()
        if fate < 0.75:
            producer.commit_transaction(PATIENCE)
            self.did["transactions"] += 1
        elif fate < 0.95:
            producer.abort_transaction(PATIENCE)
            self.did["aborted transactions"] += 1
        else:
            producer.flush(PATIENCE)
            raise _Left

    def _send_some(self, producer: Producer) -> None:
        """As many records as this rate has in a fifth of a second."""
        began = time.monotonic()
        for _ in range(max(1, round(self.rate / 5))):
            record = next(self._records)
            while True:
                try:
                    producer.produce(
                        self.topic,
                        record.value,
                        record.key,
                        timestamp=record.timestamp,
                        headers=record.headers,
                        on_delivery=self._delivered,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
        self.stop.wait(max(0.0, began + max(0.2, 1 / self.rate) - time.monotonic()))

    def _delivered(self, error: Any, message: Message) -> None:
        self.did["records" if error is None else "failed records"] += 1


class _Left(Exception):
    """The producer disappears during a transaction."""


class Producers:
    def __init__(self, bootstrap: str, topic: str, choices: Choices) -> None:
        self._stop = threading.Event()
        rate = choices.rate / len(choices.producers)
        self.clients = [
            _Client(kind, number, bootstrap, topic, choices, rate, self._stop)
            for number, kind in enumerate(choices.producers, 1)
        ]

    def finish(self) -> None:
        """Stops the producers and ends every transaction; raises their errors."""
        self.stop()
        for client in self.clients:
            client.join()

    def stop(self) -> None:
        self._stop.set()

    @property
    def did(self) -> Counter[str]:
        return sum((client.did for client in self.clients), Counter())
