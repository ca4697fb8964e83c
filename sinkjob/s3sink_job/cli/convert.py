"""`s3sink convert`: manifests from the configuration of another sink."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from s3sink_api.exit_codes import FINAL

STANDARD_INPUT = "-"


def convert(
    input: Annotated[
        str, typer.Argument(metavar="FILE", help="The configuration: properties, JSON or YAML. - is standard input.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", file_okay=False, help="Write a folder for Kustomize instead.")
    ] = None,
    bootstrap_servers: Annotated[
        str, typer.Option(help="Kafka's addresses. A connector's configuration does not have them.")
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Fail if a key could not be carried over.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print manifests and report as JSON.")] = False,
) -> None:
    """Converts a Lenses, Confluent or Aiven S3 sink, a Redpanda Connect pipeline, Quix' FileSink or Airbyte's S3
    destination into manifests, and reports every key.

    Manifests go to standard output, the report to standard error. Exit code 2 if the input cannot be read, and with
    --strict if a key was lost.
    """
    from s3sink_job.convert.bad_input import BadInput
    from s3sink_job.convert.conversion import convert as convert_content
    from s3sink_job.convert.documents import LARGEST
    from s3sink_job.convert.output import conversion_json, conversion_text, folder_of, reports_text

    try:
        name, content = _content(input, LARGEST)
        conversion = convert_content(content, name, bootstrap_servers)
        if output is not None:
            _write(output, folder_of(conversion))
    except BadInput as error:
        typer.echo(f"{error.reason}: {error}", err=True)
        raise typer.Exit(FINAL) from None
    if as_json:
        typer.echo(conversion_json(conversion))
    elif output is None:
        typer.echo(conversion_text(conversion), nl=False)
        typer.echo(reports_text(conversion), err=True)
    else:
        typer.echo(reports_text(conversion))
    if strict and not conversion.whole:
        typer.echo("not everything was carried over, and --strict is set", err=True)
        raise typer.Exit(FINAL)


def _content(name: str, largest: int) -> tuple[str, bytes]:
    """No more than one byte above the limit is read."""
    from s3sink_job.convert.bad_input import BadInput, Place

    try:
        if name == STANDARD_INPUT:
            return "standard input", sys.stdin.buffer.read(largest + 1)
        with Path(name).open("rb") as file:
            return name, file.read(largest + 1)
    except OSError as error:
        raise BadInput(Place(name), f"cannot be read: {error.strerror}") from None


def _write(folder: Path, files: dict[str, str]) -> None:
    """Nothing is written if a file is there already: it may have been edited."""
    from s3sink_job.convert.bad_input import BadInput, Place

    there = [name for name in files if (folder / name).exists()]
    if there:
        raise BadInput(Place(str(folder)), f"already has {', '.join(there)}; choose a new folder, or remove them")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(Place(str(folder)), f"cannot be written: {error.strerror}") from None
