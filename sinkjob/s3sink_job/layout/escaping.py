"""Values as names of folders, escaped like in Hive, so that readers of tables get the values back.

No two values get the same name, and no value gets a name with a special meaning to stores or readers of tables.
"""

from __future__ import annotations

import re

from s3sink_job.layout.settings import TOMBSTONES

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name for the folder of records without a value."""
HIVE = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 0x20)))
MORE = "\x00}<>|`\ufffe\uffff"
"""Characters that Hive does not escape, but that S3 clients do not handle; XML does not allow the last two."""
ESCAPES = {ord(char): "".join(f"%{byte:02X}" for byte in char.encode()) for char in HIVE + MORE}
SPECIAL = f"[{re.escape(HIVE + MORE)}]"
TAKEN = {".": "%2E", "..": "%2E%2E", TOMBSTONES: f"%{ord(TOMBSTONES[0]):02X}{TOMBSTONES[1:]}"}
"""Names of folders with a special meaning, though none of their characters is special."""
HIDDEN = (".", "_")
"""Readers of tables ignore folders that begin with these."""
LITERALLY_MISSING = f"%{ord(MISSING[0]):02X}{MISSING[1:]}"


def escape(text: str, *, but: str = "") -> str:
    if but:
        return text.translate({code: escaped for code, escaped in ESCAPES.items() if chr(code) not in but})
    return text.translate(ESCAPES)


def segment(text: str) -> str:
    """A folder of text that is escaped already."""
    return TAKEN.get(text, text)


def value_segment(name: str, value: str) -> str:
    """`name=value`, or only the value: then never a hidden folder, because one of these may be the sink's state."""
    escaped = LITERALLY_MISSING if value == MISSING else escape(value)
    if name:
        return f"{escape(name)}={escaped}"
    shown = segment(escaped)
    return f"%{ord(shown[0]):02X}{shown[1:]}" if shown[:1] in HIDDEN else shown


def topic_segment(name: str, topic: str) -> str:
    """The folder of a topic, with the topic's name as it is: Kafka allows no special characters in it."""
    return f"{escape(name)}={topic}" if name else segment(topic)


def missing_segment(name: str) -> str:
    return f"{escape(name)}={MISSING}" if name else MISSING
