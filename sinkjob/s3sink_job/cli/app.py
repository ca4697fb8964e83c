"""The commands. Each says what it does in one line, and ends with a code that scripts can use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from s3sink_job.cli.context import Opened, cluster_id, opened
from s3sink_job.spec import parse_duration

app = typer.Typer(
    help="Kafka topics to S3 objects, exactly once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

File = Annotated[Path, typer.Option("-f", "--file", exists=True, dir_okay=False, help="The S3Sink manifest.")]
SecretsFolder = Annotated[
    Path | None,
    typer.Option(
        "--secrets",
        envvar="S3SINK_SECRETS",
        help="Folder of mounted Secrets, <folder>/<secret>/<key>; else Secret documents of the manifest's file.",
    ),
]


@app.command()
def run(
    file: File,
    once: Annotated[bool, typer.Option("--once", help="Drain to the end offsets seen now, then end.")] = False,
    secrets: SecretsFolder = None,
    listen: Annotated[
        str, typer.Option(envvar="S3SINK_LISTEN", help="Address of /status, /metrics, /healthz; port 0: any.")
    ] = "127.0.0.1:0",
    grace: Annotated[
        float, typer.Option(envvar="S3SINK_GRACE", help="Seconds to finish a flush in after SIGTERM.")
    ] = 30.0,
    status_file: Annotated[
        Path | None,
        typer.Option(envvar="S3SINK_STATUS_FILE", help="Where the last status goes, as JSON, when the run ends."),
    ] = None,
    json_logs: Annotated[
        bool | None, typer.Option("--json-logs/--short-logs", help="Default: JSON unless on a terminal.")
    ] = None,
) -> None:
    """Copies the topics of a manifest to its bucket."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise typer.BadParameter(f"{listen!r} is not host:port, such as 127.0.0.1:8080", param_hint="--listen")
    with opened(file, secrets) as given:
        if once and not given.sink.spec.ends:
            given = replace(given, sink=replace(given.sink, spec=replace(given.sink.spec, run="Once")))
        if given.sink.spec.state == "Stopped":
            typer.echo("spec.state is Stopped: nothing to do", err=True)
            return
        from s3sink_job.cli.early import start_early

        session = start_early(given.sink)
        from s3sink_job.cli.running import run_sink

        code = run_sink(
            given,
            session,
            listen=(host, int(port)),
            grace=grace,
            json_logs=json_logs,
            cluster=cluster_id(),
            status_file=status_file,
        )
    raise typer.Exit(code)


@app.command()
def check(file: File, secrets: SecretsFolder = None) -> None:
    """Tries bucket, permissions, conditional writes, Kafka and topics: one line each. Exit code 2 if any fails."""
    from s3sink_job.cli.checking import check_sink

    with opened(file, secrets) as given:
        good = check_sink(given)
    raise typer.Exit(0 if good else 2)


@app.command()
def plan(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Shows what would be written now and why, and writes nothing. Exit code 2 if that cannot be said."""
    from s3sink_job.cli.planning import plan_sink

    with opened(file, secrets) as given:
        good = plan_sink(given, as_json=as_json)
    raise typer.Exit(0 if good else 2)


@app.command()
def verify(
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Proves from state, manifests, objects and Kafka that every record is there once. Exit code 1 if not."""
    from s3sink_job.cli.checking import verify_sink

    with opened(file, secrets) as given:
        good = verify_sink(given, as_json=as_json)
    raise typer.Exit(0 if good else 1)


@app.command()
def gc(
    file: File,
    older_than: Annotated[str, typer.Option(help="Leave younger uploads alone: they may be at work.")] = "24h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List them only.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Aborts uploads of the topics' objects that no sink's state is about to complete."""
    from s3sink_job.engine.gc import orphans, topics_of
    from s3sink_job.engine.routing import Routing

    try:
        age = timedelta(seconds=parse_duration(older_than))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--older-than") from error
    count = 0
    with opened(file, secrets) as given:
        bucket = given.bucket()
        bucket.check()
        topics = topics_of(bucket, given.folder, given.sink.spec.source.topics)
        routing = Routing(given.sink.spec)
        with _matching(given) as matches:
            routing.look(matches, topics)
        for place, upload in orphans(bucket, routing, topics, age):
            typer.echo(f"{'would abort' if dry_run else 'aborting'} {upload.key} of {upload.initiated:%Y-%m-%d %H:%M}")
            if not dry_run:
                place.abort_upload(upload.key, upload.upload_id)
            count += 1
    typer.echo(f"{count} orphaned uploads")


@contextmanager
def _matching(given: Opened) -> Iterator[Callable[[str, str], bool]]:
    """Whether a topic matches a pattern of a route. Those are Java's, which takes seconds to start: only if need be."""
    if not any(route.topic_pattern for route in given.sink.spec.routes):
        yield lambda pattern, topic: False
        return
    from s3sink_job.cli.checking import spark_of
    from s3sink_job.kafka.admin import Admin
    from s3sink_job.kafka.properties import connection

    with spark_of(given) as spark:
        admin = Admin(spark._jvm, connection(given.sink.spec.source, given.secrets))
        try:
            yield admin.matches
        finally:
            admin.close()
