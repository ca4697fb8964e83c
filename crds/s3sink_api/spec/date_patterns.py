"""Date patterns of Java, as far as folders may use them: parsed into tokens, or refused with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from string import ascii_letters

from s3sink_api.cel import Cel, literal

MOST = dict.fromkeys("yuYS", 9) | dict.fromkeys("QMLEe", 5) | dict.fromkeys("wdHhKkms", 2)
MOST |= {"D": 3, "a": 1}
"""The letters that may be used, and how many of each in a row."""
_LETTERS = " ".join(sorted(MOST))
RESERVED = "[]{}#"
PART = re.compile(r"'((?:[^']|'')*+)'|([^']+)")
"""Text in quotes, as Java finds its end, or text without quotes."""


@dataclass(frozen=True)
class Token:
    """A field such as `yyyy`, or text that stands for itself."""

    text: str
    field: bool = False


class BadPattern(ValueError):
    """The message says what the pattern must be instead."""


def check_pattern(pattern: str) -> str:
    """Why a pattern is refused; empty if it is not."""
    try:
        levels_of(pattern)
    except BadPattern as error:
        return str(error)
    return ""


def _has_none(pattern: str, message: str) -> Cel:
    """No match outside of quotes."""
    return Cel(lambda it: f"!{it}.matches({literal(_UNQUOTED + f'({pattern})')})", message)


_UNQUOTED = "^([^']*'[^']*')*[^']*"
_NO_LETTERS = "".join(letter for letter in ascii_letters if letter not in MOST)
_TOO_MANY = "|".join(f"{letter}{{{most + 1}}}" for letter, most in MOST.items())
_MOST_OF_EACH = ", ".join(
    f"{most} of {''.join(letter for letter in MOST if MOST[letter] == most)}" for most in sorted(set(MOST.values()))
)
CEL: tuple[Cel, ...] = (
    Cel(lambda it: f"""{it}.split("'").size() % 2 == 1""", "must close every quote, as in 'year='yyyy"),
    _has_none(f"[{_NO_LETTERS}]", f"must not use letters outside of quotes but {_LETTERS}"),
    _has_none(r"[\[\]{}#]", f"must have {' '.join(RESERVED)} in quotes, since Java reserves them"),
    _has_none(_TOO_MANY, f"must have no more of a letter in a row than {_MOST_OF_EACH}"),
    Cel(lambda it: f"""!{it}.matches({literal("(^|/)'?(/|$)")})""", "must have a folder name on both sides of each /"),
)
"""The same checks as `check_pattern`."""


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
        raise BadPattern("must have a folder name on both sides of each /")
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
        raise BadPattern(f"must have {char} in quotes, since Java reserves it: '{char}'")
    if not (char.isascii() and char.isalpha()):
        return Token(char * count)
    if char not in MOST:
        raise BadPattern(f"must not use the letter {char} outside of quotes; letters of patterns are {_LETTERS}")
    if count > MOST[char]:
        raise BadPattern(f"must have at most {MOST[char]} of the letter {char} in a row, got {count}")
    return Token(char * count, field=True)


def _parts(pattern: str) -> list[tuple[bool, str]]:
    """Quoted and unquoted text. Two quotes within quotes stand for one quote, and so do two quotes around nothing."""
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
