"""A real Kafka broker, one KRaft node on loopback unless told otherwise, tuned to start, expire and stop quickly.

Retention and compaction run every half second, so that tests of deleted or compacted records need not wait.
Nothing expires by default: topics in tests hold records with old timestamps.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trustme
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewPartitions,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from e2e.parts.cache import build_once
from e2e.parts.jars import broker_jars, java
from e2e.parts.processes import LOOPBACK, PartFailed, Process, free_ports, port_answers
from e2e.parts.versions import version

Headers = list[tuple[str, str | bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers | None, int | None]
"""Key, value, headers, timestamp in milliseconds (None: now)."""

_PATIENCE = 30.0
_FORMATTED_AS = "s3sinkformattedoncexxx"


@dataclass(frozen=True)
class SecureListener:
    """How to reach the broker by SASL_SSL, with SCRAM-SHA-512 or PLAIN."""

    bootstrap: str
    ca_pem: str
    ca_file: Path
    username: str
    password: str


class KafkaBroker:
    """`with KafkaBroker() as kafka: kafka.create_topic("t")`.

    With `secure=True` a second listener asks for SASL_SSL; see `KafkaBroker.secure`.
    With `join` it is the second broker of that one's cluster, and leaves the controller to it.
    `config` overrides server properties; `host` is the address to listen on and to tell clients.
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
        self._secure = _secure_listener(self._dir, host, self._secure_port) if secure else None
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
        """Where the logs of its partitions are."""
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
        """Starts the broker; after `stop()` or `kill()` again on the same ports with the same data."""
        data = self._dir / "data"
        if not data.exists():
            _format(data)
            if self._join is not None:
                _make_second(data, self._join.folder)
        properties = self._dir / "server.properties"
        properties.write_text(_lines(self._properties(data)))
        logging = self._dir / "log4j2.properties"
        logging.write_text(_lines(_LOGGING))
        command = [java(), f"-Xmx{self._heap}", *_JVM, f"-Dlog4j2.configurationFile={logging}"]
        command += ["-cp", _classpath(), "kafka.Kafka", str(properties)]
        self._process = Process("Kafka", command, self.log)
        # Asking the port first keeps the client from backing off and from complaining on stderr.
        self._process.wait_until(lambda: port_answers(self._port, self._host))
        self._process.wait_until(self._answers)
        if self._secure is not None:
            self._add_scram_user(self._secure)

    def stop(self) -> None:
        """An orderly shutdown; the data stays."""
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
        """Ends the broker at once and removes its data."""
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
        """`brokers` names those that hold each partition; without it the controller decides."""
        placed: dict[str, Any] = {"replica_assignment": brokers} if brokers else {"replication_factor": 1}
        topic = NewTopic(name, num_partitions=partitions, config=dict(config or {}), **placed)
        _done(self.admin.create_topics([topic]))
        # The controller answers before the broker's own metadata know the topic.
        self._until(lambda: len(self._partitions(name)) == partitions, f"topic {name} to be there")

    def delete_topic(self, name: str) -> None:
        _done(self.admin.delete_topics([name]))
        self._until(lambda: not self._partitions(name), f"topic {name} to be gone")

    def add_partitions(self, name: str, total: int) -> None:
        """Raises the number of partitions to `total`."""
        _done(self.admin.create_partitions([NewPartitions(name, total)]))
        self._until(lambda: len(self._partitions(name)) == total, f"topic {name} to have {total} partitions")

    def produce(self, topic: str, records: Iterable[Record], partition: int | None = None) -> int:
        """Writes records (key, value, headers, timestamp) and returns how many, once all are acknowledged."""
        # A new client each time: an old one may remember a topic that was made anew since.
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
                raise PartFailed(f"waited in vain for {what}")
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
        security: dict[str, str] = {}
        if self._secure is not None:
            listeners.append(f"SASL_SSL://{self._host}:{self._secure_port}")
            advertised.append(listeners[-1])
            security = _security(self._secure, self._dir / "server.pem")
        controller, role = self._controller_port, {}
        if self._join is not None:
            controller, listeners = self._join._controller_port, advertised
            role = {"process.roles": "broker", "node.id": "2"}
        return {
            **_QUICK,
            "log.dirs": str(data),
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(advertised),
            "controller.quorum.voters": f"1@{self._host}:{controller}",
            **role,
            **security,
            **self._config,
        }


