"""Kubernetes quantities (`64Mi`) as bytes, Go durations (`1h30m`) as seconds, RFC 3339 as instants."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, PlainSerializer, ValidationInfo

from s3sink_job.spec.problems import Refusal

QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"
DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(h|ms|m|s))+$"
CPU_PATTERN = r"^([0-9]+m|[0-9]+(\.[0-9]{1,3})?)$"

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_UNITS = {"": 1, **_BINARY, **_DECIMAL}
_MILLIS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_LARGEST = 2**63 - 1
_LONGEST_TEXT = 64
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2}))?", re.ASCII)


def parse_quantity(value: object) -> int:
    """The number of bytes; ValueError says what would be right."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Refusal("must be a quantity such as 64Mi")
    if isinstance(value, int):
        size = Fraction(value)
    else:
        if len(value) > _LONGEST_TEXT or not re.fullmatch(QUANTITY_PATTERN, value, re.ASCII):
            raise Refusal("must be a quantity such as 64Mi", hint=_quantity_hint(value))
        number = value.rstrip("KMGTPEik")
        size = Fraction(number) * _UNITS[value[len(number) :]]
    if size.denominator != 1:
        raise Refusal("must be a whole number of bytes")
    if not 0 <= size <= _LARGEST:
        raise Refusal(f"must lie between 0 and {_LARGEST} bytes")
    return int(size)


def _quantity_hint(value: str) -> str:
    """`64mb`, `64 MiB` and the like are what people write elsewhere."""
    loose = re.fullmatch(r"\s*([0-9]+)\s*([kmgtpe])i?b?\s*", value, re.IGNORECASE | re.ASCII)
    if not loose or len(value) > _LONGEST_TEXT:
        return ""
    return f"write {loose[1]}{loose[2].upper()}i"


def format_quantity(size: int) -> str:
    for unit, factor in reversed(_BINARY.items()):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_duration(value: object) -> float:
    """The number of seconds; ValueError says what would be right."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise Refusal("must be a duration with its unit, such as 15m")
    if not re.fullmatch(DURATION_PATTERN, value, re.ASCII):
        days = re.fullmatch(r"([0-9]{1,9})d", value, re.ASCII)
        hint = f"days are written in hours: {int(days[1]) * 24}h" if days else ""
        raise Refusal("must be a duration such as 50ms, 30s, 15m or 1h30m", hint=hint)
    parts = re.findall(r"([0-9.]+)(h|ms|m|s)", value)
    millis = sum((Fraction(number) * _MILLIS[unit] for number, unit in parts), Fraction(0))
    if millis.denominator != 1:
        raise Refusal("must be a whole number of milliseconds")
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
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise Refusal("must be a time with its zone, such as 2026-01-01T00:00:00Z")
    try:
        instant = datetime.fromisoformat(value.upper())
    except ValueError:
        raise Refusal("is no date of the calendar; write a time such as 2026-01-01T00:00:00Z") from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _read_cpu(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not re.fullmatch(CPU_PATTERN, value, re.ASCII):
        raise Refusal("must be an amount of CPU such as 500m or 2")
    return value


def size_between(low: str, high: str | None = None) -> AfterValidator:
    least, most = parse_quantity(low), parse_quantity(high) if high else _LARGEST

    def check(size: int) -> int:
        if size < least:
            raise Refusal(f"must be at least {low}")
        if size > most:
            raise Refusal(f"must be at most {high}")
        return size

    return AfterValidator(check)


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise Refusal("must be longer than 0s")
    return seconds


Quantity = Annotated[int, BeforeValidator(parse_quantity)]
Size = Annotated[Quantity, size_between("1")]
Duration = Annotated[
    float,
    BeforeValidator(_read_duration),
    AfterValidator(_positive),
    PlainSerializer(format_duration, return_type=str),
]
Instant = Annotated[AwareDatetime, BeforeValidator(_read_instant)]
Cpu = Annotated[str, BeforeValidator(_read_cpu)]
