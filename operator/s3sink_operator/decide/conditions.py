"""Conditions as Kubernetes wants them: `lastTransitionTime` moves with the status alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from s3sink_operator.model import Document, Event

ACCEPTED, READY, FLUSHED, EXACT, CAUGHT_UP = "Accepted", "Ready", "LastFlushSucceeded", "ExactlyOnce", "CaughtUp"
TYPES = (ACCEPTED, READY, FLUSHED, EXACT, CAUGHT_UP)
OFFSETS = "OffsetsPublished"
"""Only of sinks that publish their offsets."""
UNREADABLE = "Unreadable"
"""In place of a reason that is not one word."""
SPEC_REFUSED = "SpecRefused"
"""Of Ready while Accepted is False."""
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,127}", re.ASCII)
LONGEST_MESSAGE = 4096
# Reasons that tell of something a person asked for, or that passes by itself.
_EXPECTED = frozenset(
    {
        *("Creating", "Starting", "Updating", "WaitingForFormerDriver", "WaitingForSchedule"),
        *("Stopping", "Stopped", "Pausing", "Paused"),
        *("Running", "Completed", "Waiting", "Throttled", "OpenTransaction", "Level"),
    }
)


@dataclass(frozen=True)
class Condition:
    type: str
    status: str
    reason: str
    message: str
    generation: int | None = None

    def document(self, before: Document | None, now: datetime, generation: int) -> dict[str, Any]:
        same = before is not None and before.get("status") == self.status
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message[:LONGEST_MESSAGE],
            "lastTransitionTime": before["lastTransitionTime"] if before is not None and same else iso(now),
            "observedGeneration": generation if self.generation is None else self.generation,
        }


def find(status: Document, type: str) -> Document | None:
    conditions: Sequence[Document] = status.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == type), None)


def read(document: Document) -> Condition:
    """One of a report or of an old status."""
    type, status, reason, message = (str(document[name]) for name in ("type", "status", "reason", "message"))
    word = reason if _REASON.fullmatch(reason) else UNREADABLE
    return Condition(type, status, word, message, document.get("observedGeneration"))


def iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def transitions(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    """An event for every condition that changed its status or its reason, and for every refused generation."""
    events = []
    refused = (find(after, READY) or {}).get("reason") == SPEC_REFUSED
    for new in after["conditions"]:
        old = find(before, new["type"])
        if new["type"] == ACCEPTED and refused:
            # The event of Ready has the same cause, and what goes on nevertheless.
            continue
        if old is not None and _what(old) == _what(new):
            continue
        if event := _event(new, old):
            events.append(event)
    restarts, earlier = (s.get("driver", {}).get("restarts", 0) for s in (after, before))
    if restarts > earlier and after["driver"].get("pod") == before.get("driver", {}).get("pod"):
        end = after["driver"].get("lastExit", {})
        word = f", {end['reason']}" if end.get("reason") not in {None, "Error", "Completed"} else ""
        code = f" after exit code {end['code']}{word}" if "code" in end else ""
        events.append(Event("Warning", "DriverRestarted", f"the driver was started again{code}"))
    reset = after.get("reset")
    if reset and reset != before.get("reset"):
        text = f"reset {reset.get('nonce')!r}: every topic began anew at {reset.get('time')}"
        events.append(Event("Normal", "Reset", text))
    return tuple(events)


def _what(condition: Document) -> tuple[Any, ...]:
    """What an event would say again as long as it is the same."""
    reason = condition.get("reason")
    return condition.get("status"), reason, condition.get("observedGeneration") if reason == SPEC_REFUSED else None


def _event(new: Document, old: Document | None) -> Event | None:
    kind, status, reason = new["type"], new["status"], new["reason"]
    good = status == "True" or reason in _EXPECTED
    if kind == READY:
        return Event("Normal" if good else "Warning", reason, new["message"])
    if status == "False" and not good:
        return Event("Warning", reason, new["message"])
    if status == "True" and old is not None and old.get("status") == "False" and old.get("reason") not in _EXPECTED:
        return Event("Normal", kind, new["message"])
    return None
