"""`s3sink check`: everything a sink needs, tested before it runs."""

from __future__ import annotations

import typer

from s3sink_api.exit_codes import DONE, FINAL
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def check(file: ManifestFile, secrets: SecretsFolder = None) -> None:
    """Tests store, permissions, Kafka, topics and schemas, one line each. Exit code 2 if one fails, not for `warn`."""
    from s3sink_job.cli.command_spark import open_admin, spark_session
    from s3sink_job.proof.preflight import preflight_checks

    ok = True
    with open_sink(file, secrets) as opened, spark_session(opened) as spark:
        results = preflight_checks(
            opened.sink, opened.bucket, opened.ledger, lambda: open_admin(opened, spark), opened.secrets
        )
        for result in results:
            typer.echo(f"{result.outcome:<4}  {result.what}: {result.text}")
            ok = ok and result.ok
    raise typer.Exit(DONE if ok else FINAL)
