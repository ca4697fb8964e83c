"""What a run that ends has to write: everything below endingOffsets, or everything that was in Kafka at its start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from s3sink_api.spec import Retries
from s3sink_job.flush.ending_offsets import fixed_ends
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
        if (ends := fixed_ends(state)) is not None:
            observed = changes.known.keys() | changes.problems.keys()
            targets = {at: (state.topics[at[0]].generation, end) for at, end in ends.items() if at in observed}
        else:
            targets = self._seen_at_start(state, changes, truncations, set(missing))
        for at in targets.keys() & changes.seen.keys():
            generation, end = targets[at]
            # A log that lost its end no longer has everything that was there at the start.
            targets[at] = (generation, min(end, changes.seen[at].end))
        self.targets = targets

    def _seen_at_start(
        self,
        state: SinkState,
        changes: TopicChanges,
        truncations: Sequence[Truncation],
        missing: set[TopicPartition],
    ) -> dict[TopicPartition, tuple[int, int]]:
        """For a run without endingOffsets. A restart begins with what is there by then."""
        seen = {at: (state.topics[at[0]].generation, offsets.stable) for at, offsets in changes.seen.items()}
        targets = self.targets
        if targets is None:
            targets, self._missing_at_start = dict(seen), missing
        for at in self._missing_at_start & seen.keys():
            targets[at] = seen[at]
        self._missing_at_start -= seen.keys()
        self._follow_truncations(targets, seen, truncations)
        return targets

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
