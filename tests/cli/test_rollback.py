"""`helm rollback` for one sink: the frozen release takes over what today's wrote, with a real broker and S3 server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.parts.jars import connector_dir
from e2e.parts.kafka import KafkaBroker
from e2e.parts.s3 import S3Server
from e2e.released import published

STATE = ".s3sink/default/rolled/state.json"


@dataclass(frozen=True)
class Versions:
    """The `s3sink` commands of two releases, on one manifest."""

    file: Path
    older: Path

    def today(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(arguments, dict(os.environ))

    def before(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(arguments, {**os.environ, "PYTHONPATH": str(self.older / "sinkjob")})

    def _run(self, arguments: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        command, *more = arguments
        done = subprocess.run(
            [sys.executable, "-m", "s3sink_job", command, "-f", str(self.file), *more],
            # Most of a short run is Java's compiler: without its second stage it takes two thirds of the time.
            env={**environment, "S3SINK_JARS": str(connector_dir()), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
            cwd=self.older,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


def manifest(kafka: KafkaBroker, s3: S3Server, bucket: str, topic: str) -> list[dict[str, Any]]:
    """Of Parquet, the default, whose columns the state knows."""
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
def versions(tmp_path: Path) -> Versions:
    (tree,) = (release.tree for release in published() if release.version == "0.1.0")
    with tarfile.open(tree) as archive:
        archive.extractall(tmp_path / "0.1.0", filter="data")
    return Versions(tmp_path / "sink.yaml", tmp_path / "0.1.0")


def lose_what_was_committed(s3: S3Server, bucket: str, topic: str) -> None:
    """As if the driver had ended between commit and publishing, and a lifecycle rule had aborted the upload then."""
    client = s3.client()
    state = json.loads(client.get_object(Bucket=bucket, Key=STATE)["Body"].read())
    client.put_object(Bucket=bucket, Key=STATE, Body=json.dumps({**state, "publishing": state["last"]}).encode())
    (found,) = client.list_objects_v2(Bucket=bucket, Prefix=f"{topic}/")["Contents"]
    client.delete_object(Bucket=bucket, Key=found["Key"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_rolled_back_sink_repairs_goes_on_and_verifies_what_todays_release_wrote(
    versions: Versions, kafka: KafkaBroker, s3: S3Server, bucket: str, topic_name: str
) -> None:
    kafka.create_topic(topic_name)
    kafka.produce(topic_name, [(None, b'{"n": %d}' % n, None, None) for n in range(300)], 0)
    versions.file.write_text(yaml.safe_dump_all(manifest(kafka, s3, bucket, topic_name)))
    versions.today("run", "--once")
    lose_what_was_committed(s3, bucket, topic_name)
    kafka.produce(topic_name, [(None, b'{"n": %d, "new": true}' % n, None, None) for n in range(200)], 0)

    versions.before("run", "--once")
    older = json.loads(versions.before("verify", "--json").stdout)
    assert (older["ok"], older["records"], older["missing"], older["objects"]) == (True, 500, 0, 2)

    again = json.loads(versions.today("verify", "--json").stdout)
    assert (again["ok"], again["records"], again["missing"], again["objects"]) == (True, 500, 0, 2)
