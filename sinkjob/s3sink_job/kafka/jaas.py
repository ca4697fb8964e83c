"""`sasl.jaas.config` of a Secret: one login, by one of Kafka's own modules.

A login module is a class that Java loads and starts, and some of the JDK's fetch code from an address of the writer's
choice. Kafka's parser is lenient: comments, quotes that end with their line, several entries. This one takes a plain
entry only, so that both read the same; what it does not understand is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_KAFKA = "org.apache.kafka.common.security"
LOGIN_MODULES = (
    f"{_KAFKA}.plain.PlainLoginModule",
    f"{_KAFKA}.scram.ScramLoginModule",
    f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule",
)
DISALLOWED_MODULES = tuple(
    f"com.sun.security.auth.module.{name}LoginModule" for name in ("Jndi", "Ldap", "KeyStore", "Krb5", "NT", "Unix")
)
"""What the JVM is told to refuse, should anything get past this parser: every module that the JDK has."""

_BLANK = r"[ \t\r\n]"
# Java ends a quote at the end of its line. A backslash stands before any other character, a quote among them.
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f]|\\[^\x00-\x1f])*"' + "|" + r"'(?:[^'\\\x00-\x08\x0a-\x1f]|\\[^\x00-\x1f])*'"
_WORD = r"[A-Za-z_$][A-Za-z0-9._$-]*"
_OPTION = rf"(?P<name>{_WORD}){_BLANK}*={_BLANK}*(?:{_QUOTED}|{_WORD})"
_MODULE = re.compile(rf"{_BLANK}*(?P<module>{_WORD})")
_FLAG = re.compile(rf"{_BLANK}+(?:required|requisite|sufficient|optional)(?![A-Za-z0-9._$-])", re.IGNORECASE | re.ASCII)
_NEXT = re.compile(rf"{_BLANK}*{_OPTION}")
_END = re.compile(rf"{_BLANK}*;{_BLANK}*")


@dataclass(frozen=True)
class Login:
    module: str
    options: tuple[str, ...]
    """Their names. Values are nobody's business here."""


class LoginRefused(ValueError):
    """Says why in words that never repeat the text: it holds a password."""


def login_of(text: str) -> Login:
    module = _MODULE.match(text)
    if module is None or module["module"] not in LOGIN_MODULES:
        raise LoginRefused(f"must begin with one of Kafka's own login modules: {', '.join(LOGIN_MODULES)}")
    flag = _FLAG.match(text, module.end())
    if flag is None:
        raise LoginRefused("must have required after the login module")
    at, names = flag.end(), []
    while option := _NEXT.match(text, at):
        at = option.end()
        names.append(option["name"])
    if _END.fullmatch(text, at) is None:
        raise LoginRefused(
            'must be one entry: a login module, required, options such as username="…" and a semicolon at its end, '
            "without comments and with each quote closed in its line"
        )
    if any(name.lower().endswith(("class", "classes")) for name in names):
        raise LoginRefused("must not have an option that names a class")
    return Login(module["module"], tuple(names))
