"""`spec.layout.topicNames` and `topicReplacement`: folders of topics by other names. No two topics share one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from s3sink_api.spec.checked_types import after
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.pydantic_config import CONFIG
from s3sink_api.spec.text_types import Regex, TopicName, matching


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class NamedTopic:
    topic: TopicName
    as_: Annotated[TopicName, Field(alias="as")]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class TopicReplacement:
    pattern: Regex
    replacement: Annotated[
        str,
        matching(
            r"([A-Za-z0-9._-]|\$[0-9])*",
            "letters, digits and . _ - only, and $1 to $9 for groups of the pattern",
            longest=249,
        ),
    ]


def _once_each(names: tuple[NamedTopic, ...]) -> tuple[NamedTopic, ...]:
    """That a name is used once is not in CEL: see `not_in_cel.py`."""
    topics: set[str] = set()
    taken: dict[str, str] = {}
    for index, item in enumerate(names):
        if item.topic in topics:
            raise Refusal(f"names the topic {item.topic} a second time", at=(index,), show=False)
        if (other := taken.setdefault(item.as_, item.topic)) != item.topic:
            message = f"{item.as_} is already the folder of topic {other}; give {item.topic} another one"
            raise Refusal(message, at=(index, "as"), show=False)
        topics.add(item.topic)
    return names


TopicNames = Annotated[
    tuple[NamedTopic, ...],
    Field(max_length=250),
    after(_once_each, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topic"]}),
]
