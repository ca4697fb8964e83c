"""Errors of a manifest: validators raise a Refusal, and `parse` collects all as field errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldError:
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class SpecError(Exception):
    """The manifest has to be changed; a retry cannot help."""

    retryable = False
    reason = "InvalidSpec"

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[FieldError, ...]]]:
        return SpecError, (self.errors,)


VALIDATED = object()


class Refusal(ValueError):
    """Raised by a validator.

    `at` leads from the validated field to the field with the error. `hint` comes after the value. `show` is off if the
    value may be a secret, or the message has it already. `value` is the value to show, if not the validated one.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        at: tuple[str | int, ...] = (),
        show: bool = True,
        value: object = VALIDATED,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.at = at
        self.show = show
        self.value = value

    def below(self, *steps: str | int, value: object = VALIDATED) -> Refusal:
        """The same for an outer section: `steps` lead from there to here."""
        shown = self.value if value is VALIDATED else value
        return Refusal(self.message, hint=self.hint, at=(*steps, *self.at), show=self.show, value=shown)


def alternatives(names: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    *others, end = names
    return f"{', '.join(others)} {last} {end}" if others else end
