"""Date patterns as Java writes them, as far as folders may use them: read into tokens, or refused with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

MOST = dict.fromkeys("yuYS", 9) | dict.fromkeys("QMLEe", 5) | dict.fromkeys("wdHhKkms", 2)
MOST |= {"D": 3, "a": 1}
"""The letters that may be used, and how many of each in a row."""
RESERVED = "[]{}#"
PART = re.compile(r"'((?:[^']|'')*+)'|([^']+)")
"""Text in quotes as long as Java takes it, or text without any."""


@dataclass(frozen=True)
class Token:
    """A field such as `yyyy`, or text that stands for itself."""

    text: str
    field: bool = False


class BadPattern(ValueError):
    """What a pattern must be instead, in words."""


def check_pattern(pattern: str) -> str:
    """Why a pattern cannot be used; nothing if it can."""
    try:
        levels_of(pattern)
    except BadPattern as error:
        return str(error)
    return ""


def levels_of(pattern: str) -> tuple[tuple[Token, ...], ...]:
    """The tokens of each folder that the pattern makes."""
    levels: list[list[Token]] = [[]]
    for token in _tokens(pattern):
        if token.field:
            levels[-1].append(token)
            continue
        for number, text in enumerate(token.text.split("/")):
            if number:
                levels.append([])
            if text:
                levels[-1].append(Token(text))
    if not all(levels):
        raise BadPattern("must name a folder on both sides of each /")
    return tuple(tuple(level) for level in levels)


def _tokens(pattern: str) -> list[Token]:
    found: list[Token] = []
    for quoted, text in _parts(pattern):
        if quoted:
            found.append(Token(text))
            continue
        for char, run in groupby(text):
            found.append(_token(char, len(list(run))))
    return found


def _token(char: str, count: int) -> Token:
    if char in RESERVED:
        raise BadPattern(f"must have {char} in quotes, since Java keeps it for other things: '{char}'")
    if not (char.isascii() and char.isalpha()):
        return Token(char * count)
    if char not in MOST:
        raise BadPattern(f"must not use the letter {char}, which stands for none of {' '.join(sorted(MOST))}")
    if count > MOST[char]:
        raise BadPattern(f"must have at most {MOST[char]} of the letter {char} in a row, got {count}")
    return Token(char * count, field=True)


def _parts(pattern: str) -> list[tuple[bool, str]]:
    """Quoted and bare text in turn. Within quotes two of them are one, and quotes around nothing are one as well."""
    parts: list[tuple[bool, str]] = []
    at = 0
    while at < len(pattern):
        found = PART.match(pattern, at)
        if found is None:
            raise BadPattern("must close every quote, as in 'year='yyyy")
        quoted, bare = found.groups()
        parts.append((False, bare) if bare else (True, quoted.replace("''", "'") or "'"))
        at = found.end()
    return parts
