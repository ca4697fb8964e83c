"""A rollback of one sink: the frozen release takes over from today's, with a real broker and S3 server."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.processes import PartFailed
from tools.parts.s3 import S3Server
from tools.releases import frozen_releases

STATE = ".s3sink/default/rolled/state.json"


def manifest(kafka: KafkaBroker, s3: S3Server, bucket: str, topic: str) -> list[dict[str, Any]]:
    """With Parquet, the default, whose schema is in the state."""
    keys = {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": s3.secret_key}
    spec = {
        "source": {"bootstrapServers": kafka.bootstrap, "topics": [topic]},
        "destination": {
            "bucket": bucket,
            "endpoint": s3.endpoint,
            "region": s3.region,
            "credentials": {"secretRef": {"name": "s3"}},
        },
    }
    sink = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "rolled"}, "spec": spec}
    return [sink, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": keys}]


@pytest.fixture
def older(tmp_path: Path) -> Iterator[CliProcess]:
    (tree,) = (release.tree for release in frozen_releases() if release.version == "0.1.0")
    with tarfile.open(tree) as archive:
        archive.extractall(tmp_path / "0.1.0", filter="data")
    with CliProcess(tmp_path / "log", PYTHONPATH=str(tmp_path / "0.1.0" / "sinkjob")) as running:
        yield running


def lose_what_was_committed(s3: S3Server, bucket: str, topic: str) -> None:
    """As if the driver had died between commit and publishing, and a lifecycle rule had then aborted the upload."""
    client = s3.client()
    state = json.loads(client.get_object(Bucket=bucket, Key=STATE)["Body"].read())
    client.put_object(Bucket=bucket, Key=STATE, Body=json.dumps({**state, "publishing": state["last"]}).encode())
    (found,) = client.list_objects_v2(Bucket=bucket, Prefix=f"{topic}/")["Contents"]
    client.delete_object(Bucket=bucket, Key=found["Key"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_rolled_back_sink_repairs_resumes_and_verifies(
    s3sink: CliProcess,
    older: CliProcess,
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    topic_name: str,
    tmp_path: Path,
) -> None:
    kafka.create_topic(topic_name)
    kafka.produce(topic_name, [(None, b'{"n": %d}' % n, None, None) for n in range(300)], 0)
    file = tmp_path / "sink.yaml"
    file.write_text(yaml.safe_dump_all(manifest(kafka, s3, bucket, topic_name)))
    s3sink("run", "-f", str(file), "--once")
    lose_what_was_committed(s3, bucket, topic_name)
    kafka.produce(topic_name, [(None, b'{"n": %d, "new": true}' % n, None, None) for n in range(200)], 0)

    older("run", "-f", str(file), "--once")
    for version in (older, s3sink):
        report = json.loads(version("verify", "-f", str(file), "--json"))
        # It really is the older one: that knows of nothing pending.
        assert ("pending" in report) is (version is s3sink)
        assert (report["ok"], report["records"], report["missing"], report["objects"]) == (True, 500, 0, 2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_older_release_refuses_a_sink_that_was_reset(
    s3sink: CliProcess,
    older: CliProcess,
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    topic_name: str,
    tmp_path: Path,
) -> None:
    kafka.create_topic(topic_name)
    kafka.produce(topic_name, [(None, b'{"n": 1}', None, None)], 0)
    file = tmp_path / "sink.yaml"
    sink, secret = manifest(kafka, s3, bucket, topic_name)
    reset = {**sink, "spec": {**sink["spec"], "reset": {"nonce": "again"}}}
    file.write_text(yaml.safe_dump_all([reset, secret]))
    s3sink("run", "-f", str(file), "--once")
    before = s3.client().get_object(Bucket=bucket, Key=STATE)["Body"].read()

    file.write_text(yaml.safe_dump_all([sink, secret]))
    with pytest.raises(PartFailed, match="NewerFormat"):
        older("run", "-f", str(file), "--once")
    assert s3.client().get_object(Bucket=bucket, Key=STATE)["Body"].read() == before
