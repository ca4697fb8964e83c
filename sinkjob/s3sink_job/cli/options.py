"""Options that every command takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from s3sink_api import environment

ManifestFile = Annotated[Path, typer.Option("-f", "--file", exists=True, dir_okay=False, help="The S3Sink manifest.")]
SecretsFolder = Annotated[
    Path | None,
    typer.Option(
        "--secrets",
        envvar=environment.SECRETS,
        help="Folder of mounted Secrets, <folder>/<secret>/<key>. Default: the Secret documents in the manifest file.",
    ),
]
