"""The words of a .proto text: names, numbers, strings and signs, without comments."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from s3sink_job.decode.writer_schemas import InvalidSchema

TOKEN = re.compile(
    r"""
      (?P<space>    \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<name>     [A-Za-z_][A-Za-z0-9_]* )
    | (?P<number>   0[xX][0-9A-Fa-f]+ | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]? )
    | (?P<string>   "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<sign>     [{}\[\]()<>;,.=:+/-] )
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
PAIRS = {"{": "}", "[": "]", "<": ">", "(": ")"}
END = ""
MARK = "\ufeff"
"""Of the byte order. Some editors write it."""


class Token(NamedTuple):
    kind: str
    text: str
    at: int
    """Where it begins in the text."""


class Tokens:
    def __init__(self, text: str, file: str = "") -> None:
        """Messages name the file, if it has a name. Raises `InvalidSchema`."""
        self._where = f" of {file}" if file else ""
        self._text = text = _encodable(text)
        self._tokens: list[Token] = []
        self._next = 0
        at = len(MARK) if text.startswith(MARK) else 0
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                self._fail(f"{text[at]!r} is not expected", at)
            if found.lastgroup != "space":
                self._tokens.append(Token(found.lastgroup or "", found.group(), at))
            at = found.end()
        self._tokens.append(Token("end", END, len(text)))

    @property
    def next(self) -> Token:
        return self._tokens[self._next]

    def behind(self, steps: int) -> Token:
        """The token so many steps behind the next one."""
        return self._tokens[min(self._next + steps, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        if token.kind == "end":
            self.fail("the text ends too early")
        self._next += 1
        return token

    def took(self, *texts: str) -> bool:
        """Takes the next tokens if they are these."""
        if any(self.behind(steps).text != text for steps, text in enumerate(texts)):
            return False
        self._next += len(texts)
        return True

    def expect(self, text: str) -> None:
        if not self.took(text):
            self.fail(f"{text!r} is expected, and not {self._shown}")

    def name(self) -> str:
        if self.next.kind != "name":
            self.fail(f"a name is expected, and not {self._shown}")
        return self.take().text

    def path(self) -> str:
        """A name with dots, also with one in front."""
        parts = ["." if self.took(".") else "", self.name()]
        while self.took("."):
            parts += [".", self.name()]
        return "".join(parts)

    def whole_number(self) -> int:
        negative = self.took("-")
        token = self.take()
        try:
            number = int(token.text, 8 if re.fullmatch("0[0-7]+", token.text) else 0)
        except ValueError:
            self._fail(f"a whole number is expected, and not {token.text!r}", token.at)
        return -number if negative else number

    def string(self) -> str:
        """Several strings one after the other are one."""
        if self.next.kind != "string":
            self.fail(f"a string is expected, and not {self._shown}")
        parts = []
        while self.next.kind == "string":
            parts.append(ESCAPE.sub(_escaped, self.take().text[1:-1]))
        return _encodable("".join(parts))

    @property
    def _shown(self) -> str:
        return repr(self.next.text) if self.next.text else "the end of the text"

    def skip_pair(self) -> str:
        """Takes a bracket with everything up to the one that closes it. Returns what is between them."""
        if self.next.text not in PAIRS:
            self.fail(f"a bracket is expected, and not {self._shown}")
        start, open_ones = self.next.at + 1, []
        while True:
            token = self.take()
            if token.text in PAIRS:
                open_ones.append(PAIRS[token.text])
            elif token.text in PAIRS.values() and token.text != open_ones.pop():
                self._fail(f"{token.text!r} is not expected", token.at)
            if not open_ones:
                return self._text[start : token.at]

    def skip_statement(self) -> None:
        """Up to the semicolon, or to the end of the braces. There may be both in options of it."""
        while not self.took(";"):
            match self.next.text:
                case "{":
                    self.skip_pair()
                    self.took(";")
                    return
                case "[" | "(":
                    self.skip_pair()
                case _:
                    self.take()

    def fail(self, why: str) -> NoReturn:
        self._fail(why, self.next.at)

    def _fail(self, why: str, at: int) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        raise InvalidSchema(f"not a Protobuf schema: line {line}{self._where}: {why}")


def _encodable(text: str) -> str:
    """JSON and escapes may have halves of a character. Two of them are one; one alone is in no descriptor or log."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return ESCAPED.get(code, code)
