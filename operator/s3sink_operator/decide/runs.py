"""The runs of a sink whose driver ends: the Job of `run: Once`, or the Jobs of a CronJob."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_api.labels import DRIVER
from s3sink_operator.decide.children.child_names import child_name
from s3sink_operator.values.objects import Child, Pod
from s3sink_operator.values.observation import Observation

JOB_COMPLETE, JOB_FAILED = "Complete", "Failed"
"""Results of a Job, as Kubernetes names them; empty while it runs."""


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
        """Of the newest run."""
        return _result(self.newest)

    @property
    def failed_before(self) -> Child | None:
        """The last run that ended, if it failed and another one is under way."""
        ended = [job for job in self.jobs if _result(job)]
        return ended[-1] if ended and not self.result and _result(ended[-1]) == JOB_FAILED else None

    @property
    def active(self) -> tuple[Child, ...]:
        return tuple(job for job in self.jobs if not _result(job))


def runs_of(observation: Observation) -> Runs | None:
    """By the objects there are, whatever the spec says now. None for a Deployment, or nothing."""
    name, uid = child_name(observation.resource.key.name), observation.resource.uid
    cron, job = (observation.child(kind, name) for kind in ("CronJob", "Job"))
    if cron is not None and cron.owner == uid:
        made = [c for c in observation.children if c.kind == "Job" and c.owner == cron.uid]
        return Runs(tuple(sorted(made, key=lambda c: (c.created, c.name))), cron)
    if job is not None and job.owner == uid:
        return Runs((job,))
    return None


def failure_reason(job: Child) -> str:
    """Kubernetes' reason for a failed Job, such as DeadlineExceeded."""
    found = (c for c in _conditions(job) if (c["type"], c["status"]) == (JOB_FAILED, "True"))
    return next((str(c.get("reason", "")) for c in found), "")


def pod_of_run(observation: Observation, job: Child) -> Pod | None:
    """The newest: a run has one pod for each attempt."""
    pods = [pod for pod in observation.pods_of(DRIVER) if pod.job == job.name]
    return max(pods, key=lambda pod: (pod.deleting is None, pod.created, pod.name), default=None)


def _result(job: Child | None) -> str:
    ends = (c for c in _conditions(job) if c["type"] in {JOB_COMPLETE, JOB_FAILED} and c["status"] == "True")
    return next((str(c["type"]) for c in ends), "")


def _conditions(job: Child | None) -> list[dict[str, str]]:
    return (job.document.get("status", {}).get("conditions") or []) if job else []
