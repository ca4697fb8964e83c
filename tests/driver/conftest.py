"""Fixtures of tests that run a whole driver."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.task import flush_job
from s3sink_job.task.slice_task import SliceTask


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[SliceTask]:
    """The tasks of all jobs that run."""
    found: list[SliceTask] = []
    run_job = flush_job.run_job

    def noting(spark: Any, task: SliceTask, *others: Any, **more: Any) -> Any:
        found.append(task)
        return run_job(spark, task, *others, **more)

    monkeypatch.setattr(flush_job, "run_job", noting)
    return found
