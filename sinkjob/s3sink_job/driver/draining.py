"""What a run that ends has to write: everything that was in Kafka when it started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from s3sink_api.spec import Retries
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.plan import drained
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import SinkState, Truncation
from s3sink_job.flush.topic_changes import TopicChanges


class Draining:
    def __init__(self, retries: Retries, clock: Callable[[], float], *, ends: bool) -> None:
        self._ends = ends
        self.targets: dict[TopicPartition, tuple[int, int]] | None = None
        """Where each partition has to be drained to: (generation, offset). None in a run that does not end."""
        self.unavailable = PartitionBackoff(retries, clock, ends=ends)
        """Partitions without offsets. Their retries are limited, so that no run waits for ever."""
        self._missing_at_start: set[TopicPartition] = set()

    def update(self, state: SinkState, changes: TopicChanges, truncations: Sequence[Truncation]) -> None:
        """After each observation of Kafka. `truncations`: logs that it found truncated."""
        missing = {at: problem for at, problem in changes.problems.items() if problem.reason == UNAVAILABLE}
        self.unavailable.keep_only(missing)
        for at, problem in missing.items():
            if not self.unavailable.held(at):
                self.unavailable.hold(at, problem, retryable=True)
        if not self._ends:
            return
        seen = {at: (state.topics[at[0]].generation, offsets.stable) for at, offsets in changes.seen.items()}
        if self.targets is None:
            self.targets, self._missing_at_start = seen, set(missing)
        for at in self._missing_at_start & seen.keys():
            self.targets[at] = seen[at]
        self._missing_at_start -= seen.keys()
        self._follow_truncations(self.targets, seen, truncations)
        for at in self.targets.keys() & changes.seen.keys():
            generation, end = self.targets[at]
            # A log that lost its end no longer has everything that was there at the start.
            self.targets[at] = (generation, min(end, changes.seen[at].end))

    def _follow_truncations(
        self,
        targets: dict[TopicPartition, tuple[int, int]],
        seen: Mapping[TopicPartition, tuple[int, int]],
        truncations: Sequence[Truncation],
    ) -> None:
        """A truncated log gives its topic the next generation. The other partitions keep their targets in it."""
        for event in truncations:
            for at, (generation, end) in targets.items():
                if at[0] == event.topic and generation == event.generation:
                    targets[at] = (event.generation + 1, end)
        truncated = {(event.topic, event.partition) for event in truncations}
        targets |= {at: seen[at] for at in truncated & seen.keys()}

    def finished(self, state: SinkState, blocked: Mapping[TopicPartition, Problem], backoff: PartitionBackoff) -> bool:
        """Whether everything is committed, except for partitions that are blocked and not retried any more."""
        if self.targets is None or any(self.unavailable.will_retry(at) for at in self.unavailable.problems):
            return False
        left = {at: end for at, end in self.targets.items() if at not in blocked or backoff.will_retry(at)}
        return drained(state, left)
