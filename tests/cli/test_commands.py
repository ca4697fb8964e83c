"""The `s3sink` commands as people and scripts use them: output, exit codes, and no secret anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.parts.jars import connector_dir
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

TEN_MISTAKES = {
    "apiVersion": "s3sink.dev/v1alpha1",
    "kind": "S3Sink",
    "metadata": {"name": "Not_A_Name"},
    "spec": {
        "sorce": {},
        "source": {"bootstrapServers": "", "topics": ["a", "a"], "isolation": "Sometimes"},
        "destination": {"bucket": "B", "prefix": "/x/", "partSize": "1Ki"},
        "format": {"type": "Json", "compression": {"codec": "Snappy"}},
        "flush": {"records": 0, "interval": "soon"},
    },
}


@dataclass
class Command:
    folder: Path
    outputs: list[str]

    def write(self, *documents: dict[str, Any]) -> Path:
        file = self.folder / "sink.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return file

    def __call__(self, name: str, file: Path, *more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "s3sink_job", name, "-f", str(file), *more],
            env={**os.environ, "S3SINK_JARS": str(connector_dir())},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        self.outputs.append(done.stdout + done.stderr)
        return done


@pytest.fixture
def s3sink(tmp_path: Path) -> Command:
    return Command(tmp_path, [])


def documents(kafka: KafkaBroker, s3: S3Server, bucket: str, topic: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A sink on the secured listener, and its Secrets, as for kubectl."""
    secure = kafka.secure
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    sink = {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": {"name": "commands"},
        "spec": {
            "source": {
                "bootstrapServers": secure.bootstrap,
                "topics": [topic],
                "propertiesFrom": [{"secretRef": {"name": "auth"}}],
            },
            "destination": {
                "bucket": bucket,
                "endpoint": s3.endpoint,
                "region": s3.region,
                "credentials": {"secretRef": {"name": "s3"}},
            },
            "format": {"type": "Json"},
        },
    }
    secrets = {
        "auth": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="{secure.username}" password="{secure.password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": secure.ca_pem,
        },
        "s3": {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": s3.secret_key},
    }
    return sink, secrets


def mounted(s3sink: Command, secrets: dict[str, Any]) -> Path:
    folder = s3sink.folder / "mounted"
    for name, data in secrets.items():
        (folder / name).mkdir(parents=True)
        for key, value in data.items():
            (folder / name / key).write_text(value)
    return folder


