"""Records that are the same in every run: keys, values, headers and timestamps are all given."""

from __future__ import annotations

import json
from typing import Any

from tools.parts.kafka import Headers, Record

START = 1_767_225_600_000
"""2026-01-01 00:00 UTC in milliseconds."""
COUNTRIES = ["DE", "FR", "IT", "ES", "PL"]
NOTES = ["", "plain", 'with "quotes", and; more', "two\nlines", "grüße 世界", None]


def json_record(value: Any, *, at: int = 0, key: str | bytes | None = None, headers: Headers | None = None) -> Record:
    """A value that is no bytes is written as JSON; `at` is in seconds after `START`."""
    raw = value if isinstance(value, bytes) or value is None else json.dumps(value, ensure_ascii=False).encode()
    return (key.encode() if isinstance(key, str) else key, raw, headers, START + at * 1000)


def values(*each: Any) -> list[Record]:
    return [json_record(value, at=n) for n, value in enumerate(each)]


def order(n: int) -> dict[str, Any]:
    """Fields of every kind. Some are missing or null in some records."""
    made: dict[str, Any] = {
        "id": n,
        "country": COUNTRIES[n % 5],
        "price": n * 1.25,
        "paid": n % 3 == 0,
        "note": NOTES[n % 6],
        "customer": {"name": f"c-{n % 7}", "address": {"zip": f"{n:05d}", "lines": ["a", "b"][: n % 3]}},
        "items": [{"sku": f"s{i}", "count": i} for i in range(n % 4)],
    }
    if n % 4 == 0:
        made["coupon"] = f"x{n}"
    return made


def orders(count: int, first: int = 0) -> list[Record]:
    """Keys, headers (none, one, several of one name, without a value) and a minute between two."""
    return [
        json_record(order(n), at=n * 60, key=None if n % 10 == 9 else f"c-{n % 7}", headers=_headers(n))
        for n in range(first, first + count)
    ]


def _headers(n: int) -> Headers | None:
    sets: list[Headers | None] = [
        None,
        [("trace", f"t{n}")],
        [("trace", "a"), ("trace", "b"), ("empty", None)],
        [("région", "é".encode()), ("raw", b"\xff\x00")],
    ]
    return sets[n % 4]
