"""A real Kafka broker: one KRaft node, on loopback by default, with settings for a quick start and quick retention.

Retention and compaction run every half second, so that tests of deleted or compacted records are short. By default
nothing expires, because test records have old timestamps.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewPartitions,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tools.parts.jars import java
from tools.parts.kafka_settings import (
    JVM,
    LOGGING,
    QUICK,
    SecureListener,
    classpath,
    format_data,
    format_second,
    lines_of,
    secure_listener,
    security,
)
from tools.parts.processes import LOOPBACK, PartFailed, Process, free_ports, port_answers

Headers = list[tuple[str, str | bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers | None, int | None]
"""Key, value, headers, timestamp in milliseconds (None: now)."""

_PATIENCE = 30.0


class KafkaBroker:
    """`with KafkaBroker() as kafka: kafka.create_topic("t")`.

    With `secure=True` there is a second listener with SASL_SSL; see `KafkaBroker.secure`.
    With `join` it is the second broker of that broker's cluster, and no controller.
    `config` overrides server properties; `host` is the address to listen on and to advertise.
    """

    def __init__(
        self,
        *,
        secure: bool = False,
        config: Mapping[str, str] | None = None,
        heap: str = "512m",
        port: int | None = None,
        host: str = LOOPBACK,
        join: KafkaBroker | None = None,
    ) -> None:
        self._host = host
        self._join = join
        self._config = dict(config or {})
        self._heap = heap
        self._dir = Path(tempfile.mkdtemp(prefix="s3sink-kafka-"))
        self._port, self._controller_port, self._secure_port = free_ports(3, host)
        self._port = port or self._port
        self._secure = secure_listener(self._dir, host, self._secure_port) if secure else None
        self._process: Process | None = None
        self._admin: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self._host}:{self._port}"

    @property
    def secure(self) -> SecureListener:
        if self._secure is None:
            raise PartFailed("this broker has no secure listener: start it with KafkaBroker(secure=True)")
        return self._secure

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def log(self) -> Path:
        return self._dir / "server.log"

    @property
    def folder(self) -> Path:
        """The folder with the logs of its partitions."""
        return self._dir / "data"

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(
                {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 500, "log_level": 0}
            )
        return self._admin

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the broker, also again after `stop()` or `kill()`: same ports, same data."""
        data = self._dir / "data"
        if not data.exists():
            format_data(data)
            if self._join is not None:
                format_second(data, self._join.folder)
        properties = self._dir / "server.properties"
        properties.write_text(lines_of(self._properties(data)))
        logging = self._dir / "log4j2.properties"
        logging.write_text(lines_of(LOGGING))
        command = [java(), f"-Xmx{self._heap}", *JVM, f"-Dlog4j2.configurationFile={logging}"]
        command += ["-cp", classpath(), "kafka.Kafka", str(properties)]
        self._process = Process("Kafka", command, self.log)
        # With the port tried first, the client has no reason to back off or to log errors.
        self._process.wait_until(lambda: port_answers(self._port, self._host))
        self._process.wait_until(self._answers)
        if self._secure is not None:
            self._add_scram_user(self._secure)

    def stop(self) -> None:
        """Graceful shutdown; the data stays."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        self._running().kill()

    def pause(self) -> None:
        """Freezes the broker: connections stay open, nothing answers."""
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def close(self) -> None:
        """Kills the broker and removes its data."""
        self._admin = None
        if self._process is not None:
            self._process.kill()
        shutil.rmtree(self._dir, ignore_errors=True)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        brokers: list[list[int]] | None = None,
    ) -> None:
        """`brokers` lists the brokers of each partition; without it the controller chooses."""
        placed: dict[str, Any] = {"replica_assignment": brokers} if brokers else {"replication_factor": 1}
        topic = NewTopic(name, num_partitions=partitions, config=dict(config or {}), **placed)
        _done(self.admin.create_topics([topic]))
        # The controller answers before the topic is in the broker's own metadata.
        self._until(lambda: len(self._partitions(name)) == partitions, f"topic {name} to exist")

    def delete_topic(self, name: str) -> None:
        _done(self.admin.delete_topics([name]))
        self._until(lambda: not self._partitions(name), f"topic {name} to be gone")

    def add_partitions(self, name: str, total: int) -> None:
        """Raises the number of partitions to `total`."""
        _done(self.admin.create_partitions([NewPartitions(name, total)]))
        self._until(lambda: len(self._partitions(name)) == total, f"topic {name} to have {total} partitions")

    def produce(self, topic: str, records: Iterable[Record], partition: int | None = None) -> int:
        """Writes records (key, value, headers, timestamp) and returns how many, once all are acknowledged."""
        # A new client each time: an older one may have cached a topic that was recreated since.
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 5,
                "batch.num.messages": 50_000,
                "queue.buffering.max.messages": 500_000,
                "log_level": 0,
            }
        )
        return _produce(producer, topic, records, partition)

    def _partitions(self, topic: str) -> dict[int, Any]:
        described = self.admin.list_topics(topic, timeout=_PATIENCE).topics[topic]
        if described.error is not None and described.error.code() != KafkaError.LEADER_NOT_AVAILABLE:
            return {}
        return {n: p for n, p in described.partitions.items() if p.leader >= 0}

    def _running(self) -> Process:
        if self._process is None:
            raise PartFailed("the broker was not started")
        return self._process

    def _answers(self) -> bool:
        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise PartFailed(f"timed out waiting for {what}")
            time.sleep(0.02)

    def _add_scram_user(self, listener: SecureListener) -> None:
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(listener.username, credential, listener.password.encode())
        _done(self.admin.alter_user_scram_credentials([change]))

    def _properties(self, data: Path) -> dict[str, str]:
        listeners = [
            f"PLAINTEXT://{self._host}:{self._port}",
            f"CONTROLLER://{self._host}:{self._controller_port}",
        ]
        advertised = listeners[:1]
        login: dict[str, str] = {}
        if self._secure is not None:
            listeners.append(f"SASL_SSL://{self._host}:{self._secure_port}")
            advertised.append(listeners[-1])
            login = security(self._secure, self._dir / "server.pem")
        controller, role = self._controller_port, {}
        if self._join is not None:
            controller, listeners = self._join._controller_port, advertised
            role = {"process.roles": "broker", "node.id": "2"}
        return {
            **QUICK,
            "log.dirs": str(data),
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(advertised),
            "controller.quorum.voters": f"1@{self._host}:{controller}",
            **role,
            **login,
            **self._config,
        }


def _produce(producer: Producer, topic: str, records: Iterable[Record], partition: int | None) -> int:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: object) -> None:
        if error is not None:
            failures.append(error)

    count = 0
    # -1 and 0 are librdkafka's own "any partition" and "now".
    where = -1 if partition is None else partition
    for key, value, headers, timestamp in records:
        while True:
            try:
                producer.produce(topic, value, key, where, delivered, timestamp=timestamp or 0, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
        if count % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(_PATIENCE)
    if failures or left:
        raise PartFailed(f"{len(failures)} records refused, {left} unsent: {failures[:1]}")
    return count


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(timeout=_PATIENCE)
