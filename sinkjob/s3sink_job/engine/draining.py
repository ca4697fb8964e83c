"""What a run that ends has to write: everything that was there when it began, and when it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from s3sink_job.engine.holds import Holds
from s3sink_job.flush.contact import Contact
from s3sink_job.flush.plan import TopicPartition, drained
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import State, Truncation
from s3sink_job.spec import Retries


class Draining:
    """`to` is where each partition is to be drained to: (generation, offset). None in a run that goes on."""

    def __init__(self, retries: Retries, clock: Callable[[], float], *, ends: bool) -> None:
        self._ends = ends
        self.to: dict[TopicPartition, tuple[int, int]] | None = None
        self.unavailable = Holds(retries, clock, ends=ends)
        """Partitions that cannot be looked at. They count among the tries, so that no run waits for ever."""
        self._later: set[TopicPartition] = set()
        """Those that could not be looked at when the run began."""

    def look(self, state: State, contact: Contact, cut: Sequence[Truncation]) -> None:
        """After each look at Kafka. `cut` are the logs that were found cut by it."""
        missing = {at: problem for at, problem in contact.problems.items() if problem.reason == UNAVAILABLE}
        self.unavailable.keep_only(missing)
        for at, problem in missing.items():
            if not self.unavailable.held(at):
                self.unavailable.hold(at, problem, retryable=True)
        if not self._ends:
            return
        seen = {at: (state.topics[at[0]].generation, offsets.stable) for at, offsets in contact.seen.items()}
        if self.to is None:
            self.to, self._later = seen, set(missing)
        for at in self._later & seen.keys():
            self.to[at] = seen[at]
        self._later -= seen.keys()
        self._follow(self.to, seen, cut)
        for at in self.to.keys() & contact.seen.keys():
            generation, end = self.to[at]
            # A log that lost its end will not have what was there at the start.
            self.to[at] = (generation, min(end, contact.seen[at].end))

    def _follow(
        self,
        to: dict[TopicPartition, tuple[int, int]],
        seen: Mapping[TopicPartition, tuple[int, int]],
        cut: Sequence[Truncation],
    ) -> None:
        """A log that was cut gives its topic another generation, which is drained as the one before was to be."""
        for event in cut:
            for at, (generation, end) in to.items():
                if at[0] == event.topic and generation == event.generation:
                    to[at] = (event.generation + 1, end)
        again = {(event.topic, event.partition) for event in cut}
        to |= {at: seen[at] for at in again & seen.keys()}

    def over(self, state: State, blocked: Mapping[TopicPartition, Problem], holds: Holds) -> bool:
        """Whether all is committed, but for what is blocked and is not tried again."""
        if self.to is None or any(self.unavailable.will_retry(at) for at in self.unavailable.problems):
            return False
        return drained(state, {at: end for at, end in self.to.items() if at not in blocked or holds.will_retry(at)})
