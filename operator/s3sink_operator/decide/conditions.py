"""Conditions as Kubernetes defines them: `lastTransitionTime` changes only with the status."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from s3sink_api.conditions import LONGEST_MESSAGE, READY
from s3sink_operator.values.objects import Document

UNREADABLE = "Unreadable"
"""Replaces a driver's reason that is not one CamelCase word."""
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,127}", re.ASCII)


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
            "lastTransitionTime": before["lastTransitionTime"] if before is not None and same else _timestamp(now),
            "observedGeneration": generation if self.generation is None else self.generation,
        }


class PhaseAndReady(NamedTuple):
    phase: str
    ready: Condition


def not_ready(reason: str, message: str) -> Condition:
    return Condition(READY, "False", reason, message)


def find(status: Document, type: str) -> Document | None:
    conditions: Sequence[Document] = status.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == type), None)


def parse_condition(document: Document) -> Condition:
    """From a report or an earlier status."""
    type, status, reason, message = (str(document[name]) for name in ("type", "status", "reason", "message"))
    word = reason if _REASON.fullmatch(reason) else UNREADABLE
    return Condition(type, status, word, message, document.get("observedGeneration"))


def _timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
