"""The committed offsets, told to a consumer group for people's lag tools (`source.publishOffsetsTo`).

The state in the bucket stays the only truth: the group is written after a flush is published, never read to
go on from, and whatever fails here is shown and tried again later without holding up a flush.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3sink_job.errors import S3SinkError
from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.state import State
from s3sink_job.kafka import groups
from s3sink_job.kafka.admin import Admin
from s3sink_job.report import logs
from s3sink_job.report.reporter import Reporter

TRY_AGAIN = 30.0


class Mirror:
    def __init__(self, group: str | None, reporter: Reporter, clock: Callable[[], float]) -> None:
        self.group, self._reporter, self._clock = group, reporter, clock
        self._told: dict[TopicPartition, int] = {}
        self._ours = False
        self._not_before = 0.0

    def tell(self, admin: Callable[[], Admin], state: State, read: Iterable[TopicPartition]) -> None:
        """Brings the group to where the state is, also backwards, as for a topic that was made anew."""
        if self.group is None:
            return
        news = {at: offset for at in read if self._told.get(at) != (offset := state.offset(*at))}
        now = self._clock()
        if not news or now < self._not_before:
            return
        try:
            self._publish(admin(), self.group, news, f"s3sink {state.owner}")
        except S3SinkError as error:
            self._ours, self._not_before = False, now + TRY_AGAIN
            self._reporter.offsets_published(self.group, error)
            logs.warning("offsets not published", group=self.group, reason=error.reason, cause=str(error))
        else:
            self._told |= news
            self._reporter.offsets_published(self.group)

    def _publish(self, admin: Admin, group: str, news: dict[TopicPartition, int], note: str) -> None:
        groups.refuse_members(admin, group)
        if not self._ours:
            groups.refuse_others(admin, group, note)
        groups.publish(admin, group, news, note)
        self._ours = True
