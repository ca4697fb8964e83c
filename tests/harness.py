"""A sink in this process: the real driver on one shared Spark session, with real Kafka and a real S3 server.

What arrived is read back by means that share nothing with the product: a plain consumer and a plain S3
client. Processes that are killed are the business of tests/crash.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import zstandard
from botocore.config import Config
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink, parse
from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets, write_secrets
from s3sink_job.cli.opened_sink import LOCAL_CLUSTER
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.state import Owner
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.properties import connection
from s3sink_job.proof.verify import verify
from s3sink_job.proof.verify_report import VerifyReport
from s3sink_job.report.status import Reporter
from s3sink_job.spark.session import start_session
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from tools.parts.jars import connector_dir
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

PATIENCE = 60.0


def start_spark() -> SparkSession:
    """A session with two cores for the sinks of a whole test run."""
    os.environ["S3SINK_JARS"] = str(connector_dir())
    sink = parse(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "tests"},
            "spec": {
                "source": {"bootstrapServers": "127.0.0.1:1", "topics": ["none"]},
                "destination": {"bucket": "none"},
                "format": {"type": "Json"},
                "spark": {"driver": {"cores": 2}},
            },
        }
    )
    return start_session(sink.spec, "tests")


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if nested else value
    return result


@dataclass(frozen=True)
class Message:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


@dataclass
class World:
    """Makes sinks on one topic and one bucket."""

    kafka: KafkaBroker
    s3: S3Server
    spark: SparkSession
    bucket: str
    topic: str
    folder: Path
    drivers: list[Driver] = field(default_factory=list)
    endpoint: str = ""
    """What the sinks are told: the server itself unless a proxy stands before it."""
    patience: float = PATIENCE

    def document(self, **spec: Any) -> dict[str, Any]:
        base = {
            "source": {"bootstrapServers": self.kafka.bootstrap, "topics": [self.topic]},
            "destination": {
                "bucket": self.bucket,
                "prefix": "raw",
                "endpoint": self.endpoint or self.s3.endpoint,
                "region": self.s3.region,
                "credentials": {"secretRef": {"name": "s3"}},
            },
            "format": {"type": "Json"},
            "flush": {"records": 1000, "interval": "1h"},
            "run": "Once",
            "errors": {"requestRetries": {"max": 2, "backoff": "10ms"}},
            "spark": {"driver": {"cores": 2}},
        }
        return {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "sink"},
            "spec": merged(base, spec),
        }

    def secrets(self, **more: Mapping[str, bytes]) -> Secrets:
        s3 = {"AWS_ACCESS_KEY_ID": self.s3.access_key.encode(), "AWS_SECRET_ACCESS_KEY": self.s3.secret_key.encode()}
        return write_secrets(self.folder / "secrets", {"s3": s3, **more})

    def driver(
        self,
        *,
        secrets: Secrets | None = None,
        annotations: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        cluster: str = LOCAL_CLUSTER,
        clock: Callable[[], float] = time.time,
        run_id: str = "",
        **spec: Any,
    ) -> Driver:
        document = self.document(**spec)
        document["metadata"] |= {"annotations": dict(annotations or {}), **(metadata or {})}
        sink = parse(document)
        driver = Driver(
            *(sink, secrets or self.secrets(), self.spark, Reporter()),
            cluster=cluster,
            stop=threading.Event(),
            clock=clock,
            run_id=run_id,
        )
        self.drivers.append(driver)
        return driver

    def drain(self, driver: Driver | None = None, **spec: Any) -> Driver:
        """Runs a `run: Once` sink to its end."""
        driver = driver or self.driver(**spec)
        deadline = time.monotonic() + self.patience
        while not driver.finished:
            assert time.monotonic() < deadline, f"not finished: {driver.problems} {driver.reporter.status()}"
            driver.step()
        return driver

    def produce(self, values: list[Any], partition: int | None = 0, topic: str | None = None) -> None:
        raw = [v if isinstance(v, bytes) or v is None else json.dumps(v).encode() for v in values]
        self.kafka.produce(topic or self.topic, [(None, v, None, None) for v in raw], partition)

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.s3.endpoint,
            aws_access_key_id=self.s3.access_key,
            aws_secret_access_key=self.s3.secret_key,
            region_name=self.s3.region,
            config=Config(s3={"addressing_style": "path"}),
        )

    def objects(self, prefix: str = "raw/") -> list[str]:
        answer = self.client().list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [o["Key"] for o in answer.get("Contents", [])]

    def content(self, key: str) -> bytes:
        body: bytes = self.client().get_object(Bucket=self.bucket, Key=key)["Body"].read()
        if key.endswith(".gz"):
            return gzip.decompress(body)
        if key.endswith(".zst"):
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
        return body

    def lines(self, partition: int | None = None, topic: str | None = None) -> list[str]:
        """Every line in the bucket, in order of keys."""
        below = f"raw/{topic or self.topic}/" + ("" if partition is None else f"{partition}/")
        return [line for key in self.objects(below) for line in self.content(key).decode().splitlines()]

    def rows(self, partition: int | None = None, topic: str | None = None) -> list[Any]:
        return [json.loads(line) for line in self.lines(partition, topic)]

    def consumed(self, topic: str | None = None) -> dict[tuple[int, int], bytes | None]:
        """What an independent, read-committed consumer sees: (partition, offset) → value."""
        return consume(self.kafka.bootstrap, topic or self.topic)

    def messages(self, topic: str | None = None) -> list[Message]:
        """What it sees of them beside the value, in order."""
        return consume_whole(self.kafka.bootstrap, topic or self.topic)

    def sizes(self, prefix: str = "raw/", bucket: str | None = None) -> dict[str, int]:
        """Every object below the prefix, however many there are, with its length."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket or self.bucket, Prefix=prefix)
        return {o["Key"]: o["Size"] for page in pages for o in page.get("Contents", [])}

    def head(self, key: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.client().head_object(Bucket=self.bucket, Key=key)
        return answer

    def download(self, folder: Path, prefix: str = "raw/", bucket: str | None = None) -> list[Path]:
        """The objects below the prefix as files, each at its key below the folder."""
        client, paths = self.client(), []
        for key in self.sizes(prefix, bucket):
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(client.get_object(Bucket=bucket or self.bucket, Key=key)["Body"].read())
            paths.append(path)
        return paths

    def state(self) -> dict[str, Any]:
        key = ".s3sink/default/sink/state.json"
        found: dict[str, Any] = json.loads(self.client().get_object(Bucket=self.bucket, Key=key)["Body"].read())
        return found

    def verify(self, driver: Driver) -> VerifyReport:
        sink: S3Sink = driver.sink
        retries = sink.spec.errors.request_retries
        bucket: Bucket = open_bucket(sink.spec.destination, driver.secrets, RetryPolicy(retries.max, retries.backoff))
        ledger = Ledger(bucket, ".s3sink/default/sink", Owner(LOCAL_CLUSTER, "default", "sink"), conditional=True)
        properties = connection(sink.spec.source, driver.secrets)
        admin = Admin(self.spark._jvm, properties)
        try:
            return verify(sink, driver.secrets, bucket, ledger, self.spark, admin, properties)
        finally:
            admin.close()


def consume(bootstrap: str, topic: str) -> dict[tuple[int, int], bytes | None]:
    return {(m.partition, m.offset): m.value for m in consume_whole(bootstrap, topic)}


def consume_whole(bootstrap: str, topic: str) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "independent",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    found: list[Message] = []
    try:
        partitions = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        at_end: set[int] = set()
        deadline = time.monotonic() + PATIENCE
        while len(at_end) < len(partitions):
            assert time.monotonic() < deadline
            message: Any = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                at_end.add(message.partition())
                continue
            headers = tuple(message.headers() or ())
            place = (message.partition(), message.offset())
            found.append(Message(*place, message.key(), message.value(), headers, message.timestamp()[1]))
    finally:
        consumer.close()
    return sorted(found, key=lambda m: (m.partition, m.offset))


def produce_large(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Values longer than a producer sends unless it is told to. The topic has to take them, too."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 20_000_000, "log_level": 0})
    failures: list[Any] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(PATIENCE) == 0
    assert not any(failures), failures


def failure_of(act: Callable[[], Any]) -> S3SinkError:
    try:
        act()
    except S3SinkError as error:
        return error
    raise AssertionError("it should have been refused")
