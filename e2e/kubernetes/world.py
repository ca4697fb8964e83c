"""One sink with a real broker and a real store, run by the operator in pods."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.crash.reader import IndependentReader, in_kafka, places
from tools.cluster import Cluster, ClusterFailed
from tools.cluster.namespace import Namespace
from tools.operator_harness.helm_release import HelmRelease
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.proxy import Call, FaultProxy, Predicate, Request, request_is
from tools.parts.s3 import S3Server
from tools.polling import until

SINK = "orders"
PARTITIONS = 4
PREFIX = "raw"
PART = request_is("PUT", f"/{PREFIX}/", r"\bpartNumber=")


@dataclass(frozen=True)
class Plant:
    """What all tests share."""

    cluster: Cluster
    release: HelmRelease
    """The operator for the whole cluster."""
    kafka: KafkaBroker
    s3: S3Server
    proxy: FaultProxy
    """The S3 server's address for pods."""
    s3sink: CliProcess
    """The `s3sink` command, outside of the cluster."""
    image: str
    cluster_id: str


@dataclass
class World:
    plant: Plant
    namespace: Namespace
    bucket: str
    topic: str
    folder: Path
    produced: int = 0
    _ids: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.plant.kafka.create_topic(self.topic, partitions=PARTITIONS)
        self.client = self.plant.s3.client()

    def make_bucket(self) -> None:
        self.plant.s3.create_bucket(self.bucket)

    def secret(self, **keys: str) -> dict[str, Any]:
        right = {"AWS_ACCESS_KEY_ID": self.plant.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.plant.s3.secret_key}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": right | keys}

    def login(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A Secret for the broker's secure listener, and a `source` that refers to it."""
        secure = self.plant.kafka.secure
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        keys = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="{secure.username}" password="{secure.password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": secure.ca_pem,
        }
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"}, "stringData": keys}
        return secret, {"bootstrapServers": secure.bootstrap, "propertiesFrom": [{"secretRef": {"name": "kafka"}}]}

    def sink(self, **spec: Any) -> dict[str, Any]:
        base: dict[str, Any] = {
            "source": {"bootstrapServers": self.plant.kafka.bootstrap, "topics": [self.topic]},
            "destination": {
                "bucket": self.bucket,
                "prefix": PREFIX,
                "endpoint": self.plant.proxy.endpoint,
                "region": self.plant.s3.region,
                "credentials": {"secretRef": {"name": "s3"}},
            },
            "format": {"type": "Json", "compression": {"codec": "Gzip"}, "columns": {"meta": "Kafka"}},
            "flush": {"records": 2000, "interval": "2s"},
            "errors": {"retries": {"backoff": "500ms", "maxBackoff": "2s"}},
        }
        small = {"cpuRequest": "100m", "memory": "2Gi", "spill": "1Gi"}
        base["spark"] = {"driver": small, "executor": {**small, "instances": 2}}
        metadata = {"name": SINK, "namespace": self.namespace.name}
        document = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": metadata}
        return document | {"spec": _merged(base, spec)}

    def apply(self, **spec: Any) -> None:
        self.namespace.apply(self.secret(), self.sink(**spec))

    def produce(self, count: int, **fields: Any) -> None:
        for partition in range(PARTITIONS):
            rows = ({"id": next(self._ids), "text": "x" * 50, **fields} for _ in range(count // PARTITIONS))
            values = [json.dumps(row) for row in rows]
            self.plant.kafka.produce(self.topic, [(b"key", v.encode(), None, None) for v in values], partition)
            self.produced += len(values)

    def objects(self) -> list[str]:
        answer = self.client.list_objects_v2(Bucket=self.bucket, Prefix=f"{PREFIX}/")
        return [o["Key"] for o in answer.get("Contents", [])]

    def committed(self) -> int:
        """The sum of the committed offsets, read from the state in the bucket."""
        key = f".s3sink/{self.namespace.name}/{SINK}/state.json"
        try:
            state = json.loads(self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read())
        except self.client.exceptions.NoSuchKey:
            return 0
        partitions = state["topics"].get(self.topic, {"partitions": {}})["partitions"].values()
        return 0 if state["publishing"] else sum(p["offset"] for p in partitions)

    def arrive(self, seconds: float = 180.0) -> None:
        """Waits until all produced records are in the bucket, whatever the status says."""
        until(f"{self.produced} records in the bucket", lambda: self.committed() == self.produced, seconds, 1.0)

    def settle(self, seconds: float = 180.0) -> None:
        """Waits until all produced records are in the bucket, and the status reports it."""
        self.arrive(seconds)

        def level() -> bool:
            status = self.namespace.status(SINK)
            caught_up = self.namespace.condition(SINK, "CaughtUp")[0] == "True"
            return caught_up and status.get("lag", {}).get("records") == 0

        until("the status to report CaughtUp", level, 90.0, 1.0)

    def prove(self, **spec: Any) -> None:
        """An independent reader and `s3sink verify` both find every record once. `spec` is that of `apply`."""
        lines = IndependentReader(self.client, self.bucket, f"{PREFIX}/").lines()
        records = in_kafka(self.plant.kafka.bootstrap, self.topic)
        wanted = Counter((at, json.loads(value)["id"]) for at, value in records.items())
        there = places(lines)
        assert not there - wanted, f"twice or never produced: {sorted((there - wanted).items())[:10]}"
        assert not wanted - there, f"missing: {sorted((wanted - there).items())[:10]}"
        self.verify(len(records), **spec)

    def verify(self, records: int, **spec: Any) -> None:
        """`s3sink verify`, outside of the cluster, finds this many records once, and no problem."""
        manifest = self.folder / "sink.yaml"
        manifest.write_text(yaml.safe_dump_all([self.sink(**spec), self.secret()]))
        said = self.plant.s3sink("verify", "-f", str(manifest), "--json", S3SINK_CLUSTER=self.plant.cluster_id)
        report: dict[str, Any] = json.loads(said)
        expected = {"ok": True, "missing": 0, "duplicates": 0, "gaps": 0, "unlisted": 0, "records": records}
        assert {key: report[key] for key in expected} == expected, report

    @contextmanager
    def held(self, step: Predicate = PART, skip: int = 1) -> Iterator[None]:
        """Holds an upload until the block ends: a flush is running, and cannot finish."""
        met, release = threading.Event(), threading.Event()

        def hold(_: Request) -> None:
            met.set()
            release.wait(120)

        rule = self.plant.proxy.on(step, Call(before=hold), times=1, skip=skip)
        try:
            assert met.wait(180), "no flush began"
            yield
        finally:
            self.plant.proxy.remove(rule)
            release.set()

    def flow(self, records: int, *, instances: int = 0) -> None:
        """Brings the sink to Ready with this many executors, and produces records for the next flush."""
        if self.produced == 0:
            self.apply(spark=executors(instances=instances) if instances else {})
        self.namespace.until_ready(SINK, 180)
        self.settle()
        until("executors", lambda: len(self.executors()) == instances, 120)
        self.produce(records)

    def executors(self) -> dict[str, str]:
        """The running executors, with their uids."""
        pods = self.namespace.pods(SINK, "executor")
        return {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods if p["status"]["phase"] == "Running"}

    def driver(self) -> dict[str, Any]:
        (found,) = until("one driver", lambda: self.namespace.pods(SINK), 120)
        return dict(found)

    def end(self, pod: str, *how: str) -> None:
        self.namespace.kubectl("delete", "pod", pod, "--wait=false", *(how or ["--grace-period=1"]))
        until(f"{pod} to go", lambda: self.namespace.get("pod", pod) is None, 60)

    def story(self) -> str:
        """Objects, events and logs, for a failed test."""
        parts = []
        for arguments in (
            ("get", "s3sinks,deployments,cronjobs,jobs,pods", "--output", "wide"),
            ("get", "s3sink", SINK, "--output", "yaml"),
            ("get", "events", "--sort-by=.lastTimestamp"),
            ("logs", f"--selector=s3sink.dev/sink={SINK}", "--tail=60", "--prefix"),
        ):
            with suppress(ClusterFailed):
                parts.append(f"$ kubectl {' '.join(arguments)}\n{self.namespace.kubectl(*arguments)}")
        with suppress(ClusterFailed):
            parts.append(self.plant.release.home.kubectl("logs", "deployment/s3sink-operator", "--tail=30"))
        return "\n".join(parts)


def executors(**changes: Any) -> dict[str, Any]:
    """Cluster mode without scaling to zero, so that a test finds executors between two flushes."""
    return {"mode": "Cluster", "executor": {"scaleToZero": False, **changes}}


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = _merged(result[key], value) if nested else value
    return result
