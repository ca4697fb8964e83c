"""What `s3sink check` says about the columns of schemas, before any record is written."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_api.spec import parse
from s3sink_job.base.secrets import Secrets
from s3sink_job.proof.registry_check import registry_checks

TIMES = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; repeated Line lines = 2; }
message Line { google.protobuf.Timestamp at = 1; }
"""
COLUMNS = "id int64, lines list<item: struct<at: timestamp[ns, tz=UTC]>>"
WARNING = (
    "spec.source.value.schema: Spark cannot open Parquet objects with timestamps in nanoseconds unless it is "
    "configured for them; format.parquet.timestamps: Micros writes microseconds"
)


def checked(**format: Any) -> list[tuple[str, bool, str]]:
    source = {"bootstrapServers": "k:1", "topics": ["t"], "value": {"format": "Protobuf", "schema": TIMES}}
    spec = {"source": source, "destination": {"bucket": "lake"}, "format": format}
    document = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "s"}, "spec": spec}
    return list(registry_checks(parse(document).spec, Secrets({})))


def test_nanoseconds_that_spark_cannot_open_are_a_warning() -> None:
    schema = ("schema", True, f"spec.source.value.schema: {COLUMNS}")
    assert checked() == [schema, ("timestamps", True, WARNING)]
    assert checked(envelope={"enabled": True}) == [schema, ("timestamps", True, WARNING)]


@pytest.mark.parametrize(
    "format",
    [{"parquet": {"timestamps": "Micros"}}, {"type": "Avro"}, {"envelope": {"enabled": True, "value": False}}],
    ids=str,
)
def test_there_is_no_warning_where_no_object_has_nanoseconds(format: Any) -> None:
    assert [what for what, _, _ in checked(**format)] == ["schema"]
