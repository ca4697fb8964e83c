"""Date patterns of other systems, as the patterns of Java that S3Sink uses."""

from __future__ import annotations

import re
from itertools import groupby

from s3sink_api.spec.date_patterns import PART, check_pattern

_JODA = {"Y": "y", "x": "Y"}
"""Letters that mean another thing in Joda: there `YYYY` is the year, and `xxxx` the year of the week."""
# Layouts of Go are an example of a time. Longer ones first.
_GO = {
    "2006": "yyyy",
    "January": "MMMM",
    "Monday": "EEEE",
    "Jan": "MMM",
    "Mon": "EEE",
    "002": "DDD",
    "01": "MM",
    "02": "dd",
    "15": "HH",
    "03": "hh",
    "04": "mm",
    "05": "ss",
    "06": "yy",
    "PM": "a",
}
_STRFTIME = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
    "%y": "yy",
    "%j": "DDD",
    "%I": "hh",
    "%p": "a",
    "%b": "MMM",
    "%B": "MMMM",
    "%a": "EEE",
    "%A": "EEEE",
    "%F": "yyyy-MM-dd",
    "%T": "HH:mm:ss",
}


def from_joda(pattern: str) -> str:
    """Raises a ValueError if Java's patterns cannot say it."""
    found = "".join(_joda_part(match) for match in PART.finditer(pattern))
    return checked(_clean(found))


def from_go(layout: str) -> str:
    return checked(_clean(_replaced(layout, _GO)))


def from_strftime(layout: str) -> str:
    found = _replaced(layout, _STRFTIME)
    if "%" in found:
        raise ValueError("has a directive that has no letter in Java's patterns")
    return checked(_clean(found))


def checked(pattern: str) -> str:
    if why := check_pattern(pattern):
        raise ValueError(why)
    return pattern


def quoted(text: str) -> str:
    """Text that stands for itself in a pattern."""
    return "'" + text.replace("'", "''") + "'" if re.search(r"[A-Za-z'\[\]{}#]", text) else text


def _joda_part(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[0]
    parts = []
    for letter, run in groupby(match[2]):
        count = len(list(run))
        # Joda writes a year in full unless it has exactly two letters, and so does Java for one or four.
        parts.append(_JODA.get(letter, letter) * (4 if letter in "Yy" and count == 3 else count))
    return "".join(parts)


def _clean(pattern: str) -> str:
    """Without slashes at the ends or two in a row: they would make folders without a name."""
    return re.sub(r"/+", "/", pattern).strip("/")


def _replaced(layout: str, letters: dict[str, str]) -> str:
    """Known parts become letters, everything else is quoted if it has to be."""
    splitter = re.compile("|".join(map(re.escape, letters)))
    found, at = [], 0
    for match in splitter.finditer(layout):
        found += [quoted(layout[at : match.start()]), letters[match[0]]]
        at = match.end()
    return "".join([*found, quoted(layout[at:])])
