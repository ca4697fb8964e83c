"""`s3sink`: the sink from a command line, with the very manifest that `kubectl apply` takes."""

from __future__ import annotations

import os
import sys

from s3sink_job.cli.app import app
from s3sink_job.errors import S3SinkError
from s3sink_job.report import logs
from s3sink_job.spec import SpecError

FINAL = 2
WIDE = "500"


def main() -> None:
    if not sys.stderr.isatty():
        # In a log or a pipe a box of 80 columns would break the names of files in two.
        os.environ.setdefault("COLUMNS", WIDE)
    try:
        app(standalone_mode=True)
    except SpecError as error:
        print(error, file=sys.stderr)
        sys.exit(FINAL)
    except S3SinkError as error:
        logs.log.error("%s: %s", error.reason, error)
        sys.exit(1 if error.retryable else FINAL)
