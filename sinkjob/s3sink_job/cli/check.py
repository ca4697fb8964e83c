"""`s3sink check`: everything a sink needs, tested before it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from s3sink_api.exit_codes import DONE, FINAL
from s3sink_api.spec import check_file, warnings_of
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def check(
    file: ManifestFile,
    secrets: SecretsFolder = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="The manifest alone: no Kafka, no store, no Java. May hold several sinks.")
    ] = False,
) -> None:
    """Tests store, permissions, Kafka, topics and schemas, one line each. Exit code 2 if one fails, not for `warn`."""
    if offline:
        # Mistakes are a SpecError with file, line and column.
        for sink in check_file(file):
            typer.echo(f"ok    manifest: {sink.id} is valid")
            for found in warnings_of(sink.spec):
                typer.echo(f"warn  manifest: {found}")
        raise typer.Exit(DONE)
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
