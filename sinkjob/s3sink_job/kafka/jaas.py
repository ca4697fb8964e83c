"""Checks `sasl.jaas.config` of a Secret: one entry, with one of Kafka's own login modules.

A login module is a class that Java loads, and some modules of the JDK fetch code from any address. Kafka's parser is
lenient: it accepts comments, quotes that end with their line, and several entries. This one accepts a plain entry only,
so that both understand the same, and refuses anything else.
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
"""All modules of the JDK. The JVM refuses them, should anything get past this parser."""

_BLANK = r"[ \t\r\n]"
# Java ends a quote at the end of its line. A backslash escapes any other character, also a quote.
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
    """Their names only, not their values."""


class LoginRefused(ValueError):
    """The message never repeats the text, since it contains a password."""


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
