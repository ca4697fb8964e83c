"""`s3sink gc`: aborts orphaned uploads."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Annotated

import typer

from s3sink_api.spec import parse_duration
from s3sink_job.cli.kafka_on_demand import kafka_on_demand
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def gc(
    file: ManifestFile,
    older_than: Annotated[str, typer.Option(help="Keep younger uploads: a driver may be writing them.")] = "24h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the uploads, abort nothing.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Aborts orphaned uploads: old uploads of the sink's topics that no sink will complete.

    Also deletes staged dead letters that no flush will send.
    """
    from s3sink_job.proof.orphaned_uploads import known_topics, orphaned_letters, orphaned_uploads
    from s3sink_job.task.routing import Routing

    try:
        age = timedelta(seconds=parse_duration(older_than))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--older-than") from error
    count = 0
    with open_sink(file, secrets) as opened, ExitStack() as started:
        kafka = kafka_on_demand(opened, started)
        bucket = opened.bucket()
        bucket.check()
        topics = known_topics(bucket, opened.folder, opened.sink.spec.source.topics)
        routing = Routing(opened.sink.spec)
        # Patterns are Java's. Java starts only if a route has one.
        routing.find_routes(lambda pattern, topic: kafka().admin.matches(pattern, topic), topics)  # noqa: PLW0108
        for place, upload in orphaned_uploads(bucket, routing, topics, age):
            typer.echo(f"{'would abort' if dry_run else 'aborting'} {upload.key} of {upload.initiated:%Y-%m-%d %H:%M}")
            if not dry_run:
                place.abort_upload(upload.key, upload.upload_id)
            count += 1
        letters = list(orphaned_letters(bucket, opened.folder))
        for key in letters:
            typer.echo(f"{'would delete' if dry_run else 'deleting'} {key}")
            if not dry_run:
                bucket.delete(key)
    typer.echo(f"{count} orphaned uploads")
    if letters:
        typer.echo(f"{len(letters)} staged dead letters")
