"""`s3sink restore` as people run it: by manifests, into secured brokers, from another sink's objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_commands import documents
from tests.harness import consume_whole
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.processes import PartFailed
from tools.parts.s3 import S3Server

pytestmark = pytest.mark.spark

NOW = 1_700_000_000_000


def manifest(folder: Path, name: str, sink: dict[str, Any], secrets: dict[str, Any]) -> str:
    wanted = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": n}, "stringData": d} for n, d in secrets.items()
    ]
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump_all([{**sink, "metadata": {"name": name}}, *wanted]))
    return str(file)


def test_records_go_to_another_cluster_with_its_own_secrets(
    kafka: KafkaBroker, s3: S3Server, bucket: str, topic_name: str, tmp_path: Path, s3sink: CliProcess
) -> None:
    sink, secrets = documents(kafka, s3, bucket, topic_name)
    sink["spec"]["source"] |= {"key": {"format": "Bytes"}, "value": {"format": "Bytes"}}
    sink["spec"]["format"] = {"type": "Parquet", "columns": {"meta": "Kafka"}}
    secured = manifest(tmp_path, "backup", sink, secrets)
    plain = {"bootstrapServers": kafka.bootstrap, "topics": [topic_name]}
    own = {**sink, "spec": {**sink["spec"], "source": {**sink["spec"]["source"], **plain, "propertiesFrom": []}}}
    kafka.create_topic(topic_name, 2)
    for partition in range(2):
        kafka.produce(topic_name, [(b"k", b"\xff%d" % n, [("h", None)], NOW + n) for n in range(20)], partition)
    target = f"{topic_name}-restored"
    here = manifest(tmp_path, "backup-plain", own, secrets)
    s3sink("run", "--once", "-f", here)

    how = ("--from", "default/backup-plain", "--rate", "10Mi", "--tasks", "2")
    report = json.loads(s3sink("restore", "-f", secured, "--to-topic", target, *how, "--json"))
    assert (report["ok"], report["records"], report["sink"]) == (True, 40, "local/default/backup-plain")
    found, wanted = (
        [(m.partition, m.key, m.value, m.headers, m.timestamp) for m in consume_whole(kafka.bootstrap, topic)]
        for topic in (target, topic_name)
    )
    assert found == wanted

    again = ("--from", "elsewhere/default/backup-plain", "--to-topic", target, "--to-cluster", secured)
    with pytest.raises(PartFailed, match=r"ForeignState.*--from local/default/backup-plain"):
        s3sink("restore", "-f", here, *again)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--offsets", "x"), "is not START:END"),
        (("--offsets", "9:3"), "has no offset in it"),
        (("--rate", "fast"), "--rate"),
        (("--rate", "10"), "at least 1Ki"),
        (("--since", "yesterday"), "is not a time"),
        (("--from", "orders"), "NAMESPACE/NAME"),
        (("--run-id", "a/b"), "letters, digits"),
    ],
)
def test_a_mistyped_option_is_refused(
    options: tuple[str, str],
    words: str,
    s3: S3Server,
    bucket: str,
    kafka: KafkaBroker,
    tmp_path: Path,
    s3sink: CliProcess,
) -> None:
    file = manifest(tmp_path, "sink", *documents(kafka, s3, bucket, "none"))
    with pytest.raises(PartFailed, match=words):
        s3sink("restore", "-f", file, *options)
