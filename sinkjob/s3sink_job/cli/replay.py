"""`s3sink replay`: writes dead letters into the sink's output."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from s3sink_api.exit_codes import DONE, FAILED
from s3sink_job.cli.kafka_on_demand import kafka_on_demand
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder
from s3sink_job.cli.times import milliseconds

if TYPE_CHECKING:
    from s3sink_job.replay.report import ReplayReport


def replay(
    file: ManifestFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would become of each dead letter, write nothing.")
    ] = False,
    topic: Annotated[list[str] | None, typer.Option(help="Only dead letters of this topic. Repeatable.")] = None,
    reason: Annotated[list[str] | None, typer.Option(help="Only those with this reason. Repeatable.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only records from this time on, such as 2026-11-18T03:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only records before this time.")] = None,
    ignore_others: Annotated[
        bool, typer.Option("--ignore-others", help="Pass over records of others in a topic of dead letters.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Writes dead letters into the sink's output, by the manifest as it is now. May run beside the sink.

    Exit code 1 if some stay dead letters.
    """
    times = milliseconds(since, "--since"), milliseconds(until, "--until")
    from s3sink_job.cli.replay_text import replay_text
    from s3sink_job.replay.letters import Selection
    from s3sink_job.replay.replay import Replay

    selection = Selection(tuple(topic or ()), tuple(reason or ()), *times)
    with open_sink(file, secrets) as opened, ExitStack() as started:
        bucket = opened.bucket()
        bucket.check()
        work = Replay(
            *(opened.sink, opened.secrets, bucket, opened.ledger(bucket), kafka_on_demand(opened, started)),
            selection=selection,
            ignore_others=ignore_others,
            on_progress=_show_progress,
        )
        report = work.preview() if dry_run else work.run()
    typer.echo(json.dumps(report.to_doc(), indent=1) if as_json else replay_text(report))
    raise typer.Exit(DONE if report.complete else FAILED)


def _show_progress(report: ReplayReport) -> None:
    done = report.replayed + len(report.writable) + len(report.staying) + report.filtered + report.lost
    typer.echo(f"{done:,} of {report.outstanding:,} dead letters", err=True)
