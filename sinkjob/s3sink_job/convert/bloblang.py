"""The interpolations of Redpanda Connect's paths that s3sink convert knows."""

from __future__ import annotations

import re
from typing import Any

from s3sink_job.convert.date_formats import from_go, from_strftime
from s3sink_job.convert.path_template import Part, Text, Variable

INTERPOLATION = re.compile(r"\$\{!\s*(.*?)\s*\}")
_KAFKA = {"kafka_topic": {"type": "Topic"}, "kafka_partition": {"type": "Partition"}, "kafka_key": {"type": "Key"}}


def parts_of(template: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    for match in INTERPOLATION.finditer(template):
        parts += [Text(template[at : match.start()]), Variable(match[0], _item(match[1]))]
        at = match.end()
    return [*parts, Text(template[at:])]


def _item(query: str) -> dict[str, Any]:
    """The item that a Bloblang query stands for; empty if s3sink convert does not know it."""
    if meta := re.fullmatch(r"""(?:meta\(["']([\w.-]+)["']\)|@([\w-]+)|metadata\(["']([\w.-]+)["']\))""", query):
        name = meta[1] or meta[2] or meta[3]
        if name == "kafka_offset":
            return {}
        return _KAFKA.get(name, {"type": "Header", "name": name})
    if field := re.fullmatch(r"""json\(["']([\w.-]+)["']\)|this\.([\w.]+)""", query):
        return {"type": "Field", "path": (field[1] or field[2]).split(".")}
    pattern = r"""(?:now\(\)|timestamp_unix\(\)|(?:@|meta\(["'])kafka_timestamp_unix(?:["']\))?(?:\.number\(\))?)"""
    time = re.fullmatch(rf"""({pattern})\.(ts_format|ts_strftime|format_timestamp)\(["']([^"']+)["'].*\)""", query)
    old = re.fullmatch(r"""timestamp\(["']([^"']+)["']\)""", query)
    if not time and not old:
        return {}
    source = "Record" if time and "kafka_timestamp" in time[1] else "Wallclock"
    try:
        pattern = from_go(old[1]) if old else (from_strftime if time and "strf" in time[2] else from_go)(time[3])  # type: ignore[index]
    except ValueError:
        return {}
    return {"type": "Time", "source": source, "format": pattern}
