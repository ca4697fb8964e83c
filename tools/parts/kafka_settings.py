"""Settings of the test broker: server properties, a formatted data folder, and TLS and SASL for one listener."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tools.parts.cache import build_once
from tools.parts.jars import broker_jars, java
from tools.parts.processes import LOOPBACK, PartFailed
from tools.parts.versions import version

_FORMATTED_AS = "s3sinkformattedoncexxx"


@dataclass(frozen=True)
class SecureListener:
    """How to reach the broker by SASL_SSL, with SCRAM-SHA-512 or PLAIN."""

    bootstrap: str
    ca_pem: str
    ca_file: Path
    username: str
    password: str


JVM = ["-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true"]

LOGGING = {
    "appender.out.type": "Console",
    "appender.out.name": "out",
    "appender.out.layout.type": "PatternLayout",
    "appender.out.layout.pattern": "%d %p %c{1} %m%n",
    "rootLogger.level": "WARN",
    "rootLogger.appenderRef.out.ref": "out",
}

QUICK = {
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
    # A killed broker can come back only after its old session has expired.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.max.timeout.ms": "900000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def format_data(data: Path) -> None:
    """Makes a formatted data folder, as a copy: the storage tool runs once for each version of Kafka."""
    name = "kafka-formatted-" + version("kafka", "broker").replace(":", "_")
    template = build_once(name, _run_storage_tool)
    shutil.copytree(template / "data", data)
    meta = data / "meta.properties"
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    meta.write_text(meta.read_text().replace(_FORMATTED_AS, cluster_id))


def format_second(data: Path, first: Path) -> None:
    """Changes a formatted folder into that of the second node of the first one's cluster."""
    known = dict(line.split("=", 1) for line in (first / "meta.properties").read_text().splitlines() if "=" in line)
    directory = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    (data / "meta.properties").write_text(lines_of({**known, "node.id": "2", "directory.id": directory}))
    (data / "bootstrap.checkpoint").unlink()


def _run_storage_tool(folder: Path) -> None:
    properties = folder / "server.properties"
    settings = {
        **QUICK,
        "log.dirs": str(folder / "data"),
        "listeners": "PLAINTEXT://:1,CONTROLLER://:2",
        "controller.quorum.voters": f"1@{LOOPBACK}:2",
    }
    properties.write_text(lines_of(settings))
    command = [java(), *JVM, "-cp", classpath(), "kafka.tools.StorageTool", "format"]
    command += ["-t", _FORMATTED_AS, "-c", str(properties)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or _FORMATTED_AS not in (folder / "data" / "meta.properties").read_text():
        raise PartFailed(f"formatting Kafka's data folder failed:\n{done.stdout}{done.stderr}")


def classpath() -> str:
    return os.pathsep.join(str(jar) for jar in broker_jars())


def secure_listener(folder: Path, host: str, port: int) -> SecureListener:
    authority = trustme.CA()
    server = authority.issue_cert(host, "localhost")
    key = load_pem_private_key(server.private_key_pem.bytes(), password=None)
    # Kafka reads private keys only in PKCS #8.
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for certificate in server.cert_chain_pems:
        pem += certificate.bytes()
    (folder / "server.pem").write_bytes(pem)
    ca_pem = authority.cert_pem.bytes().decode()
    ca_file = folder / "ca.pem"
    ca_file.write_text(ca_pem)
    return SecureListener(f"{host}:{port}", ca_pem, ca_file, "sink", secrets.token_urlsafe(12))


def security(listener: SecureListener, keystore: Path) -> dict[str, str]:
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


def lines_of(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())
