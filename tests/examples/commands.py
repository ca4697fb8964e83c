"""`s3sink`, one command after another in a process of their own: starting Java is most of a short command's time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from s3sink_job.cli import main


class Commands:
    """A process beside this one, with an environment of its own."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def run(self, *arguments: str) -> None:
        assert self._process.stdin
        assert self._process.stdout
        before = self._log.stat().st_size
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        code = self._process.stdout.readline().strip()
        assert code == "0", f"s3sink {' '.join(arguments)}: {code or 'ended'}\n{self._log.read_text()[before:]}"


def _command(arguments: Sequence[str]) -> int:
    sys.argv = ["s3sink", *arguments]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    # What commands print goes to the log: this pipe is for their codes.
    with os.fdopen(os.dup(1), "w") as codes:
        os.dup2(2, 1)
        for line in sys.stdin:
            print(_command(json.loads(line)), file=codes, flush=True)
