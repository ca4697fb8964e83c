"""`s3sink run`: the command line of the driver.

It imports little and starts Spark at once. What the driver needs is imported while Spark starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from s3sink_api import environment
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder, TemporaryFolder


def run(
    file: ManifestFile,
    once: Annotated[
        bool, typer.Option("--once", help="Write everything up to the end offsets seen now, then exit.")
    ] = False,
    secrets: SecretsFolder = None,
    listen: Annotated[
        str,
        typer.Option(
            envvar=environment.LISTEN, help="Address of /status, /metrics and /healthz. Port 0: any free port."
        ),
    ] = "127.0.0.1:0",
    grace: Annotated[
        float, typer.Option(envvar=environment.GRACE, help="Seconds to finish a flush after SIGTERM.")
    ] = 30.0,
    status_file: Annotated[
        Path | None,
        typer.Option(envvar=environment.STATUS_FILE, help="File for the last status, as JSON, when the run ends."),
    ] = None,
    run_id: Annotated[
        str,
        typer.Option(
            envvar=environment.RUN_ID,
            help="With mode: FullRefresh: resumes the run with this id, or begins it. Default: a new run each time.",
        ),
    ] = "",
    json_logs: Annotated[
        bool | None, typer.Option("--json-logs/--short-logs", help="Default: JSON unless on a terminal.")
    ] = None,
    temporary_folder: TemporaryFolder = None,
) -> None:
    """Copies the topics of a manifest to its bucket."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise typer.BadParameter(f"{listen!r} is not host:port, such as 127.0.0.1:8080", param_hint="--listen")
    with open_sink(file, secrets) as opened:
        if once:
            opened = opened.run_once()
        if opened.sink.spec.state == "Stopped":
            typer.echo("spec.state is Stopped: nothing to do", err=True)
            return
        from s3sink_job.cli.early_start import start_early

        session = start_early(opened.sink)
        from s3sink_job.cli.driver_process import run_driver

        code = run_driver(
            *(opened, session),
            listen=(host, int(port)),
            grace=grace,
            json_logs=json_logs,
            status_file=status_file,
            run_id=run_id,
        )
    raise typer.Exit(code)
