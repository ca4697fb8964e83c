"""Why a pod does not do what it should, in a word people can look up and a sentence they can act on."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from s3sink_operator.model import DRIVER, Exit, Pod

_LONGEST_LINE = 300
_CANNOT_START = frozenset(
    {
        *("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    }
)
_SAME = {"ErrImagePull": "ImagePullBackOff"}
_NO_SECRET = re.compile(r"""secret ["'][^"']+["'] not found|key \S+ in Secret""", re.IGNORECASE)
# Kubernetes has many words for a pod that had to go.
_REMOVED = {
    **dict.fromkeys(("Evicted", "EvictionByEvictionAPI", "TerminationByKubelet"), "Evicted"),
    **dict.fromkeys(("PreemptionByScheduler", "Preempting"), "Preempted"),
    **dict.fromkeys(
        ("NodeLost", "DeletionByTaintManager", "DeletionByPodGC", "NodeShutdown", "Terminated"), "NodeLost"
    ),
}


@dataclass(frozen=True)
class Cause:
    reason: str
    message: str
    phase: str = "Failed"


def cause_of(pod: Pod) -> Cause | None:
    """None for a pod that is well, or on its way."""
    if pod.unschedulable:
        return Cause("FailedScheduling", f"pod {pod.name} finds no node: {_line(pod.unschedulable)}", "Pending")
    if pod.waiting in _CANNOT_START:
        reason = "SecretMissing" if _NO_SECRET.search(pod.waiting_message) else _SAME.get(pod.waiting, pod.waiting)
        return Cause(reason, f"pod {pod.name} cannot start: {_line(pod.waiting_message) or pod.waiting}")
    if not pod.ready and pod.ended is None and out_of_memory(pod.last_exit):
        phase = "Failed" if pod.waiting == "CrashLoopBackOff" else "Degraded"
        return Cause("OOMKilled", f"pod {pod.name} ran out of memory and starts again: {more_memory(pod)}", phase)
    if pod.waiting == "CrashLoopBackOff":
        return Cause("CrashLoopBackOff", f"pod {pod.name} ends again and again: {exit_text(pod.last_exit)}")
    if not pod.ready and pod.last_exit is not None and pod.phase == "Running":
        return Cause("DriverRestarting", f"pod {pod.name} starts again: {exit_text(pod.last_exit)}", "Degraded")
    if pod.phase == "Failed" and pod.ended is None:
        return removed(pod) or Cause("PodFailed", f"pod {pod.name} failed before its container ran{_why(pod)}")
    return None


def removed(pod: Pod) -> Cause | None:
    """A pod that Kubernetes took away, or takes away: nobody's fault, and another follows."""
    if pod.reason not in _REMOVED:
        return None
    return Cause(_REMOVED[pod.reason], f"pod {pod.name} was taken away, and another follows{_why(pod)}", "Degraded")


def out_of_memory(end: Exit | None) -> bool:
    return end is not None and end.reason == "OOMKilled"


def more_memory(pod: Pod) -> str:
    return f"raise spec.spark.{'driver' if pod.role == DRIVER else 'executor'}.memory"


def exit_text(end: Exit | None) -> str:
    if end is None:
        return "how it ended is not known"
    word = "" if end.reason in {"", "Error", "Completed"} else f", {end.reason}"
    last = _line(end.message)
    return f"it ended with code {end.code}{word}" + (f": {last}" if last else "")


def _why(pod: Pod) -> str:
    words = [word for word in (pod.reason, _line(pod.reason_message)) if word]
    return f": {': '.join(words)}" if words else ""


def _line(message: str) -> str:
    """The last line that says something; what it says, where it is one of the driver's own."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return _said(lines[-1])[:_LONGEST_LINE] if lines else ""


def _said(line: str) -> str:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        # Kubernetes keeps the end of a long line: with an exception's trace in it, that is what it says.
        return line.rpartition("\\n")[2].removesuffix("}").removesuffix('"') if "\\n" in line else line
    if not isinstance(entry, dict):
        return line
    exception = str(entry.get("exception", "")).strip().splitlines()
    words = (entry.get("message"), entry.get("cause"), entry.get("error"), exception[-1] if exception else "")
    return ": ".join(str(word) for word in words if word)
