"""Names of fields as Avro allows them: letters, digits and `_`, with no digit first.

Any other character, and a digit at the start, is written as `_u00e9_` with its code point. A `_` that looks like the
start of such an escape is escaped itself, so that no two names become the same.
"""

from __future__ import annotations

import re

EMPTY = "_u000000_"
REFUSED = re.compile(r"^[0-9]|[^A-Za-z0-9_]|_(?=u[0-9a-f]{4,6}(?:_|[^A-Za-z0-9_]))")
MARK = re.compile(r"_u([0-9a-f]{4,6})_")


def avro_name(name: str) -> str:
    return REFUSED.sub(lambda found: f"_u{ord(found[0]):04x}_", name) or EMPTY


def source_name(name: str) -> str:
    return "" if name == EMPTY else MARK.sub(lambda mark: chr(int(mark[1], 16)), name)
