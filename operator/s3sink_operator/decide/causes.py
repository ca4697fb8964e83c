"""Why a pod does not do what it should, in a word people can look up and a sentence they can act on."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_operator.model import Exit, Pod

_LONGEST_LINE = 300
_CANNOT_START = frozenset(
    {
        *("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    }
)
_SAME = {"ErrImagePull": "ImagePullBackOff"}


@dataclass(frozen=True)
class Cause:
    reason: str
    message: str
    phase: str = "Failed"


def cause_of(pod: Pod) -> Cause | None:
    """None for a pod that is well, or on its way."""
    if pod.unschedulable:
        return Cause("FailedScheduling", f"pod {pod.name} finds no node: {pod.unschedulable}", "Pending")
    if pod.waiting in _CANNOT_START:
        reason = _SAME.get(pod.waiting, pod.waiting)
        return Cause(reason, f"pod {pod.name} cannot start: {_line(pod.waiting_message) or pod.waiting}")
    if pod.waiting == "CrashLoopBackOff":
        return Cause("CrashLoopBackOff", f"pod {pod.name} ends again and again: {exit_text(pod.last_exit)}")
    if not pod.ready and pod.last_exit is not None and pod.last_exit.reason == "OOMKilled":
        message = f"pod {pod.name} ran out of memory and starts again: raise spec.spark.driver.memory"
        return Cause("OOMKilled", message, "Degraded")
    if not pod.ready and pod.last_exit is not None and pod.phase == "Running":
        return Cause("DriverRestarting", f"pod {pod.name} starts again: {exit_text(pod.last_exit)}", "Degraded")
    if pod.phase == "Failed" and pod.ended is None:
        return Cause("PodFailed", f"pod {pod.name} failed before its container ran")
    return None


def exit_text(end: Exit | None) -> str:
    if end is None:
        return "how it ended is not known"
    word = "" if end.reason in {"", "Error", "Completed"} else f", {end.reason}"
    last = _line(end.message)
    return f"it ended with code {end.code}{word}" + (f": {last}" if last else "")


def _line(message: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_LINE] if lines else ""
