"""A reset by the commands that people type: announced, carried out once, proved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from e2e.parts.commands import Commands
from e2e.parts.kafka import KafkaBroker
from e2e.parts.s3 import S3Server
from tests.cli.test_rollback import manifest


@pytest.mark.slow
def test_a_reset_is_announced_carried_out_once_and_proved(
    s3sink: Commands, kafka: KafkaBroker, s3: S3Server, bucket: str, topic_name: str, tmp_path: Path
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
    assert "reset: again: the next run starts every topic anew at Earliest" in s3sink("check", "-f", str(file))
    planned = s3sink("plan", "-f", str(file))
    assert "reset 'again': every topic begins at Earliest" in planned
    assert f"{topic_name}/0/{0:019d}-g2.parquet" in planned

    for _ in range(2):
        s3sink("run", "-f", str(file), "--status-file", str(status))
    assert json.loads(status.read_text())["reset"]["nonce"] == "again"
    assert "reset: again: carried out already" in s3sink("check", "-f", str(file))
    report = json.loads(s3sink("verify", "-f", str(file), "--json"))
    assert {name: report[name] for name in ("ok", "records", "objects", "unchecked", "missing", "duplicates")} == {
        "ok": True,
        "records": 600,
        "objects": 2,
        "unchecked": 1,
        "missing": 0,
        "duplicates": 0,
    }