_JVM = ["-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true"]

_LOGGING = {
    "appender.out.type": "Console",
    "appender.out.name": "out",
    "appender.out.layout.type": "PatternLayout",
    "appender.out.layout.pattern": "%d %p %c{1} %m%n",
    "rootLogger.level": "WARN",
    "rootLogger.appenderRef.out.ref": "out",
}

_QUICK = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "min.insync.replicas": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "500",
    "log.message.timestamp.before.max.ms": str(2**63 - 1),
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Each partition's index files take this much on disk until they roll.
    "log.index.size.max.bytes": "1048576",
    "num.network.threads": "2",
    "num.io.threads": "4",
    # A killed broker may come back only once its old session has run out.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.max.timeout.ms": "900000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def _format(data: Path) -> None:
    """Formats a data folder. The tool's result depends on the version alone, so it runs only once."""
    name = "kafka-formatted-" + version("kafka", "broker").replace(":", "_")
    template = build_once(name, _run_storage_tool)
    shutil.copytree(template / "data", data)
    meta = data / "meta.properties"
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    meta.write_text(meta.read_text().replace(_FORMATTED_AS, cluster_id))


def _make_second(data: Path, first: Path) -> None:
    """A folder as if it had been formatted for the second node of the first one's cluster."""
    known = dict(line.split("=", 1) for line in (first / "meta.properties").read_text().splitlines() if "=" in line)
    directory = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    (data / "meta.properties").write_text(_lines({**known, "node.id": "2", "directory.id": directory}))
    (data / "bootstrap.checkpoint").unlink()


def _run_storage_tool(folder: Path) -> None:
    properties = folder / "server.properties"
    settings = {
        **_QUICK,
        "log.dirs": str(folder / "data"),
        "listeners": "PLAINTEXT://:1,CONTROLLER://:2",
        "controller.quorum.voters": f"1@{LOOPBACK}:2",
    }
    properties.write_text(_lines(settings))
    command = [java(), *_JVM, "-cp", _classpath(), "kafka.tools.StorageTool", "format"]
    command += ["-t", _FORMATTED_AS, "-c", str(properties)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or _FORMATTED_AS not in (folder / "data" / "meta.properties").read_text():
        raise PartFailed(f"formatting Kafka's data folder failed:\n{done.stdout}{done.stderr}")


def _classpath() -> str:
    return os.pathsep.join(str(jar) for jar in broker_jars())


def _secure_listener(folder: Path, host: str, port: int) -> SecureListener:
    authority = trustme.CA()
    server = authority.issue_cert(host, "localhost")
    key = load_pem_private_key(server.private_key_pem.bytes(), password=None)
    # Kafka reads private keys as PKCS 8 only.
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for certificate in server.cert_chain_pems:
        pem += certificate.bytes()
    (folder / "server.pem").write_bytes(pem)
    ca_pem = authority.cert_pem.bytes().decode()
    ca_file = folder / "ca.pem"
    ca_file.write_text(ca_pem)
    return SecureListener(f"{host}:{port}", ca_pem, ca_file, "sink", secrets.token_urlsafe(12))


def _security(listener: SecureListener, keystore: Path) -> dict[str, str]:
    prefix = "listener.name.sasl_ssl"
    modules = "org.apache.kafka.common.security"
    login = f'{modules}.plain.PlainLoginModule required user_{listener.username}="{listener.password}";'
    return {
        f"{prefix}.ssl.keystore.type": "PEM",
        f"{prefix}.ssl.keystore.location": str(keystore),
        f"{prefix}.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        f"{prefix}.plain.sasl.jaas.config": login,
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


def _lines(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())
