"""The condition OnSchedule of a scheduled sink: whether a run that was due has started."""

from __future__ import annotations

from datetime import datetime, timedelta

from s3sink_api.conditions import ON_SCHEDULE
from s3sink_operator.decide.assessment import Assessment
from s3sink_operator.decide.children.workloads import LATEST_START
from s3sink_operator.decide.conditions import Condition
from s3sink_operator.decide.cron_times import cron_times
from s3sink_operator.values.objects import Child
from s3sink_operator.values.observation import Observation

LATE = timedelta(minutes=5)
"""So much later than its time a run counts as missed."""


def on_schedule(observation: Observation, assessment: Assessment) -> Condition | None:
    """None for a sink that is not scheduled, or whose schedule is suspended."""
    cron = _cron(assessment)
    if cron is None or assessment.runs is None:
        return None
    missed = cron_times(assessment.schedule).last(_looked_at(observation, cron), observation.now - LATE)
    if missed is None:
        return Condition(ON_SCHEDULE, "True", "OnTime", "every run has started that was due")
    active = assessment.runs.active
    why = f"run {active[0].name} is still under way" if active else f"see `kubectl describe cronjob {cron.name}`"
    text = f"the run of {missed:%Y-%m-%dT%H:%M:%SZ} has not started: {why}"
    return Condition(ON_SCHEDULE, "False", "RunMissed", text)


def missed_run_deadlines(observation: Observation, assessment: Assessment) -> list[float]:
    """Seconds until the next run counts as missed: no event of the API server follows then."""
    if _cron(assessment) is None:
        return []
    due = cron_times(assessment.schedule).next(observation.now - LATE)
    return [] if due is None else [(due + LATE - observation.now).total_seconds() + 1]


def _cron(assessment: Assessment) -> Child | None:
    if assessment.runs is None or assessment.suspended or assessment.stopped or not assessment.schedule:
        return None
    return assessment.runs.cron


def _looked_at(observation: Observation, cron: Child) -> datetime:
    """Since when no run was started. A run that is more than a day late is not started any more."""
    known = cron.document.get("status", {}).get("lastScheduleTime") or cron.created
    oldest = observation.now - timedelta(seconds=LATEST_START)
    return max(datetime.fromisoformat(known), oldest) if known else oldest