@pytest.mark.slow
def test_check_run_verify_find_and_gc_work_together_and_no_secret_shows(
    s3sink: Command, kafka: KafkaBroker, s3: S3Server, bucket: str, topic_name: str
) -> None:
    kafka.create_topic(topic_name, partitions=2)
    kafka.produce(topic_name, [(None, b"%d" % n, None, None) for n in range(500)])
    sink, secrets = documents(kafka, s3, bucket, topic_name)
    by_week = {"partitionBy": [{"type": "Time", "source": "Record", "format": "'year'=YYYY"}]}
    sink["spec"]["routes"] = [{"topicPattern": "none-.*", "destination": {"prefix": "by-week"}, "layout": by_week}]
    warning = "spec.routes[0].layout.partitionBy[0].format: YYYY is the year of the week"
    temporary = s3sink.folder / "temporary"
    temporary.mkdir()
    os.utime(temporary, (0, 0))
    file = s3sink.write(
        sink,
        *(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
            for name, data in secrets.items()
        ),
    )

    checked = s3sink("check", file)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert {line.split()[0] for line in checked.stdout.splitlines()} == {"ok", "warn"}
    (warned,) = [line for line in checked.stdout.splitlines() if line.startswith("warn  ")]
    assert warning in warned
    assert f"{topic_name} has 2 partitions and 500 offsets" in checked.stdout

    status = s3sink.folder / "status.json"
    places = ("--status-file", str(status), "--temporary-folder", str(temporary))
    run = s3sink("run", file, "--once", *places)
    assert run.returncode == 0, run.stderr
    logged = [json.loads(line) for line in run.stderr.splitlines()]
    assert any(entry["message"] == "flushed" and entry["records"] == 500 for entry in logged)
    assert [entry["level"] for entry in logged if entry["message"].startswith(warning)] == ["warning"]
    assert temporary.stat().st_mtime > 0, "Spark had its files there"
    assert json.loads(status.read_text())["phase"] == "Completed"

    proof = s3sink("verify", file, "--json")
    assert (proof.returncode, proof.stderr) == (0, "")
    found = json.loads(proof.stdout)
    assert {k: found[k] for k in ("records", "missing", "duplicates", "gaps")} == {
        "records": 500,
        "missing": 0,
        "duplicates": 0,
        "gaps": 0,
    }

    place = ("--topic", topic_name, "--partition", "0")
    held = s3sink("find", file, *place, "--offset", "0", "--json")
    assert (held.returncode, held.stderr) == (0, "")
    (record,) = json.loads(held.stdout)["records"]
    assert (record["row"], record["object"]["url"]) == (0, f"s3://{bucket}/{topic_name}/0/{0:019d}.jsonl")
    unwritten = s3sink("find", file, *place, "--offset", "1000")
    assert (unwritten.returncode, "not written yet" in unwritten.stdout) == (1, True)
    assert s3sink("find", file, *place).returncode == 2, "neither --offset nor --key"

    client = s3.client()
    client.create_multipart_upload(Bucket=bucket, Key=f"{topic_name}/0/{7:019d}.jsonl")
    assert "0 orphaned uploads" in s3sink("gc", file).stdout, "a young upload may be at work"
    dry = s3sink("gc", file, "--older-than", "0s", "--dry-run")
    assert f"would abort {topic_name}/0/{7:019d}.jsonl" in dry.stdout
    assert "1 orphaned uploads" in s3sink("gc", file, "--older-than", "0s").stdout
    assert client.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []

    everything = "".join(s3sink.outputs) + status.read_text()
    for secret in (kafka.secure.password, s3.secret_key):
        assert secret not in everything


@pytest.mark.slow
def test_gc_matches_route_patterns_as_java_does(s3sink: Command, kafka: KafkaBroker, s3: S3Server, bucket: str) -> None:
    """Python's regular expressions have neither letter classes nor quoted text."""
    sink, secrets = documents(kafka, s3, bucket, "shop.logs")
    sink["spec"]["source"]["topics"] = ["shop.logs", "shop-logs", "orders"]
    sink["spec"]["routes"] = [
        {"topicPattern": r"\Qshop.\E\p{L}+", "destination": {"prefix": "logs"}},
        {"topicPattern": r"\p{Lower}*+-.*", "destination": {"prefix": "more"}},
    ]
    uploads = [
        s3.client().create_multipart_upload(Bucket=bucket, Key=key)["Key"]
        for key in ("logs/shop.logs/0/1.jsonl", "more/shop-logs/0/1.jsonl", "orders/0/1.jsonl", "shop.logs/0/1.jsonl")
    ]

    done = s3sink(
        "gc", s3sink.write(sink), "--older-than", "0s", "--dry-run", "--secrets", str(mounted(s3sink, secrets))
    )

    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[2] for line in done.stdout.splitlines()[:-1]) == sorted(uploads[:3])


@pytest.mark.slow
def test_plan_prints_what_would_be_written_and_no_secret(
    s3sink: Command, kafka: KafkaBroker, s3: S3Server, bucket: str, topic_name: str
) -> None:
    kafka.create_topic(topic_name, partitions=2)
    kafka.produce(topic_name, [(None, b"%d" % n, None, None) for n in range(500)])
    sink, secrets = documents(kafka, s3, bucket, topic_name)
    done = s3sink("plan", s3sink.write(sink), "--json", "--secrets", str(mounted(s3sink, secrets)))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["state"], sum(p["lag"] for p in found["partitions"])) == (None, 500)
    assert s3.client().list_objects_v2(Bucket=bucket)["KeyCount"] == 0, "nothing is written"
    for secret in (kafka.secure.password, s3.secret_key):
        assert secret not in done.stdout + done.stderr


