"""The answer of `s3sink find` as lines of text."""

from __future__ import annotations

import os
from typing import Any


def find_text(doc: dict[str, Any]) -> str:
    lines = _offset_lines(doc) if "outcome" in doc else _key_lines(doc)
    return os.linesep.join([*lines, *([doc["refresh"]] if "refresh" in doc else [])])


def _offset_lines(doc: dict[str, Any]) -> list[str]:
    lines = [f"{doc['topic']}-{doc['partition']} offset {doc['offset']}: {doc['outcome']}: {doc['text']}"]
    for record in doc["records"]:
        lines += _record_lines(record)
    lines += [f"  {_object_text(one)}" for one in doc.get("candidates", ())]
    if doc["flush"]:
        lines.append(f"  flush {doc['flush']}")
    if "note" in doc:
        lines.append(doc["note"])
    return lines


def _key_lines(doc: dict[str, Any]) -> list[str]:
    count = len(doc["records"])
    lines = [f"{doc['topic']}: {count:,} records with this key in {doc['searchedObjects']:,} searched objects"]
    for record in doc["records"]:
        offset = "unknown" if record["offset"] is None else record["offset"]
        again = f" of generation {record['generation']}" if record["generation"] > 1 else ""
        lines += [f"{doc['topic']}-{record['partition']} offset {offset}{again}", *_record_lines(record)]
    if doc["unsearchedObjects"]:
        lines.append(f"{doc['unsearchedObjects']:,} objects were not searched: {doc['whyUnsearched']}")
    return lines


def _record_lines(record: dict[str, Any]) -> list[str]:
    row = "row unknown" if record["row"] is None else f"row {record['row']}"
    lines = [f"  {_object_text(record['object'])}: {row}"]
    return [*lines, f"  read it: {record['read']}"] if record["read"] else lines


def _object_text(one: dict[str, Any]) -> str:
    gone = "" if one["inBucket"] else ", not in the bucket now"
    return f"{one['url']} ({one['rows']:,} rows, offsets {one['firstOffset']} to {one['lastOffset']}{gone})"
