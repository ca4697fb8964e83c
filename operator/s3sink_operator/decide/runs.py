"""The runs of a sink whose driver ends: the Job of `run: Once`, the Jobs that a CronJob made."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_operator.decide.pods import child_name
from s3sink_operator.model import DRIVER, Child, Observed, Pod

_ENDS = frozenset({"Complete", "Failed"})


@dataclass(frozen=True)
class Runs:
    jobs: tuple[Child, ...]
    """Oldest first."""
    cron: Child | None = None

    @property
    def newest(self) -> Child | None:
        return self.jobs[-1] if self.jobs else None

    @property
    def result(self) -> str:
        """Complete or Failed, once the newest is."""
        return job_result(self.newest)

    @property
    def failed_before(self) -> Child | None:
        """The run before the one that is under way, if that failed."""
        ended = [job for job in self.jobs if job_result(job)]
        return ended[-1] if ended and not self.result and job_result(ended[-1]) == "Failed" else None

    @property
    def active(self) -> tuple[Child, ...]:
        return tuple(job for job in self.jobs if not job_result(job))


def runs_of(observed: Observed) -> Runs | None:
    """Whatever the spec says now; None if what is there does not end."""
    name, uid = child_name(observed.resource.key.name), observed.resource.uid
    cron, job = (observed.child(kind, name) for kind in ("CronJob", "Job"))
    if cron is not None and cron.owner == uid:
        made = [c for c in observed.children if c.kind == "Job" and c.owner == cron.uid]
        return Runs(tuple(sorted(made, key=lambda c: (c.created, c.name))), cron)
    if job is not None and job.owner == uid:
        return Runs((job,))
    return None


def job_result(job: Child | None) -> str:
    """Complete or Failed, once it is; empty before."""
    return next((str(c["type"]) for c in _conditions(job) if c["type"] in _ENDS and c["status"] == "True"), "")


def job_failure(job: Child) -> str:
    """Kubernetes' own word for it, such as DeadlineExceeded."""
    found = (c for c in _conditions(job) if (c["type"], c["status"]) == ("Failed", "True"))
    return next((str(c.get("reason", "")) for c in found), "")


def pod_of_run(observed: Observed, job: Child) -> Pod | None:
    """The newest: a run has as many pods as it had tries."""
    pods = [pod for pod in observed.pods_of(DRIVER) if pod.job == job.name]
    return max(pods, key=lambda pod: (pod.deleting is None, pod.created, pod.name), default=None)


def _conditions(job: Child | None) -> list[dict[str, str]]:
    return (job.document.get("status", {}).get("conditions") or []) if job else []
