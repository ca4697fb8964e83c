"""A manifest as somebody wrote it, run to its end on the servers of the tests, and what is in the buckets then."""

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

from e2e.parts.kafka import KafkaBroker
from e2e.parts.s3 import S3Server
from s3sink_job.cli.context import LOCAL_CLUSTER
from s3sink_job.engine.driver import Driver
from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.verify import Report, verify
from s3sink_job.flush.state import Owner
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.properties import connection
from s3sink_job.report.reporter import Reporter
from s3sink_job.secrets import Secrets, write_secrets
from s3sink_job.spec import S3Sink, parse
from s3sink_job.stores.bucket import Retrying
from s3sink_job.stores.client import open_bucket
from tests.examples.shop import NOON

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PATIENCE = 90.0
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sinks_in(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document and document["kind"] == "S3Sink"]


@dataclass
class Place:
    """Broker and S3 server, and a bucket for each that a manifest names."""

    kafka: KafkaBroker
    s3: S3Server
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
        """What the Secrets of manifests hold here, by the names that they give them."""
        keys = {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key}
        secure = self.kafka.secure
        jaas = f'{SCRAM} required username="{secure.username}" password="{secure.password}";'
        auth = {"sasl.jaas.config": jaas, "ssl.truststore.certificates": secure.ca_pem}
        return {"s3": keys, "s3-keys": keys, "kafka-auth": auth}

    def adapted(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The same sink here: only addresses differ, and that the S3 server of the tests has no certificate."""
        found = deepcopy(dict(document))
        spec = found["spec"]
        source, destination = spec["source"], spec["destination"]
        source["bootstrapServers"] = self.kafka.secure.bootstrap if "propertiesFrom" in source else self.kafka.bootstrap
        for place in (destination, *(route.get("destination", {}) for route in spec.get("routes", []))):
            if "bucket" in place:
                place["bucket"] = self.bucket(place["bucket"])
        destination.pop("caFrom", None)
        destination |= {"endpoint": self.s3.endpoint, "region": self.s3.region}
        return found

    def file(self, text: str) -> Path:
        """A manifest's file with its addresses and the contents of its Secrets changed, and nothing else."""
        documents = []
        for document in filter(None, yaml.safe_load_all(text)):
            if document["kind"] == "Secret":
                documents.append(document | {"stringData": self.secrets.get(document["metadata"]["name"], {})})
            else:
                documents.append(self.adapted(document))
        file = self.folder / "sink.yaml"
        # JSON is YAML as well, and keeps times as they are written.
        file.write_text("\n---\n".join(json.dumps(document, default=datetime.isoformat) for document in documents))
        return file

    def run(self, document: Mapping[str, Any]) -> Report:
        """Runs it to its end in this process, at noon, and says what `s3sink verify` does."""
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

    def verify(self, document: Mapping[str, Any]) -> Report:
        sink, secrets = self._here(document)
        spec, name = sink.spec, sink.metadata
        retries = spec.errors.request_retries
        bucket = open_bucket(spec.destination, secrets, Retrying(retries.max, retries.backoff))
        where = f"{spec.destination.state_prefix}/{name.namespace}/{name.name}"
        ledger = Ledger(bucket, where, Owner(LOCAL_CLUSTER, name.namespace, name.name), conditional=True)
        properties = connection(spec.source, secrets)
        admin = Admin(self.spark._jvm, properties)
        try:
            return verify(sink, secrets, bucket, ledger, self.spark, admin, properties)
        finally:
            admin.close()

    def _here(self, document: Mapping[str, Any]) -> tuple[S3Sink, Secrets]:
        """The sink for this process, which has no credentials in its environment and ends when all is written."""
        adapted = self.adapted(document)
        adapted["spec"]["destination"].setdefault("credentials", {"secretRef": {"name": "s3"}})
        if adapted["spec"].get("run") != "Scheduled":
            adapted["spec"]["run"] = "Once"
        raw = {name: {key: text.encode() for key, text in pairs.items()} for name, pairs in self.secrets.items()}
        return parse(adapted), write_secrets(self.folder / "secrets", raw)

    def client(self) -> S3Client:
        return self.s3.client()

    def objects(self) -> list[str]:
        """All objects by the names that the manifest gives the buckets, but for the sinks' state."""
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
    """Keys as a picture."""
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
