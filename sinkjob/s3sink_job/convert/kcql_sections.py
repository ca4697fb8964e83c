"""What one KCQL statement says, as sections of a manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from s3sink_job.convert.kcql import Statement
from s3sink_job.convert.report import Outcome
from s3sink_job.convert.smts import Headers


@dataclass
class Sections:
    """What one statement says, with the account of its parts."""

    statement: Statement
    label: str
    headers: Headers
    key_has_fields: bool = False
    destination: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)
    format: dict[str, Any] = field(default_factory=dict)
    flush: dict[str, Any] = field(default_factory=dict)
    entries: list[tuple[str, Outcome, str]] = field(default_factory=list)
    clauses: dict[str, str] = field(default_factory=dict)
    """Clauses of old releases that say what is a property today."""

    def enter(self, part: str, outcome: Outcome, text: str) -> None:
        self.entries.append((f"{self.label} {self.clauses.get(part, part)}", outcome, text))


def taken(sections: Sections, properties: dict[str, str], name: str, read: Callable[[str], Any]) -> Any:
    """The value of a property, which counts as handled; None if it is not set or not right."""
    if name not in properties:
        return None
    try:
        return read(properties.pop(name))
    except ValueError as error:
        sections.enter(f"PROPERTIES {name}", "Lost", f"the value {error}; the default is used")
        return None
