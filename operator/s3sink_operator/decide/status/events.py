"""Kubernetes events for what changed from one status to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from s3sink_api.conditions import ACCEPTED, READY, SPEC_REFUSED
from s3sink_operator.decide.conditions import find
from s3sink_operator.values.decision import Event
from s3sink_operator.values.objects import Document

# A person asked for it, or it passes by itself: no warning.
_EXPECTED_REASONS = frozenset(
    {
        *("Creating", "Starting", "Updating", "WaitingForFormerDriver", "WaitingForSchedule"),
        *("Stopping", "Stopped", "Pausing", "Paused"),
        *("Running", "Completed", "Waiting", "Throttled", "OpenTransaction", "Level"),
    }
)

LETTERS_EVERY = timedelta(hours=1)
"""Events about dead letters."""


def events_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    return (
        *(*_conditions(before, after), *_restart(before, after), *_reset(before, after)),
        *(*_refresh(before, after), *_letters(before, after)),
    )


def _conditions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    """For every condition with another status or reason, and for every refused generation."""
    refused = (find(after, READY) or {}).get("reason") == SPEC_REFUSED
    for new in after["conditions"]:
        old = find(before, new["type"])
        if new["type"] == ACCEPTED and refused:
            # The event of Ready has the same cause, and also says what still runs.
            continue
        if old is not None and _identity(old) == _identity(new):
            continue
        if event := _event(new, old):
            yield event


def _restart(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    restarts, earlier = (s.get("driver", {}).get("restarts", 0) for s in (after, before))
    if restarts > earlier and after["driver"].get("pod") == before.get("driver", {}).get("pod"):
        end = after["driver"].get("lastExit", {})
        reason = f" ({end['reason']})" if end.get("reason") not in {None, "Error", "Completed"} else ""
        code = f" after exit code {end['code']}{reason}" if "code" in end else ""
        yield Event("Warning", "DriverRestarted", f"the driver restarted{code}")


def _reset(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    reset = after.get("reset")
    if reset and reset != before.get("reset"):
        text = f"reset {reset.get('nonce')!r} done at {reset.get('time')}: every topic starts a new generation"
        yield Event("Normal", "Reset", text)


def _refresh(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    """When a run begins, a warning of what it will replace; and what became of it."""
    old, new = (status.get("refresh") or {} for status in (before, after))
    run, phase = new.get("run"), new.get("phase")
    if not run or (old.get("run"), old.get("phase")) == (run, phase):
        return
    if old.get("run") != run and new.get("replacedObjects"):
        counts = f"{new['replacedObjects']:,} objects with {new.get('replacedRecords', 0):,} records"
        size = f"{new.get('replacedBytes', 0):,} bytes"
        yield Event("Warning", "FullRefresh", f"run {run} will replace {counts}, {size}, once everything is written")
    if phase == "Done":
        kept = new.get("unremovedObjects")
        left = f"; the store refused to delete {kept:,} of the replaced objects" if kept else ""
        written = f"{new.get('objects', 0):,} objects with {new.get('records', 0):,} records"
        yield Event("Warning" if kept else "Normal", "Refreshed", f"run {run} is current: {written}{left}")


def _letters(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    """At most one an hour, counted by the times of the dead letters."""
    old, new = (status.get("retry", {}).get("lastDeadLetter") or {} for status in (before, after))
    times = [_time(letter.get("time")) for letter in (old, new)]
    if times[1] is None or (times[0] is not None and times[1] - times[0] < LETTERS_EVERY):
        return
    count = after["retry"].get("deadLetteredRecords")
    where = f"{new.get('topic')}-{new.get('partition')} offset {new.get('offset')}"
    text = f"{count} records became dead letters since the first start; the last one: {where}: {new.get('message')}"
    yield Event("Warning", "DeadLetter", text)


def _time(text: Any) -> datetime | None:
    """None if it is none."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _identity(condition: Document) -> tuple[Any, ...]:
    """An event follows when this changes."""
    reason = condition.get("reason")
    return condition.get("status"), reason, condition.get("observedGeneration") if reason == SPEC_REFUSED else None


def _event(new: Document, old: Document | None) -> Event | None:
    type, status, reason = new["type"], new["status"], new["reason"]
    good = status == "True" or reason in _EXPECTED_REASONS
    if type == READY:
        return Event("Normal" if good else "Warning", reason, new["message"])
    if status == "False" and not good:
        return Event("Warning", reason, new["message"])
    was_bad = old is not None and old.get("status") == "False" and old.get("reason") not in _EXPECTED_REASONS
    return Event("Normal", type, new["message"]) if status == "True" and was_bad else None
