"""Templates of object names, as folders of a manifest.

A template is a list of segments between slashes, each of text and variables. Folders that `partitionBy` can make are
kept. The last segment is the name, and S3Sink has styles for names, no templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from s3sink_job.convert.date_formats import quoted


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Variable:
    """An item of `partitionBy`, or an empty one for what only a name can have, such as an offset."""

    shown: str
    item: dict[str, Any]


Part = Text | Variable


@dataclass(frozen=True)
class Folders:
    prefix: str
    items: tuple[dict[str, Any], ...]
    hive: bool
    problems: tuple[str, ...]
    """What the folders cannot say, in words."""
    name: str
    """The last segment, as the template has it."""


def folders_of(parts: list[Part]) -> Folders:
    segments = _segments(parts)
    *folders, name = segments
    prefix: list[str] = []
    while folders and all(isinstance(part, Text) for part in folders[0]):
        prefix.append("".join(part.text for part in folders.pop(0) if isinstance(part, Text)))
    items: list[dict[str, Any]] = []
    problems: list[str] = []
    for segment in folders:
        _add(segment, items, problems)
    hive = any("as" in item for item in items)
    shown = "".join(part.text if isinstance(part, Text) else part.shown for part in name)
    return Folders("/".join(filter(None, prefix)), tuple(_joined(items)), hive, tuple(problems), shown)


def _segments(parts: list[Part]) -> list[list[Part]]:
    segments: list[list[Part]] = [[]]
    for part in parts:
        if isinstance(part, Variable):
            segments[-1].append(part)
            continue
        first, *rest = part.text.split("/")
        if first:
            segments[-1].append(Text(first))
        for text in rest:
            segments.append([Text(text)] if text else [])
    *folders, name = segments
    return [*(segment for segment in folders if segment), name]


def _add(segment: list[Part], items: list[dict[str, Any]], problems: list[str]) -> None:
    variables = [part for part in segment if isinstance(part, Variable)]
    shown = "".join(part.text if isinstance(part, Text) else part.shown for part in segment)
    if variables and all(part.item.get("type") == "Time" for part in variables):
        pattern = "".join(quoted(part.text) if isinstance(part, Text) else part.item["format"] for part in segment)
        items.append({**variables[0].item, "format": pattern})
        return
    match segment:
        case [Variable(item=item)] if item:
            items.append(dict(item))
        case [Text(text), Variable(item=item)] if item and text.endswith("=") and len(text) > 1:
            items.append({**item, "as": text[:-1]})
        case _ if variables and all(part.item for part in variables):
            items += [dict(part.item) for part in variables]
            problems.append(f"the folder {shown} is a folder for each of its values")
        case _:
            problems.append(f"the folder {shown} is left out")


def _joined(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times of one kind in a row are one item, with a folder for each."""
    found: list[dict[str, Any]] = []
    for item in items:
        alike = found and item.get("type") == "Time" and _kind(found[-1]) == _kind(item)
        if alike:
            found[-1] = {**found[-1], "format": f"{found[-1]['format']}/{item['format']}"}
        elif item not in found:
            found.append(item)
    return found


def _kind(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "format"}
