"""`s3sink`: the commands. They take the same manifest as `kubectl apply`."""

from __future__ import annotations

import os
import sys

from s3sink_api.exit_codes import FAILED, FINAL
from s3sink_api.spec import SpecError
from s3sink_job.base.errors import S3SinkError
from s3sink_job.cli.app import app
from s3sink_job.report import logs

WIDE = "500"


def main() -> None:
    if not sys.stderr.isatty():
        # In a log or a pipe a box of 80 columns would break file names in two.
        os.environ.setdefault("COLUMNS", WIDE)
    try:
        app(standalone_mode=True)
    except SpecError as error:
        print(error, file=sys.stderr)
        sys.exit(FINAL)
    except S3SinkError as error:
        logs.log.error("%s: %s", error.reason, error)
        sys.exit(FAILED if error.retryable else FINAL)
