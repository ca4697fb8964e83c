"""Rules for topics and routes together: no two topics share a folder, and each has a route where it needs one.

Only as far as the manifest alone shows it: topics of patterns, and folders by `topicReplacement`, are checked when the
sink runs. Not in CEL: see `not_in_cel.py`. Not a validator: a spec is also made for a single route, without the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from s3sink_api.spec.destination import may_share_folders
from s3sink_api.spec.field_errors import FieldError
from s3sink_api.spec.sink import Spec


def topic_errors(spec: Spec) -> Iterator[FieldError]:
    yield from _unknown_topics(spec)
    yield from _unrouted_topics(spec)
    folders = list(_folders(spec))
    yield from _shared_folders(folders)
    yield from _beside_state(folders)


class _Folder(NamedTuple):
    topic: str
    name: str
    spec: Spec
    """As it is for the topic."""
    at: str
    """The field that gives the name; empty if it is the topic's own."""


def _unknown_topics(spec: Spec) -> Iterator[FieldError]:
    known = frozenset(spec.source.topics)
    for index, item in enumerate(spec.layout.topic_names if known else ()):
        if item.topic not in known:
            yield FieldError(f"spec.layout.topicNames[{index}].topic", f"{item.topic} is not among spec.source.topics")


def _unrouted_topics(spec: Spec) -> Iterator[FieldError]:
    if spec.source.on_unrouted_topic != "Fail" or not spec.routes or any(route.topic_pattern for route in spec.routes):
        return
    taken = {topic for route in spec.routes for topic in route.topics}
    if left := [topic for topic in spec.source.topics if topic not in taken]:
        message = f"is Fail, and topic {left[0]} is in no route; add it to one, or take it out of source.topics"
        yield FieldError("spec.source.onUnroutedTopic", message)


def _shared_folders(folders: list[_Folder]) -> Iterator[FieldError]:
    found: dict[str, list[_Folder]] = {}
    for folder in folders:
        others = found.setdefault(folder.name, [])
        for other in others:
            if may_share_folders(folder.spec.destination, other.spec.destination):
                both = f"{folder.name} would be the folder of topics {other.topic} and {folder.topic}"
                yield FieldError(folder.at or other.at, f"{both}; give each its own")
                break
        others.append(folder)


def _beside_state(folders: list[_Folder]) -> Iterator[FieldError]:
    for folder in folders:
        destination = folder.spec.destination
        if folder.at and not destination.prefix and folder.name == destination.state_prefix.split("/")[0]:
            message = f"{folder.name} is the folder of the state; use another one, or set destination.prefix"
            yield FieldError(folder.at, message)


def _folders(spec: Spec) -> Iterator[_Folder]:
    """Of the topics whose folder the manifest alone tells."""
    routed = {topic: index for index, route in enumerate(spec.routes) for topic in route.topics}
    by_pattern = any(route.topic_pattern for route in spec.routes)
    merged = [spec.for_route(route) for route in spec.routes]
    for topic in spec.source.topics:
        if topic in routed:
            yield from _folder(topic, merged[routed[topic]])
        elif not by_pattern:
            yield from _folder(topic, spec)


def _folder(topic: str, spec: Spec) -> Iterator[_Folder]:
    for index, item in enumerate(spec.layout.topic_names):
        if item.topic == topic:
            yield _Folder(topic, item.as_, spec, f"spec.layout.topicNames[{index}].as")
            return
    if spec.layout.topic_replacement is None:
        yield _Folder(topic, topic, spec, "")
