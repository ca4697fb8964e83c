"""Which topics the sink reads: those the manifest lists, or those that match its pattern by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3sink_job.errors import FinalError
from s3sink_job.flush.contact import Topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.spec import Source

LIST_EVERY = 5.0
"""Seconds: a cluster may have many thousands of topics, and a look at ours may come five times a second."""


class Topics:
    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self._source, self._clock = source, clock
        self._listed_at: float | None = None
        self._there: set[str] = set()
        self._missing: set[str] = set()
        self.gone: dict[str, float] = {}
        """Topics of a pattern that Kafka says do not exist any more, and when it first said so."""

    @property
    def none_matches(self) -> str:
        pattern, servers = self._source.topic_pattern, self._source.bootstrap_servers
        return f"spec.source.topicPattern: no topic on {servers} that may be seen matches {pattern!r}"

    def given_up(self, name: str, now: float, after: float | None) -> bool:
        """Whether nobody waits for this topic, which Kafka does not have, to come back.

        The manifest does not name it any more, or it matches the pattern and has been gone for `after` seconds.
        """
        if self._source.topic_pattern is None:
            return name not in self._source.topics
        if self._listed_at is None:
            return False  # nobody has looked yet
        if name in self.gone:
            return after is not None and now - self.gone[name] >= after
        return name not in self._there | self._missing

    def look(self, admin: Admin, known: Iterable[str]) -> dict[str, Topic | None]:
        """What Kafka has of each topic to read; None for one that is not there.

        Those `known` from before stay ours while they match the pattern, whether Kafka lists them or not.
        """
        pattern = self._source.topic_pattern
        if pattern is None:
            return admin.describe(self._source.topics)
        known, now = set(known), self._clock()
        if self._listed_at is None or not 0 <= now - self._listed_at < LIST_EVERY:
            self._list(admin, pattern, known, now)
            self._listed_at = now
        found = admin.describe(sorted(self._there))
        # One that was deleted after it was listed, and of which nothing was read, never mattered.
        found = {name: topic for name, topic in found.items() if topic is not None or name in known}
        return found | dict.fromkeys(sorted(self._missing))

    def _list(self, admin: Admin, pattern: str, known: set[str], now: float) -> None:
        listed = admin.matching(pattern)
        unlisted = {name for name in known - listed if admin.matches(pattern, name)}
        exist = {name: _exists(admin, name) for name in sorted(unlisted)}
        self._there = listed | {name for name, there in exist.items() if there}
        self._missing = unlisted - self._there
        self.gone = {name: self.gone.get(name, now) for name, there in exist.items() if there is False}


def _exists(admin: Admin, name: str) -> bool | None:
    """None: Kafka does not tell. A topic that the user may not see any more is not listed either."""
    try:
        return admin.describe([name])[name] is not None
    except FinalError:
        return None
