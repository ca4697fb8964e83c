"""The `s3sink` program, put together from its commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from s3sink_job.cli.check import check
from s3sink_job.cli.convert import convert
from s3sink_job.cli.find import find
from s3sink_job.cli.gc import gc
from s3sink_job.cli.plan import plan
from s3sink_job.cli.replay import replay
from s3sink_job.cli.restore import restore
from s3sink_job.cli.run import run
from s3sink_job.cli.takeover import takeover
from s3sink_job.cli.verify import verify

app = typer.Typer(
    help="Copies Kafka topics to S3 objects, exactly once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run, check, plan, verify, find, replay, restore, gc, convert, takeover):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"s3sink {version('s3sink')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself. Typer runs their callbacks."""
