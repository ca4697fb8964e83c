"""Options that every command takes."""

from __future__ import annotations

import os
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


def _temporary_folder(folder: Path | None) -> Path | None:
    """For Spark and for what is spilled: both read this variable."""
    if folder is not None:
        os.environ["SPARK_LOCAL_DIRS"] = str(folder.resolve())
    return folder


TemporaryFolder = Annotated[
    Path | None,
    typer.Option(
        "--temporary-folder",
        exists=True,
        file_okay=False,
        writable=True,
        callback=_temporary_folder,
        help="Folder for temporary files and spilled data. Default: SPARK_LOCAL_DIRS, or the system's.",
    ),
]
