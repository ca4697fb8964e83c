"""Regular expressions that mean the same in Python and in RE2, which the API server uses.

Python uses them with re.ASCII, and the whole text has to match. Look-ahead, back-references and the classes that
differ (`\\d`, `\\s`, `\\w`) are not used.
"""

from __future__ import annotations

_CONTROL = "\\x00-\\x1f\\x7f-\\x9f\u2028\u2029"
NO_CONTROL = f"[^{_CONTROL}]*"

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A DNS label, as Kubernetes uses it."""

TOPIC = r"[a-zA-Z0-9._-]+"
NOT_OF_TOPICS = r"[^a-zA-Z0-9._-]"
"""A character that no topic has. A short pattern: the API server allows less for longer ones, and lists have 16,000."""
BUCKET = r"[a-z0-9][a-z0-9.-]*[a-z0-9]"
IP_ADDRESS = r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+"

_HOST = r"(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]+)"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
SERVERS = rf" *{_HOST}:{_PORT} *(, *{_HOST}:{_PORT} *)*"
URL = rf'https?://{_HOST}(:{_PORT})?(/[!-"$->A-~]*)?'
LOOPBACK_URL = rf"http://(localhost|127(\.[0-9]{{1,3}}){{3}}|\[::1\])(:{_PORT})?(/.*)?"
HTTPS_URL = rf"https://{_HOST}(:{_PORT})?(/[A-Za-z0-9._~%+=:/-]*)?"
"""Without characters that could end a command-line argument or an item of a list."""
USER_INFO = r"[A-Za-z][A-Za-z0-9+.-]*://[^/?# ]*@"
"""Searched anywhere in a text."""

QUANTITY = r"[0-9]+((\.[0-9]{1,3})?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E))?"
DURATION = r"([0-9]+(\.[0-9]{1,3})?(h|m|s)|[0-9]+ms)+"
CPU = r"[0-9]+m|[0-9]+(\.[0-9]{1,3})?"

_COMMON_DAY = r"(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
_LEAP_YEAR = r"19(7[26]|8[048]|9[26])|2[0-9](0[48]|[2468][048]|[13579][26])|2[048]00"
_DATE = rf"((19[7-9]|2[0-9]{{2}})[0-9]-({_COMMON_DAY})|({_LEAP_YEAR})-02-29)"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]"
INSTANT = rf"{_DATE}([Tt]{_TIME}:[0-5][0-9](\.[0-9]{{1,9}})?([Zz]|[+-]{_TIME}))?"

CRON_NAMES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def _numbers(low: int, high: int) -> str:
    """A number of at most two digits between the bounds, with or without a leading zero."""
    found = []
    for tens in range(low // 10, high // 10 + 1):
        first, last = max(low, tens * 10) % 10, min(high, tens * 10 + 9) % 10
        found.append(f"{tens or '0?'}{first if first == last else f'[{first}-{last}]'}")
    return "|".join(found)


def _cron_field(low: int, high: int, names: tuple[str, ...] = ()) -> str:
    """A field of a schedule in lower case. Ranges must not run backwards: each start has its own alternative."""

    def one_of(first: int, last: int) -> str:
        return "|".join([_numbers(first, last), *names[first - low : last - low + 1]])

    ranges = "|".join(f"({one_of(first, first)})-({one_of(first, high)})" for first in range(low, high + 1))
    item = rf"([*?]|{one_of(low, high)}|{ranges})(/(0?[1-9]|[1-9][0-9]))?"
    return f"{item}(,{item})*"


CRON_FIELDS: tuple[tuple[str, str, int, int], ...] = (
    ("minute", _cron_field(0, 59), 0, 59),
    ("hour", _cron_field(0, 23), 0, 23),
    ("day of the month", _cron_field(1, 31), 1, 31),
    ("month", _cron_field(1, 12, MONTHS), 1, 12),
    ("day of the week", _cron_field(0, 6, DAYS), 0, 6),
)
"""The fields of a cron schedule: name, regular expression for lower case, lowest and highest number."""
CRON = f" *{' +'.join(f'({pattern})' for _, pattern, _, _ in CRON_FIELDS)} *"
