"""Folders of topics by other names: from a list, or by replacing matches of a pattern.

Two topics may get the same name: `task/routing.py` refuses them then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import Layout
from s3sink_api.spec.regexes import TOPIC
from s3sink_job.base.errors import FinalError

LONGEST = 249
"""As for topics: then a folder is not longer than without another name."""


@dataclass(frozen=True)
class TopicNames:
    names: tuple[tuple[str, str], ...] = ()
    """Topics, and their folders."""
    pattern: str = ""
    """In the syntax of RE2, which takes linear time, whatever the pattern."""
    replacement: str = ""
    """With `$1` for the first group."""

    def __bool__(self) -> bool:
        return bool(self.names or self.pattern)

    def folder_of(self, topic: str) -> str:
        return _folder_of(self, topic) if self else topic

    def fault_of(self, topic: str) -> str:
        """Why the topic's name for its folder cannot be one; empty if it can."""
        name = self.folder_of(topic)
        if re.fullmatch(TOPIC, name) and name not in {".", ".."} and len(name) <= LONGEST:
            return ""
        return f"topicReplacement makes {name!r} of topic {topic}, which cannot be a folder"

    def check(self) -> None:
        """Refuses a pattern that the parser cannot judge."""
        self.folder_of("topic")


SAME_NAMES = TopicNames()


@lru_cache(maxsize=10_000)
def _folder_of(names: TopicNames, topic: str) -> str:
    listed = dict(names.names)
    if topic in listed or not names.pattern:
        return listed.get(topic, topic)
    groups = re.sub(r"\$([0-9])", r"\\\1", names.replacement)
    try:
        found = pc.replace_substring_regex(pa.scalar(topic), pattern=names.pattern, replacement=groups)
    except pa.ArrowInvalid as error:
        raise FinalError(
            f"spec.layout.topicReplacement: {error}: write a regular expression of RE2, and groups that it has",
            reason="InvalidTopicReplacement",
        ) from None
    return str(found.as_py())


def topic_names_of(layout: Layout) -> TopicNames:
    listed = tuple((item.topic, item.as_) for item in layout.topic_names)
    by_pattern = layout.topic_replacement
    if by_pattern is None:
        return TopicNames(listed)
    return TopicNames(listed, by_pattern.pattern, by_pattern.replacement)
