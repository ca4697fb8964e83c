"""Runs a manifest as it is written on the servers of the tests, and reads the buckets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink, parse
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
from s3sink_job.stores.factory import open_bucket
from tests.examples.shop import NOON
from tools.parts.kafka import KafkaBroker
from tools.parts.registry import SchemaRegistry
from tools.parts.s3 import Moto, S3Server

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PATIENCE = 90.0
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sinks_in(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document and document["kind"] == "S3Sink"]


@dataclass
class Place:
    """Broker, registries and S3 server, with a bucket for each one that a manifest names."""

    kafka: KafkaBroker
    s3: S3Server
    registry: SchemaRegistry
    glue: Moto
    spark: SparkSession
    folder: Path
    mark: str
    _buckets: dict[str, str] = field(default_factory=dict)

    def bucket(self, name: str) -> str:
        if name not in self._buckets:
            self._buckets[name] = self.s3.create_bucket(f"{name}-{self.mark}")
        return self._buckets[name]

    @property
    def secrets(self) -> dict[str, dict[str, str]]:
        """The contents of the manifests' Secrets here, by name."""
        keys = {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key}
        secure = self.kafka.secure
        jaas = f'{SCRAM} required username="{secure.username}" password="{secure.password}";'
        auth = {"sasl.jaas.config": jaas, "ssl.truststore.certificates": secure.ca_pem}
        login = {"username": "shop", "password": "nobody checks it"}
        return {"s3": keys, "s3-keys": keys, "kafka-auth": auth, "registry-login": login}

    def adapted(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The same sink for these servers: only addresses change, and servers here have no certificate."""
        found = deepcopy(dict(document))
        spec = found["spec"]
        source, destination = spec["source"], spec["destination"]
        source["bootstrapServers"] = self.kafka.secure.bootstrap if "propertiesFrom" in source else self.kafka.bootstrap
        for place in (destination, *(route.get("destination", {}) for route in spec.get("routes", []))):
            if "bucket" in place:
                place["bucket"] = self.bucket(place["bucket"])
        for part in ("key", "value"):
            if registry := source.get(part, {}).get("schemaRegistry"):
                glue = registry.get("type") == "Glue"
                registry |= {"endpoint": self.glue.endpoint} if glue else {"url": self.registry.url}
                registry.pop("caFrom", None)
        destination.pop("caFrom", None)
        destination |= {"endpoint": self.s3.endpoint, "region": self.s3.region}
        return found

    def file(self, text: str) -> Path:
        """The manifest's file with other addresses and other contents of its Secrets, and no other change."""
        documents = []
        for document in filter(None, yaml.safe_load_all(text)):
            if document["kind"] == "Secret":
                documents.append(document | {"stringData": self.secrets.get(document["metadata"]["name"], {})})
            else:
                documents.append(self.adapted(document))
        file = self.folder / "sink.yaml"
        # JSON is YAML, too, and keeps times as they are written.
        file.write_text("\n---\n".join(json.dumps(document, default=datetime.isoformat) for document in documents))
        return file

    def run(self, document: Mapping[str, Any]) -> VerifyReport:
        """Runs the sink to its end in this process, with noon as the time, and verifies it."""
        sink, secrets = self._here(document)
        driver = Driver(
            *(sink, secrets, self.spark, Reporter()),
            cluster=LOCAL_CLUSTER,
            stop=threading.Event(),
            clock=lambda: NOON,
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while not driver.finished:
                assert time.monotonic() < deadline, f"not finished: {driver.problems} {driver.reporter.status()}"
                driver.step()
        finally:
            driver.close()
        return self.verify(document)

    def verify(self, document: Mapping[str, Any]) -> VerifyReport:
        sink, secrets = self._here(document)
        spec, name = sink.spec, sink.metadata
        retries = spec.errors.request_retries
        bucket = open_bucket(spec.destination, secrets, RetryPolicy(retries.max, retries.backoff))
        where = f"{spec.destination.state_prefix}/{name.namespace}/{name.name}"
        ledger = Ledger(bucket, where, Owner(LOCAL_CLUSTER, name.namespace, name.name), conditional=True)
        properties = connection(spec.source, secrets)
        admin = Admin(self.spark._jvm, properties)
        try:
            return verify(sink, secrets, bucket, ledger, self.spark, admin, properties)
        finally:
            admin.close()

    def _here(self, document: Mapping[str, Any]) -> tuple[S3Sink, Secrets]:
        """The sink for this process, which has no credentials in its environment, with `run: Once`."""
        adapted = self.adapted(document)
        adapted["spec"]["destination"].setdefault("credentials", {"secretRef": {"name": "s3"}})
        if adapted["spec"].get("run") != "Scheduled":
            adapted["spec"]["run"] = "Once"
        raw = {name: {key: text.encode() for key, text in pairs.items()} for name, pairs in self.secrets.items()}
        return parse(adapted), write_secrets(self.folder / "secrets", raw)

    def client(self) -> S3Client:
        return self.s3.client()

    def objects(self) -> list[str]:
        """All objects by the manifest's names of the buckets, without the sinks' state."""
        found = []
        for name, bucket in self._buckets.items():
            listed = self.client().list_objects_v2(Bucket=bucket).get("Contents", [])
            found += [f"{name}/{o['Key']}" for o in listed if not o["Key"].startswith(".s3sink/")]
        return sorted(found)

    def content(self, key: str) -> bytes:
        name, _, key = key.partition("/")
        body: bytes = self.client().get_object(Bucket=self._buckets[name], Key=key)["Body"].read()
        return body


def tree(keys: list[str]) -> str:
    """Keys as a tree."""
    root: dict[str, Any] = {}
    for key in keys:
        at = root
        for part in key.split("/"):
            at = at.setdefault(part, {})
    return "\n".join(line for name, below in root.items() for line in (_named(name, below), *_lines(below)))


def _lines(below: dict[str, Any]) -> list[str]:
    lines = []
    for number, (name, inner) in enumerate(below.items(), 1):
        last = number == len(below)
        lines.append(f"{'└── ' if last else '├── '}{_named(name, inner)}")
        lines += [f"{'    ' if last else '│   '}{line}" for line in _lines(inner)]
    return lines


def _named(name: str, below: dict[str, Any]) -> str:
    return f"{name}/" if below else name
