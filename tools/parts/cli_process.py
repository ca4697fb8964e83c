"""Runs `s3sink` commands one after another in one process: starting Java takes most of a short command's time.

with CliProcess(folder / "log") as s3sink:
    print(s3sink("verify", "-f", "sink.yaml", "--json"))
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from tools.parts.jars import connector_dir
from tools.parts.processes import PartFailed


class CliProcess:
    def __init__(self, log: Path, **environment: str) -> None:
        self._log, self._environment = log, environment
        self._turn = Lock()

    def __enter__(self) -> Self:
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.parts.cli_process"],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "S3SINK_JARS": str(connector_dir()), **self._environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def __call__(self, *arguments: str, **environment: str) -> str:
        """The standard output of a command; PartFailed if its exit code is not 0.

        `environment` is for the command only: Java and the Python workers keep the environment of their start.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            before = self._log.stat().st_size
            try:
                print(json.dumps([arguments, environment]), file=self._process.stdin, flush=True)
                code, said = json.loads(self._process.stdout.readline() or '["no", ""]')
            except BaseException:
                # After a timeout, say: the next command must not read the late answer of this one.
                self._process.kill()
                raise
        if code != 0:
            log = self._log.read_bytes()[before:].decode(errors="replace")
            raise PartFailed(f"s3sink {' '.join(arguments)} ended with exit code {code}:\n{said}{log}")
        return str(said)


def _run(arguments: Sequence[str]) -> int:
    from s3sink_job.cli import main

    sys.argv = ["s3sink", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    # What Java and its children print goes to the log: the pipe is for answers only.
    os.dup2(2, 1)
    own = dict(os.environ)
    for line in sys.stdin:
        arguments, environment = json.loads(line)
        os.environ.update(environment)
        with redirect_stdout(io.StringIO()) as said:
            code = _run(arguments)
        os.environ.clear()
        os.environ.update(own)
        print(json.dumps([code, said.getvalue()]), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
