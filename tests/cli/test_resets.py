"""A reset with the commands: check and plan announce it, run does it once, verify proves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.test_rollback import manifest
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server


@pytest.mark.slow
def test_a_reset_is_announced_done_once_and_verified(
    s3sink: CliProcess, kafka: KafkaBroker, s3: S3Server, bucket: str, topic_name: str, tmp_path: Path
) -> None:
    kafka.create_topic(topic_name)
    kafka.produce(topic_name, [(None, b'{"n": %d}' % n, None, None) for n in range(300)], 0)
    sink, secret = manifest(kafka, s3, bucket, topic_name)
    sink["spec"]["run"] = "Once"
    file, status = tmp_path / "sink.yaml", tmp_path / "status.json"
    file.write_text(yaml.safe_dump_all([sink, secret]))
    s3sink("run", "-f", str(file))

    sink["spec"]["reset"] = {"nonce": "again"}
    file.write_text(yaml.safe_dump_all([sink, secret]))
    assert "reset: again: the next run starts every topic again at Earliest" in s3sink("check", "-f", str(file))
    planned = s3sink("plan", "-f", str(file))
    assert "reset 'again': every topic begins at Earliest" in planned
    assert f"{topic_name}/0/{0:019d}-g2.parquet" in planned

    for _ in range(2):
        s3sink("run", "-f", str(file), "--status-file", str(status))
    assert json.loads(status.read_text())["reset"]["nonce"] == "again"
    assert "reset: again: already done" in s3sink("check", "-f", str(file))
    report = json.loads(s3sink("verify", "-f", str(file), "--json"))
    assert {name: report[name] for name in ("ok", "records", "objects", "unchecked", "missing", "duplicates")} == {
        "ok": True,
        "records": 600,
        "objects": 2,
        "unchecked": 1,
        "missing": 0,
        "duplicates": 0,
    }
