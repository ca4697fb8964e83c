"""Java's properties files: comments, continued lines, separators and escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from s3sink_job.convert.bad_input import BadInput, Place

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def looks_like_properties(text: str) -> bool:
    """Whether the first line that is not a comment is `key=value`. Everything else may be YAML."""
    for line in text.splitlines():
        bare = line.strip()
        if bare and not bare.startswith(("#", "!")):
            return bool(re.match(r"[A-Za-z_][\w.\-\\]*\s*=", bare))
    return False


def read_properties(text: str, name: str) -> dict[str, str]:
    """A repeated key is refused: Java would keep the last one, and the first would be lost in silence."""
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _logical_lines(text):
        key_end = _KEY.match(line)
        assert key_end is not None
        value_start = _SEPARATOR.match(line, key_end.end())
        assert value_start is not None
        place = Place(name, number)
        key = _unescaped(key_end.group(), place)
        if key in found:
            raise BadInput(place, f"the key {key} was set before, in line {lines[key]}; keep one of them")
        found[key] = _unescaped(line[value_start.end() :], place).strip()
        lines[key] = number
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that continue them, and the number of the first."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        bare = line.lstrip(" \t\f")
        if not parts and (not bare or bare[0] in "#!"):
            continue
        first = first if parts else number
        backslashes = len(bare) - len(bare.rstrip("\\"))
        if backslashes % 2:
            parts.append(bare[:-1])
            continue
        yield first, "".join([*parts, bare])
        parts = []
    if parts:
        yield first, "".join(parts)


def _unescaped(text: str, place: Place) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] is not None:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise BadInput(place, r"has \u without four hexadecimal digits behind it")
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", replace, text, flags=re.DOTALL)
