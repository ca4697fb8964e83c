"""Which topics the sink reads: those that the spec lists, or those that match its pattern now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3sink_api.spec import Source
from s3sink_job.base.errors import FinalError
from s3sink_job.flush.kafka_metadata import Topic
from s3sink_job.kafka.admin import Admin

LIST_EVERY = 5.0
"""Seconds: a cluster may have thousands of topics, and ours are observed up to five times a second."""


class Topics:
    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self._source, self._clock = source, clock
        self._listed_at: float | None = None
        self._existing: set[str] = set()
        self._missing: set[str] = set()
        self.gone: dict[str, float] = {}
        """Topics of a pattern that no longer exist, and since when that is known."""

    @property
    def none_matches(self) -> str:
        pattern, servers = self._source.topic_pattern, self._source.bootstrap_servers
        return f"spec.source.topicPattern: no visible topic on {servers} matches {pattern!r}"

    def given_up(self, name: str, now: float, after: float | None) -> bool:
        """Whether the sink does not wait for this topic, which does not exist, to come back.

        So if the spec no longer lists it, or if it matches the pattern and has been gone for `after` seconds.
        """
        if self._source.topic_pattern is None:
            return name not in self._source.topics
        if self._listed_at is None:
            return False  # topics were not listed yet
        if name in self.gone:
            return after is not None and now - self.gone[name] >= after
        return name not in self._existing | self._missing

    def find(self, admin: Admin, known: Iterable[str]) -> dict[str, Topic | None]:
        """Every topic to read as Kafka describes it; None for one that does not exist.

        Topics `known` from before are read while they match the pattern, whether Kafka lists them or not.
        """
        pattern = self._source.topic_pattern
        if pattern is None:
            return admin.describe(self._source.topics)
        known, now = set(known), self._clock()
        if self._listed_at is None or not 0 <= now - self._listed_at < LIST_EVERY:
            self._list(admin, pattern, known, now)
            self._listed_at = now
        found = admin.describe(sorted(self._existing))
        # A topic that was deleted after it was listed, and that was never read, does not matter.
        found = {name: topic for name, topic in found.items() if topic is not None or name in known}
        return found | dict.fromkeys(sorted(self._missing))

    def _list(self, admin: Admin, pattern: str, known: set[str], now: float) -> None:
        listed = admin.matching(pattern)
        unlisted = {name for name in known - listed if admin.matches(pattern, name)}
        exist = {name: _exists(admin, name) for name in sorted(unlisted)}
        self._existing = listed | {name for name, there in exist.items() if there}
        self._missing = unlisted - self._existing
        self.gone = {name: self.gone.get(name, now) for name, there in exist.items() if there is False}


def _exists(admin: Admin, name: str) -> bool | None:
    """None: not known. A topic that the user may no longer see is not listed either."""
    try:
        return admin.describe([name])[name] is not None
    except FinalError:
        return None
