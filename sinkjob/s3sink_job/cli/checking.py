"""`s3sink check` and `s3sink verify`: the commands that look and do not write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from pyspark.sql import SparkSession

from s3sink_job.cli.context import Opened, cluster_id
from s3sink_job.engine.check import check
from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.session import start_session
from s3sink_job.engine.verify import Report, verify
from s3sink_job.flush.state import Owner
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.properties import connection
from s3sink_job.stores.bucket import Bucket


def check_sink(given: Opened) -> bool:
    good = True
    with spark_of(given) as spark:
        findings = check(
            given.sink,
            given.bucket,
            lambda bucket: ledger_of(given, bucket),
            lambda: Admin(spark._jvm, connection(given.sink.spec.source, given.secrets)),
        )
        for finding in findings:
            typer.echo(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.what}: {finding.text}")
            good = good and finding.ok
    return good


def verify_sink(given: Opened, *, as_json: bool) -> bool:
    bucket = given.bucket()
    bucket.check()
    properties = connection(given.sink.spec.source, given.secrets)
    with spark_of(given) as spark:
        admin = Admin(spark._jvm, properties)
        report = verify(given.sink, given.secrets, bucket, ledger_of(given, bucket), spark, admin, properties)
        admin.close()
    typer.echo(json.dumps(report.to_doc(), indent=1) if as_json else _words(report))
    return report.ok


def ledger_of(given: Opened, bucket: Bucket) -> Ledger:
    metadata = given.sink.metadata
    owner = Owner(cluster_id(), metadata.namespace, metadata.name, metadata.uid)
    return Ledger(bucket, given.folder, owner, conditional=True)


@contextmanager
def spark_of(given: Opened) -> Iterator[SparkSession]:
    session = start_session(given.sink.spec, f"{given.sink.metadata.name}-check")
    try:
        yield session
    finally:
        session.stop()


def _words(report: Report) -> str:
    doc = report.to_doc()
    lines = [
        f"sink        {doc['sink']}",
        f"records     {doc['records']:,} in {doc['objects']:,} objects of {doc['partitions']} partitions",
        f"missing     {doc['missing']:,}",
        f"duplicates  {doc['duplicates']:,}",
        f"gaps        {doc['gaps']:,} offsets in {len(doc['gapRanges'])} recorded gaps",
        f"skipped     {doc['skipped']:,} bad records",
    ]
    if doc["unlisted"]:
        lines.append(f"unlisted    {doc['unlisted']:,} objects of this sink that no flush lists")
    if doc["pending"]:
        lines.append(f"pending     {doc['pending']:,} objects of a flush that is not committed yet")
    if doc["unchecked"]:
        lines.append(f"unchecked   {doc['unchecked']:,} objects of older generations, or gone from Kafka; rows counted")
    lines += [f"  - {finding}" for finding in doc["findings"]]
    lines.append("proved: every committed offset is in the bucket exactly once" if report.ok else "WRONG: see above")
    return os.linesep.join(lines)
