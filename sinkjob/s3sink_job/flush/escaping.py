"""Values as names of folders, escaped as Hive does it, so that its readers get the values back.

No two values get one name, and none is a name that means something else to a store or to a reader of tables.
"""

from __future__ import annotations

import re

from s3sink_job.layout import TOMBSTONES

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""Hive's own name for the folder of what has no value."""
HIVE = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 0x20)))
MORE = "\x00}<>|`"
"""What S3 clients have trouble with beyond what Hive escapes."""
ESCAPES = {ord(char): f"%{ord(char):02X}" for char in HIVE + MORE}
SPECIAL = f"[{re.escape(HIVE + MORE)}]"
TAKEN = {".": "%2E", "..": "%2E%2E", TOMBSTONES: f"%{ord(TOMBSTONES[0]):02X}{TOMBSTONES[1:]}"}
"""Names of folders that are not a value's, though none of their characters is special."""
LITERALLY_MISSING = f"%{ord(MISSING[0]):02X}{MISSING[1:]}"


def escape(text: str, *, but: str = "") -> str:
    if but:
        return text.translate({code: escaped for code, escaped in ESCAPES.items() if chr(code) not in but})
    return text.translate(ESCAPES)


def segment(text: str) -> str:
    """A whole folder of what is escaped already."""
    return TAKEN.get(text, text)


def value_segment(name: str, value: str) -> str:
    """`name=value`, or the value alone."""
    escaped = LITERALLY_MISSING if value == MISSING else escape(value)
    return f"{escape(name)}={escaped}" if name else segment(escaped)


def missing_segment(name: str) -> str:
    return f"{escape(name)}={MISSING}" if name else MISSING
