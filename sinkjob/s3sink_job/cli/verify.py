"""`s3sink verify`: the proof that every committed record was written once."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Annotated

import typer

from s3sink_api.exit_codes import DONE, FAILED
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def verify(
    file: ManifestFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Proves from state, manifests, objects and Kafka that every record was written once. Exit code 1 if not."""
    from s3sink_job.cli.command_spark import open_admin, spark_session
    from s3sink_job.cli.verify_text import verify_text
    from s3sink_job.proof.verify import verify as verify_sink

    with open_sink(file, secrets) as opened:
        bucket = opened.bucket()
        bucket.check()
        with spark_session(opened) as spark, closing(open_admin(opened, spark)) as admin:
            report = verify_sink(
                opened.sink, opened.secrets, bucket, opened.ledger(bucket), spark, admin, opened.connection()
            )
    typer.echo(json.dumps(report.to_doc(), indent=1) if as_json else verify_text(report))
    raise typer.Exit(DONE if report.ok else FAILED)
