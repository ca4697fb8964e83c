"""Why a pod does not run, as a reason that people can look up and a sentence that they can act on."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from s3sink_api.conditions import DEGRADED, FAILED, PENDING
from s3sink_api.labels import DRIVER
from s3sink_operator.values.objects import ContainerExit, Pod

_LONGEST_LINE = 300
CANNOT_START = frozenset(
    {
        *("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    }
)
SYNONYMS = {"ErrImagePull": "ImagePullBackOff"}
_SECRET_MISSING = re.compile(r"""secret ["'][^"']+["'] not found|key \S+ in Secret""", re.IGNORECASE)
# Kubernetes has many reasons for a pod that it removes.
REMOVED = {
    **dict.fromkeys(("Evicted", "EvictionByEvictionAPI", "TerminationByKubelet"), "Evicted"),
    **dict.fromkeys(("PreemptionByScheduler", "Preempting"), "Preempted"),
    **dict.fromkeys(
        ("NodeLost", "DeletionByTaintManager", "DeletionByPodGC", "NodeShutdown", "Terminated"), "NodeLost"
    ),
}


@dataclass(frozen=True)
class PodProblem:
    reason: str
    message: str
    phase: str = FAILED


def problem_of(pod: Pod) -> PodProblem | None:
    """None for a pod that runs, or that is still starting."""
    if pod.unschedulable:
        text = f"no node can take pod {pod.name}: {_last_line(pod.unschedulable)}"
        return PodProblem("FailedScheduling", text, PENDING)
    if pod.waiting in CANNOT_START:
        missing = _SECRET_MISSING.search(pod.waiting_message)
        reason = "SecretMissing" if missing else SYNONYMS.get(pod.waiting, pod.waiting)
        return PodProblem(reason, f"pod {pod.name} cannot start: {_last_line(pod.waiting_message) or pod.waiting}")
    if not pod.ready and pod.ended is None and out_of_memory(pod.last_exit):
        phase = FAILED if pod.waiting == "CrashLoopBackOff" else DEGRADED
        return PodProblem("OOMKilled", f"{out_of_memory_text(pod)}; it is restarting", phase)
    if pod.waiting == "CrashLoopBackOff":
        return PodProblem("CrashLoopBackOff", f"pod {pod.name} keeps crashing: {exit_text(pod.last_exit)}")
    if not pod.ready and pod.last_exit is not None and pod.phase == "Running":
        return PodProblem("DriverRestarting", f"pod {pod.name} is restarting: {exit_text(pod.last_exit)}", DEGRADED)
    if pod.phase == "Failed" and pod.ended is None:
        text = f"pod {pod.name} failed before its container started{_removal_reason(pod)}"
        return removal_of(pod) or PodProblem("PodFailed", text)
    return None


def removal_of(pod: Pod) -> PodProblem | None:
    """Set for a pod that Kubernetes removed or is removing. Its controller creates a replacement."""
    if pod.reason not in REMOVED:
        return None
    text = f"Kubernetes removed pod {pod.name}, a replacement follows{_removal_reason(pod)}"
    return PodProblem(REMOVED[pod.reason], text, DEGRADED)


def out_of_memory(end: ContainerExit | None) -> bool:
    return end is not None and end.reason == "OOMKilled"


def out_of_memory_text(pod: Pod) -> str:
    role = "driver" if pod.role == DRIVER else "executor"
    return f"pod {pod.name} ran out of memory; raise spec.spark.{role}.memory"


def exit_text(end: ContainerExit | None) -> str:
    if end is None:
        return "exit code unknown"
    reason = "" if end.reason in {"", "Error", "Completed"} else f" ({end.reason})"
    last = last_log_line(end)
    return f"exit code {end.code}{reason}" + (f": {last}" if last else "")


def last_log_line(end: ContainerExit) -> str:
    return _last_line(end.message)


def _removal_reason(pod: Pod) -> str:
    words = [word for word in (pod.reason, _last_line(pod.reason_message)) if word]
    return f": {': '.join(words)}" if words else ""


def _last_line(message: str) -> str:
    """The last line that is not empty; of a JSON log line its message and error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return _log_message(lines[-1])[:_LONGEST_LINE] if lines else ""


def _log_message(line: str) -> str:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        # Kubernetes keeps only the end of a long line. If that holds a traceback, its last line is the error.
        return line.rpartition("\\n")[2].removesuffix("}").removesuffix('"') if "\\n" in line else line
    if not isinstance(entry, dict):
        return line
    exception = str(entry.get("exception", "")).strip().splitlines()
    words = (entry.get("message"), entry.get("cause"), entry.get("error"), exception[-1] if exception else "")
    return ": ".join(str(word) for word in words if word)
