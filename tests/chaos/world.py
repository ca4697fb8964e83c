"""The parts of a run: a broker, an S3 server behind the fault proxy, a topic, a bucket, and the manifest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.chaos.choices import PREFIX, Choices
from tools.parts.kafka import KafkaBroker
from tools.parts.proxy import FaultProxy
from tools.parts.s3 import Versitygw

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NAME, TOPIC, BUCKET = "chaos", "chaos", "chaos"
STATE = f".s3sink/default/{NAME}/state.json"


@dataclass
class World:
    choices: Choices
    folder: Path
    """The folder for manifest and logs."""
    kafka: KafkaBroker
    s3: Versitygw
    proxy: FaultProxy

    @property
    def manifest(self) -> Path:
        return self.folder / "sink.yaml"

    @cached_property
    def client(self) -> S3Client:
        """A client without the proxy."""
        return self.s3.client()

    def sink(self) -> dict[str, Any]:
        return {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": NAME},
            "spec": {
                "source": {
                    "bootstrapServers": self.kafka.bootstrap,
                    "topics": [TOPIC],
                    "isolation": self.choices.isolation,
                },
                "destination": {
                    "bucket": BUCKET,
                    "prefix": PREFIX,
                    "endpoint": self.proxy.endpoint,
                    "region": self.s3.region,
                    "credentials": {"secretRef": {"name": "s3"}},
                    "partSize": "5Mi",
                },
                **self.choices.spec(),
                # Short waits: retries should come before the next fault.
                "errors": {
                    "requestRetries": {"max": 3, "backoff": "50ms"},
                    "retries": {"max": 20, "backoff": "200ms", "maxBackoff": "2s"},
                },
            },
        }

    def prepare(self) -> None:
        self.kafka.create_topic(TOPIC, self.choices.partitions, {"retention.ms": "-1", "retention.bytes": "-1"})
        self.s3.create_bucket(BUCKET)
        keys = {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": keys}
        self.manifest.write_text(yaml.safe_dump_all([self.sink(), secret], sort_keys=False))

    def state(self) -> dict[str, Any]:
        """The raw state document; {} before the first."""
        try:
            found: dict[str, Any] = json.loads(self.client.get_object(Bucket=BUCKET, Key=STATE)["Body"].read())
        except self.client.exceptions.NoSuchKey:
            return {}
        return found

    def ends(self, isolation: IsolationLevel) -> dict[int, int]:
        """The end offset of every partition, or its last stable offset."""
        wanted = {TopicPartition(TOPIC, p): OffsetSpec.latest() for p in range(self.choices.partitions)}
        # A new client each time: an older one may have cached the partition's leader.
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        answers = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=10)
        return {at.partition: answer.result().offset for at, answer in answers.items()}

    def behind(self) -> str:
        """What is left to write or publish, in words; empty if nothing. Used to wait, not as a proof."""
        state = self.state()
        if not state.get("topics"):
            return "the state names no topic yet"
        known = state["topics"][TOPIC]["partitions"]
        committed = {p: int(known.get(str(p), {"offset": 0})["offset"]) for p in range(self.choices.partitions)}
        try:
            ends, stable = self.ends(IsolationLevel.READ_UNCOMMITTED), self.ends(IsolationLevel.READ_COMMITTED)
        except KafkaException as error:
            return f"Kafka's offsets are not available: {error}"
        if ends != stable:
            return "a producer's transaction is still open"
        left = {p: end - committed[p] for p, end in ends.items() if committed[p] < end}
        if left:
            return f"offsets left by partition: {left}"
        return f"flush {state['publishing']} is not noted as published" if state["publishing"] else ""

    def keep_evidence(self) -> None:
        """Saves the evidence of a failed run before the parts are removed."""
        shutil.copy(self.kafka.log, self.folder / "broker.log")
        shutil.copytree(self.s3.objects / BUCKET, self.folder / "bucket", dirs_exist_ok=True)
        requests = "".join(f"{r.method} {r.path}?{r.query} {r.status}\n" for r in self.proxy.requests)
        (self.folder / "requests.log").write_text(requests)


@contextmanager
def world(choices: Choices, folder: Path) -> Iterator[World]:
    with KafkaBroker() as kafka, Versitygw() as s3, FaultProxy("127.0.0.1", s3.port) as proxy:
        made = World(choices, folder, kafka, s3, proxy)
        made.prepare()
        yield made
