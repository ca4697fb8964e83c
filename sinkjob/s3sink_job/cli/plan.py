"""`s3sink plan`: what a driver would write if it ran now."""

from __future__ import annotations

import json
import threading
from typing import Annotated, Any

import typer

from s3sink_api.exit_codes import FINAL
from s3sink_job.base.errors import S3SinkError
from s3sink_job.cli.opened_sink import OpenedSink, cluster_id, open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def plan(
    file: ManifestFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Shows what would be written now, and why. Writes nothing. Exit code 2 if it cannot make a plan."""
    from s3sink_job.cli.plan_text import plan_text

    with open_sink(file, secrets) as opened:
        try:
            doc = _preview(opened)
        except S3SinkError as error:
            typer.echo(f"{error.reason}: {error}", err=True)
            raise typer.Exit(FINAL) from error
    typer.echo(json.dumps(doc, indent=1) if as_json else plan_text(doc))


def _preview(opened: OpenedSink) -> dict[str, Any]:
    from s3sink_job.cli.command_spark import spark_session
    from s3sink_job.driver.driver import Driver
    from s3sink_job.driver.preview import preview
    from s3sink_job.report.status import Reporter

    bucket = opened.bucket()
    bucket.check()
    with spark_session(opened) as spark:
        driver = Driver(opened.sink, opened.secrets, spark, Reporter(), cluster=cluster_id(), stop=threading.Event())
        try:
            return preview(driver, opened.ledger(bucket)).to_doc()
        finally:
            driver.close()
