"""The plan of `s3sink plan` as lines of text."""

from __future__ import annotations

import os
from typing import Any

KEYS_SHOWN = 3


def plan_text(doc: dict[str, Any]) -> str:
    start = "spec.reset.to" if doc["reset"] else "spec.source.startingOffsets"
    state = doc["state"] or f"has never run; it would start at {start}"
    lines = [f"{doc['sink']}: {state}"]
    if doc["publishing"]:
        lines.append(f"flush {doc['publishing']} is committed and would be published first")
    lines += _refresh_lines(doc["refresh"] or {})
    if doc["end"]:
        lines.append(f"the run ends at spec.source.endingOffsets, {doc['end']}")
    lines += doc["notes"]
    for partition in doc["partitions"]:
        lines += _partition_lines(partition)
    lines += [f"{p['topic']}-{p['partition']}: {p['reason']}: {p['message']}" for p in doc["problems"]]
    lines.append(_flush_line([p for p in doc["partitions"] if "reason" in p]))
    if doc["left"]:
        lines.append(f"{doc['left']:,} more offsets are due in later flushes")
    if doc["paused"]:
        lines.append("spec.state is not Running: nothing would be written")
    return os.linesep.join(lines)


def _refresh_lines(doc: dict[str, Any]) -> list[str]:
    lines = []
    if run := doc.get("unfinished"):
        what = f"full refresh {run['run']} is not finished ({run['phase']})"
        resumes = f"with --run-id {run['run']} it would go on; any other run abandons it, and so does mode: Append"
        lines.append(f"{what}: {resumes if run['phase'] == 'Writing' else 'it would be finished first'}")
    if found := doc.get("replaces"):
        counts = f"{found['objects']:,} objects with {found['records']:,} records, {found['bytes']:,} bytes"
        lines.append(f"a new full refresh would begin, and replace {counts} at its end")
    return lines


def _flush_line(due: list[dict[str, Any]]) -> str:
    if not due:
        return "nothing is due"
    objects, offsets = sum(p["objects"] for p in due), sum(p["offsets"] for p in due)
    more = " or more" if any("splitBy" in p for p in due) else ""
    return f"one flush: {offsets:,} offsets of {len(due)} partitions in about {objects:,} objects{more}"


def _partition_lines(doc: dict[str, Any]) -> list[str]:
    name = f"{doc['topic']}-{doc['partition']}"
    line = f"{name}: committed {doc['committed']:,}, end {doc['end']:,}, {doc['lag']:,} behind"
    if "reason" in doc:
        size = f", about {doc['bytes']:,} bytes" if "bytes" in doc else ", size not measured yet"
        line += f"; due by {doc['reason']}: {doc['offsets']:,} offsets in {len(doc['slices'])} slices"
        split = f" or more, at least one for each {' and '.join(doc['splitBy'])}" if "splitBy" in doc else ""
        line += f", about {doc['objects']:,} objects{split}{size}"
        more = ["  …"] if len(doc["keys"]) > KEYS_SHOWN else []
        place = f"s3://{doc['bucket']}/" if "bucket" in doc else ""
        return [line, *(f"  {place}{key}" for key in doc["keys"][:KEYS_SHOWN]), *more]
    if "waitsFor" in doc:
        line += f"; due by {doc['waitsFor']} at {doc['due']}"
    return [line]
