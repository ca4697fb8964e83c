"""Starts a measured process, sends it orders, and measures its process tree meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.process_tree import Tree, Watch
from tools.parts.jars import connector_dir
from tools.parts.processes import die_with_parent

ENDS_WITHIN = 30.0


class ChildFailed(Exception):
    """A case could not be measured; the message has its error or the end of its log."""


class Child:
    """`with Child(order, log) as child: answer, watch = child.measured({...})`."""

    def __init__(self, order: Mapping[str, Any], log: Path, module: str = "benchmarks.measured_process") -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                env={**os.environ, "S3SINK_JARS": str(connector_dir())},
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, no lock taken
            )
        self.tree = Tree(self._process.pid)
        self._tell(order)

    def measured(self, order: Mapping[str, Any]) -> tuple[dict[str, Any], Watch]:
        with Watch(self.tree) as watch:
            self._tell(order)
            answer = self._hear()
        return answer, watch

    def _tell(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])
            raise ChildFailed(f"the measured process ended with {self._process.wait()}:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        if "failure" in answer:
            raise ChildFailed(answer["failure"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Without orders the process ends by itself, and its JVM with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(ENDS_WITHIN if error is None else 0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