@pytest.mark.slow
def test_check_prints_one_line_for_each_failure(s3sink: Command, kafka: KafkaBroker, s3: S3Server) -> None:
    sink, secrets = documents(kafka, s3, "no-such-bucket", "no-such-topic")
    folder = mounted(s3sink, secrets)
    done = s3sink("check", s3sink.write(sink), "--secrets", str(folder))
    assert done.returncode == 2
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) == 2
    assert "no-such-bucket" in failed[0]
    assert "create the bucket" in failed[0]
    assert "no-such-topic does not exist" in failed[1]
    planned = s3sink("plan", s3sink.write(sink), "--secrets", str(folder))
    assert planned.returncode == 2
    assert planned.stderr.startswith("BucketMissing: ")


def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "s3sink_job", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == f"s3sink {version('s3sink')}"


def test_a_manifest_with_ten_mistakes_names_them_all_at_once(s3sink: Command) -> None:
    done = s3sink("run", s3sink.write(TEN_MISTAKES))
    assert done.returncode == 2
    for path in (
        "metadata.name",
        "spec.sorce",
        "spec.source.bootstrapServers",
        "spec.source.topics",
        "spec.source.isolation",
        "spec.destination.bucket",
        "spec.destination.prefix",
        "spec.destination.partSize",
        "spec.format.compression.codec",
        "spec.flush.records",
        "spec.flush.interval",
    ):
        assert path in done.stderr
    assert "did you mean" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_or_broken_file_is_named_in_the_error(s3sink: Command) -> None:
    missing = s3sink("run", s3sink.folder / ("deep-" * 20) / "absent.yaml")
    assert missing.returncode == 2
    assert "deep-/absent.yaml" in missing.stderr
    broken = s3sink.folder / "broken.yaml"
    broken.write_text("kind: [S3Sink\n")
    done = s3sink("verify", broken)
    assert done.returncode == 2
    assert "broken.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_secrets_left_by_a_killed_run_are_removed_by_the_next_one(
    s3sink: Command, kafka: KafkaBroker, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(s3sink.folder))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, alive = (s3sink.folder / f"s3sink-secrets-{pid}-x" for pid in (dead.pid, os.getpid()))
    for folder in (left, alive):
        folder.mkdir()
    sink, _ = documents(kafka, s3, "bucket", "topic")
    sink["spec"]["state"] = "Stopped"
    assert s3sink("run", s3sink.write(sink)).returncode == 0
    assert [f.name for f in s3sink.folder.glob("s3sink-secrets-*")] == [alive.name]


def test_a_stopped_sink_has_nothing_to_do(s3sink: Command, kafka: KafkaBroker, s3: S3Server) -> None:
    sink, _ = documents(kafka, s3, "bucket", "topic")
    sink["spec"]["state"] = "Stopped"
    done = s3sink("run", s3sink.write(sink))
    assert done.returncode == 0
    assert "Stopped" in done.stderr


@pytest.mark.parametrize("listen", ["8080", ":8080", "127.0.0.1:http"])
def test_an_invalid_listen_address_is_refused_before_anything_starts(
    s3sink: Command, kafka: KafkaBroker, s3: S3Server, listen: str
) -> None:
    sink, _ = documents(kafka, s3, "bucket", "topic")
    done = s3sink("run", s3sink.write(sink), "--listen", listen)
    assert done.returncode == 2
    assert "host:port" in done.stderr


def test_spark_starts_before_the_driver_is_imported() -> None:
    """`run` imports little before it starts Spark."""
    look = "import sys, s3sink_job.cli.app, s3sink_job.cli.early_start; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert "s3sink_job.spark.session" in loaded
    assert not {"s3sink_job.driver.driver", "s3sink_job.task.slice_writer", "duckdb", "pandas"} & set(loaded)
