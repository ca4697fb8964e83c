"""Why a run failed: what its driver reported last, or what Kubernetes says about its pod and Job."""

from __future__ import annotations

from typing import NamedTuple

from s3sink_api.conditions import LAST_FLUSH_SUCCEEDED, READY
from s3sink_operator.decide.conditions import find, parse_condition
from s3sink_operator.decide.runs import failure_reason
from s3sink_operator.decide.status.pod_problems import exit_text, out_of_memory, out_of_memory_text, removal_of
from s3sink_operator.values.driver_report import report_in
from s3sink_operator.values.objects import Child, ContainerExit, Pod

_DEADLINE = "DeadlineExceeded"
"""Kubernetes' reason for a failed Job that says more than the exit code of its pod."""


class RunFailure(NamedTuple):
    reason: str
    message: str


def failure_of(job: Child, pod: Pod | None) -> RunFailure:
    reason = failure_reason(job)
    removal = removal_of(pod) if pod else None
    if pod is None or pod.ended is None:
        if removal:
            return RunFailure(removal.reason, removal.message)
        return RunFailure("DriverFailed", f"Job {job.name} failed ({reason or 'Failed'})")
    if reason == _DEADLINE:
        return RunFailure(reason, f"Job {job.name} took longer than its deadline allows: {exit_text(pod.ended)}")
    if out_of_memory(pod.ended):
        return RunFailure("OOMKilled", out_of_memory_text(pod))
    last = last_report_of(pod.ended)
    if removal and not last.reason:
        return RunFailure(removal.reason, removal.message)
    return RunFailure(last.reason or "DriverFailed", last.message)


def last_report_of(end: ContainerExit) -> RunFailure:
    """From the report that the driver left behind. Without one there is only the exit code, and no reason."""
    report = report_in(end.message)
    if report is None:
        return RunFailure("", exit_text(end))
    failed, ready = find(report, LAST_FLUSH_SUCCEEDED), find(report, READY)
    reason = parse_condition(failed).reason if failed and failed["status"] == "False" else ""
    message = parse_condition(ready).message if ready and ready["status"] == "False" else exit_text(end)
    return RunFailure(reason, message)
