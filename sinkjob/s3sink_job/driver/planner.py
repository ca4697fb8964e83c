"""Decides what to write now: the rules of the spec, what a run still has to drain, and partitions in backoff."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from s3sink_api.spec import Spec
from s3sink_job.driver.draining import Draining
from s3sink_job.driver.observer import Observation
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.plan import PartitionTimes, Plan, lagging_since, make_plan, note_caught_up
from s3sink_job.flush.slicing import limits_of
from s3sink_job.flush.state import SinkState
from s3sink_job.task.routing import Routing


class Planner:
    def __init__(self, spec: Spec, routing: Routing, clock: Callable[[], float]) -> None:
        self._routing, self._clock = routing, clock
        self.limits = limits_of(spec, spread=routing.spread)
        self.backoff = PartitionBackoff(spec.errors.retries, clock, ends=spec.ends)
        """Partitions whose last slice failed."""
        self.draining = Draining(spec.errors.retries, clock, ends=spec.ends)
        self._times = PartitionTimes()

    def plan(self, state: SinkState, observation: Observation) -> Plan:
        changes = observation.changes
        self.draining.update(state, changes, observation.truncations)
        now = self._clock()
        times = note_caught_up(self._times, state, changes.seen, now)
        # A partition that has caught up, or has another problem now, is no longer in backoff for the old one.
        self.backoff.keep_only(at for at, o in changes.seen.items() if state.offset(*at) < o.stable)
        self._times = replace(times, held_until=self.backoff.until)
        rules = self._routing.rules(self.draining.targets)
        return make_plan(state, changes.seen, self._times, rules, now, self.limits)

    def lagging_since(self, state: SinkState, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        return {at: lagging_since(state, self._times, at) for at in partitions}

    @property
    def poll_interval(self) -> float:
        """Seconds between two observations of Kafka: short enough for the flush interval, and not too short."""
        return min(5.0, max(0.2, self._routing.shortest_interval / 10))
