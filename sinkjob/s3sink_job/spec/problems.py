"""What is wrong with a manifest, as data: validators raise refusals, `parse` collects field errors."""

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
    """A person has to change the manifest; trying again cannot help."""

    retryable = False
    reason = "InvalidSpec"

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[FieldError, ...]]]:
        return SpecError, (self.errors,)


class Refusal(ValueError):
    """Raised inside a validator. `at` leads from the validated field to the one to blame; `hint` comes
    after the value; `show` is off where the message says it all or the value may be a secret."""

    def __init__(self, message: str, *, hint: str = "", at: tuple[str | int, ...] = (), show: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.at = at
        self.show = show
