"""Quantities (`64Mi`) as bytes, durations (`1h30m`) as seconds, RFC 3339 as points in time."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated

from pydantic import AwareDatetime, PlainSerializer, ValidationInfo

from s3sink_api.cel import Cel, fits, matches
from s3sink_api.spec import regexes
from s3sink_api.spec.checked_types import LONGEST_AMOUNT, NUMBER_OR_TEXT, TEXT, Checked, after, before
from s3sink_api.spec.field_errors import Refusal

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_UNITS = {"": 1, **_BINARY, **_DECIMAL}
_MILLIS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_LARGEST = 2**63 - 1
MOST = "1Ei"
"""The most bytes. Kubernetes reads anything above 8Ei as 8Ei."""
_QUANTITY_MESSAGE = "must be a quantity such as 64Mi"
_DURATION_MESSAGE = "must be a duration such as 50ms, 30s, 15m or 1h30m"
_CPU_MESSAGE = "must be an amount of CPU such as 500m or 2"
_INSTANT_MESSAGE = "must be a time from 1970 on, with its zone, such as 2026-01-01T00:00:00Z"


def parse_quantity(value: object) -> int:
    """The number of bytes, rounded up like in Kubernetes. Raises a Refusal that says what would be right."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Refusal(_QUANTITY_MESSAGE)
    if isinstance(value, int):
        size = Fraction(value)
    else:
        if len(value) > LONGEST_AMOUNT or not re.fullmatch(regexes.QUANTITY, value, re.ASCII):
            raise Refusal(_QUANTITY_MESSAGE, hint=_quantity_hint(value))
        number = value.rstrip("KMGTPEik")
        size = Fraction(number) * _UNITS[value[len(number) :]]
    if not 0 <= size <= _LARGEST:
        raise Refusal(f"must be between 0 and {_LARGEST} bytes")
    return math.ceil(size)


def _quantity_hint(value: str) -> str:
    """For `64mb`, `64 MiB` and other common spellings."""
    loose = re.fullmatch(r"\s*([0-9]+)\s*([kmgtpe])i?b?\s*", value, re.IGNORECASE | re.ASCII)
    if not loose or len(value) > LONGEST_AMOUNT:
        return ""
    return f"write {loose[1]}{loose[2].upper()}i"


def format_quantity(size: int) -> str:
    for unit, factor in reversed(_BINARY.items()):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_duration(value: object) -> float:
    """The number of seconds. Raises a Refusal that says what would be right."""
    if not isinstance(value, str) or len(value) > LONGEST_AMOUNT:
        raise Refusal("must be a duration with its unit, such as 15m")
    if not re.fullmatch(regexes.DURATION, value, re.ASCII):
        days = re.fullmatch(r"([0-9]{1,9})d", value, re.ASCII)
        hint = f"days are written in hours: {int(days[1]) * 24}h" if days else ""
        raise Refusal(_DURATION_MESSAGE, hint=hint)
    parts = re.findall(r"([0-9.]+)(h|ms|m|s)", value)
    millis = sum((Fraction(number) * _MILLIS[unit] for number, unit in parts), Fraction(0))
    if millis > _LARGEST // 10**6:
        raise Refusal("must be shorter than 292 years")
    return int(millis) / 1000


def format_duration(seconds: float) -> str:
    rest = round(seconds * 1000)
    text = ""
    for unit, millis in _MILLIS.items():
        count, rest = divmod(rest, millis)
        if count:
            text += f"{count}{unit}"
    return text or "0s"


def _read_duration(value: object, info: ValidationInfo) -> object:
    # Python code and `dataclasses.replace` hand over seconds; a document never does.
    if info.mode == "python" and isinstance(value, float | int):
        return float(value)
    return parse_duration(value)


def _read_instant(value: object, info: ValidationInfo) -> object:
    if info.mode == "python" and isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not re.fullmatch(regexes.INSTANT, value, re.ASCII):
        raise Refusal(_INSTANT_MESSAGE)
    instant = datetime.fromisoformat(value.upper())
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _read_cpu(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > LONGEST_AMOUNT or not re.fullmatch(regexes.CPU, value, re.ASCII):
        hint = f"write {math.ceil(value * 1000)}m" if isinstance(value, float) and 0 < value < 10**6 else ""
        raise Refusal(_CPU_MESSAGE, hint=hint)
    return value


def size_between(low: str, high: str = MOST) -> Checked:
    least, most = parse_quantity(low), parse_quantity(high)

    def check(size: int) -> int:
        if size < least:
            raise Refusal(f"must be at least {low}")
        if size > most:
            raise Refusal(f"must be at most {high}")
        return size

    def holds(it: str) -> str:
        size = f"quantity({it}).compareTo(quantity"
        return f"!{fits(it, regexes.QUANTITY)} || ({size}('{low}')) >= 0 && {size}('{high}')) <= 0)"

    return after(check, Cel(holds, f"must be at least {low} and at most {high}"))


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise Refusal("must be longer than 0s")
    return seconds


def _positive_cel(it: str) -> str:
    return f"!{fits(it, regexes.DURATION)} || duration({it}) > duration('0s')"


Quantity = Annotated[int, NUMBER_OR_TEXT, before(parse_quantity, matches(regexes.QUANTITY, _QUANTITY_MESSAGE))]
Size = Annotated[Quantity, size_between("1")]
Duration = Annotated[
    float,
    TEXT,
    before(_read_duration, matches(regexes.DURATION, _DURATION_MESSAGE)),
    after(_positive, Cel(_positive_cel, "must be longer than 0s, and shorter than 292 years")),
    PlainSerializer(format_duration, return_type=str),
]
Instant = Annotated[AwareDatetime, TEXT, before(_read_instant, matches(regexes.INSTANT, _INSTANT_MESSAGE))]
Cpu = Annotated[str, NUMBER_OR_TEXT, before(_read_cpu, matches(regexes.CPU, _CPU_MESSAGE))]
