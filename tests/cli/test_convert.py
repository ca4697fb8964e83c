"""`s3sink convert` and `s3sink check --offline` as people and scripts use them: no Java, no network, soon done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from s3sink_api.spec import check_file

PROPERTIES = """name=orders
connector.class=io.confluent.connect.s3.S3SinkConnector
topics=orders
s3.bucket.name=lake
s3.region=eu-central-1
format.class=io.confluent.connect.s3.format.json.JsonFormat
flush.size=1000
storage.class=io.confluent.connect.s3.storage.S3Storage
aws.secret.access.key=S3CR3T
"""


def s3sink(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "s3sink_job", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "orders.properties"
    made.write_text(PROPERTIES)
    return made


def test_manifests_go_to_standard_output_and_the_report_to_standard_error(file: Path) -> None:
    done = s3sink("convert", str(file), "--bootstrap-servers", "kafka:9092")
    assert done.returncode == 0
    sink, secret = yaml.safe_load_all(done.stdout)
    assert sink["spec"]["source"]["bootstrapServers"] == "kafka:9092"
    assert secret["stringData"] == {"AWS_SECRET_ACCESS_KEY": ""}
    assert "Confluent S3 sink orders: 9 keys, 9 carried over exactly" in done.stderr
    assert "S3CR3T" not in done.stdout + done.stderr


def test_standard_input_and_json(file: Path) -> None:
    done = s3sink("convert", "-", "--json", given=PROPERTIES)
    doc = json.loads(done.stdout)
    assert doc["whole"]
    assert doc["sinks"][0]["report"]["system"] == "Confluent S3 sink"


def test_a_folder_for_kustomize_is_written_once(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert s3sink("convert", str(file), "-o", str(folder)).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        *("kustomization.yaml", "orders-secrets.yaml", "orders.yaml", "report.txt"),
    ]
    assert [sink.metadata.name for sink in check_file(folder / "orders.yaml")] == ["orders"]
    # Empty Secrets must not replace real ones.
    assert yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"] == ["orders.yaml"]
    (folder / "orders.yaml").write_text("edited")
    again = s3sink("convert", str(file), "-o", str(folder))
    assert again.returncode == 2
    assert "already has" in again.stderr
    assert (folder / "orders.yaml").read_text() == "edited"


def test_strict_fails_if_a_key_is_lost(file: Path) -> None:
    assert s3sink("convert", str(file), "--strict").returncode == 0
    file.write_text(f"{PROPERTIES}s3.wan.mode=true\n")
    assert s3sink("convert", str(file)).returncode == 0
    done = s3sink("convert", str(file), "--strict")
    assert done.returncode == 2
    assert "s3.wan.mode: accelerated endpoints are not supported" in done.stderr


def test_bad_input_ends_with_2_and_its_place(tmp_path: Path) -> None:
    file = tmp_path / "large.properties"
    file.write_bytes(b"a=" + b"x" * 10_000_000)
    done = s3sink("convert", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"BadInput: {file}: has more than")
    assert s3sink("convert", str(tmp_path / "none")).returncode == 2


def test_check_offline_names_file_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "sink.yaml"
    file.write_text(
        "apiVersion: s3sink.dev/v1alpha1\nkind: S3Sink\nmetadata: {name: orders}\nspec:\n  source:\n"
        "    bootstrapServers: kafka:9092\n    topics: [a, a]\n  destination:\n    bucket: lake\n    colour: red\n"
        "  layout:\n    partitionBy:\n      - {type: Topic}\n      - {type: Field}\n  flush: {records: 0}\n"
    )
    done = s3sink("check", "--offline", "-f", str(file))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    places = [line.split(": ")[0].removeprefix(f"{file}:") for line in lines]
    assert places == ["7:17", "10:5", "14:9", "15:11"]
    assert lines[0].endswith("spec.source.topics[1]: names the topic a a second time")


def test_check_offline_takes_several_sinks_and_bad_yaml(tmp_path: Path) -> None:
    one = "apiVersion: s3sink.dev/v1alpha1\nkind: S3Sink\nmetadata: {name: NAME}\nspec:\n"
    one += "  source: {bootstrapServers: k:1, topics: [t]}\n  destination: {bucket: lake}\n"
    file = tmp_path / "sinks.yaml"
    file.write_text(f"{one.replace('NAME', 'first')}---\n{one.replace('NAME', 'second')}")
    done = s3sink("check", "--offline", "-f", str(file))
    assert done.stdout == "ok    manifest: default/first is valid\nok    manifest: default/second is valid\n"
    file.write_text("a: [1,\n")
    assert s3sink("check", "--offline", "-f", str(file)).stderr.startswith(f"{file}:2:1: is not YAML")


def test_check_offline_refuses_a_deep_expression_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "sink.yaml"
    file.write_text(
        "apiVersion: s3sink.dev/v1alpha1\nkind: S3Sink\nmetadata: {name: orders}\nspec:\n"
        "  source: {bootstrapServers: k:1, topics: [t]}\n  destination: {bucket: lake}\n"
        f"  transform:\n    where: {'a + ' * 900}a > 1\n"
    )
    done = s3sink("check", "--offline", "-f", str(file))
    assert done.returncode == 2
    assert done.stderr.startswith(f"{file}:8:5: spec.transform.where: is nested too deeply at position 1: ")


def test_check_offline_is_done_within_a_second(file: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "sink.yaml"
    manifest.write_text(s3sink("convert", str(file)).stdout)

    def seconds() -> float:
        """Of the processor: the machine may be busy with other tests."""
        before = os.times()
        assert s3sink("check", "--offline", "-f", str(manifest)).returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(3)) < 1.0


@pytest.mark.parametrize("command", ["convert", "check"])
def test_neither_imports_spark_boto3_or_arrow(command: str, file: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "sink.yaml"
    manifest.write_text(s3sink("convert", str(file)).stdout)
    arguments = ["convert", str(file)] if command == "convert" else ["check", "--offline", "-f", str(manifest)]
    program = (
        "import sys; from s3sink_job.cli import main; sys.argv = ['s3sink', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in ('pyspark', 'boto3', 'pyarrow', 'duckdb') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
