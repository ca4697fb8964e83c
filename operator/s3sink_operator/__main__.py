"""`python -m s3sink_operator`."""

from __future__ import annotations

import logging
import os

from s3sink_operator.process.startup import main

if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # A thread that still waits for the API server must not delay the exit: its request is safe to repeat.
    os._exit(code)
