"""`s3sink takeover`: continues where another sink stopped."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Annotated

import typer

from s3sink_api.exit_codes import DONE, FAILED
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def takeover(
    file: ManifestFile,
    group: Annotated[str, typer.Option(help="The consumer group of the other sink: connect-<name of the connector>.")],
    connector: Annotated[
        str | None, typer.Option(help="Its name, for Lenses' index objects. Default: the group without connect-.")
    ] = None,
    indexes: Annotated[str, typer.Option(help="Where Lenses keeps them: connect.s3.indexes.name.")] = ".indexes",
    skip_objects: Annotated[
        bool, typer.Option("--skip-objects", help="Do not list objects; they show what would be written twice.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Prints the manifest with startingOffsets where another sink stopped. Reads only; the other sink must be stopped.

    The manifest goes to standard output, the report to standard error. Exit code 1 if offsets are missing or would be
    written twice.
    """
    from s3sink_job.cli.command_spark import open_admin, spark_session
    from s3sink_job.cli.takeover_text import manifest_with_start, takeover_text
    from s3sink_job.handover.handover import OtherSink, prepare_handover

    name = group.removeprefix("connect-") if connector is None else connector
    other = OtherSink(group, name, indexes.strip("/"), not skip_objects)
    with open_sink(file, secrets) as opened:
        bucket = opened.bucket()
        bucket.check()
        with spark_session(opened) as spark, closing(open_admin(opened, spark)) as admin:
            handover = prepare_handover(opened.sink, bucket, opened.ledger(bucket), admin, other)
    if as_json:
        typer.echo(json.dumps(handover.to_doc(), indent=1))
    else:
        typer.echo(manifest_with_start(file, handover), nl=False)
        typer.echo(takeover_text(handover), err=True)
    raise typer.Exit(DONE if handover.clean else FAILED)
