"""Values as names of folders, escaped as Hive does it, so that its readers get the values back.

No two values get one name, and none is a name that means something else to a store or to a reader of tables.
"""

from __future__ import annotations

import re

from s3sink_job.layout import TOMBSTONES

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""Hive's own name for the folder of what has no value."""
HIVE = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 0x20)))
MORE = "\x00}<>|`\ufffe\uffff"
"""What S3 clients have trouble with beyond what Hive escapes; the last two are in no XML document."""
ESCAPES = {ord(char): "".join(f"%{byte:02X}" for byte in char.encode()) for char in HIVE + MORE}
SPECIAL = f"[{re.escape(HIVE + MORE)}]"
TAKEN = {".": "%2E", "..": "%2E%2E", TOMBSTONES: f"%{ord(TOMBSTONES[0]):02X}{TOMBSTONES[1:]}"}
"""Names of folders that are not a value's, though none of their characters is special."""
HIDDEN = (".", "_")
"""What the names of folders begin with that readers of tables pass over."""
LITERALLY_MISSING = f"%{ord(MISSING[0]):02X}{MISSING[1:]}"


def escape(text: str, *, but: str = "") -> str:
    if but:
        return text.translate({code: escaped for code, escaped in ESCAPES.items() if chr(code) not in but})
    return text.translate(ESCAPES)


def segment(text: str) -> str:
    """A whole folder of what is escaped already."""
    return TAKEN.get(text, text)


def value_segment(name: str, value: str) -> str:
    """`name=value`, or the value alone: then not as a hidden folder, of which one may be the sink's own state."""
    escaped = LITERALLY_MISSING if value == MISSING else escape(value)
    if name:
        return f"{escape(name)}={escaped}"
    shown = segment(escaped)
    return f"%{ord(shown[0]):02X}{shown[1:]}" if shown[:1] in HIDDEN else shown


def topic_segment(name: str, topic: str) -> str:
    """A topic is known before any record is: its folder is called as it is."""
    return f"{escape(name)}={topic}" if name else segment(topic)


def missing_segment(name: str) -> str:
    return f"{escape(name)}={MISSING}" if name else MISSING
