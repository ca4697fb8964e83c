"""What `s3sink convert` refuses to read."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_job.base.errors import FinalError


@dataclass(frozen=True)
class Place:
    """A position in the input, counted from 1. A line of 0 is unknown."""

    name: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number]
        return ":".join([self.name, *numbers])


class BadInput(FinalError):
    """The message begins with the place. It never has the text there, which may be a secret."""

    reason = "BadInput"

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place
