"""Random runs with crashes, a store that loses, delays and repeats requests, and Kafka that loses records.

Hypothesis makes the choices, so that a failure can be shrunk (S3SINK_SHRINK=1). The seeds are for breadth.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.protocol.choosing import Drawn, Seeded
from tests.protocol.simulation import Setting, simulate

# Shrinking a failure takes minutes, so it is done only on request.
PHASES = [p for p in Phase if p is not Phase.shrink or os.environ.get("S3SINK_SHRINK")]
UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=120, phases=PHASES, suppress_health_check=UNHURRIED)
@given(st.data())
def test_no_interleaving_of_drivers_crashes_and_faults_loses_or_repeats_a_record(data: st.DataObject) -> None:
    simulate(Drawn(data))


@pytest.mark.parametrize("block", range(5))
def test_no_seed_loses_or_repeats_a_record(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        simulate(Seeded(seed))


@pytest.mark.parametrize("block", range(2))
def test_a_store_without_conditions_may_repeat_records_and_never_loses_one(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        simulate(Seeded(seed), Setting(conditional=False))


@pytest.mark.parametrize("event", ["gc", "late"])
def test_gc_and_late_requests_cost_no_record_while_every_fourth_request_fails(event: str) -> None:
    for seed in range(60):
        simulate(Seeded(seed), Setting(often=(event,), faults=25))


def test_the_simulation_is_busy_enough_to_be_worth_something() -> None:
    """Otherwise a model that does nothing would pass."""
    ends = [simulate(Seeded(seed)) for seed in range(1000, 1040)]
    last = [world.watchdog.history[-1] for world in ends]
    manifests = [m for world in ends for m in world.watchdog.committed_manifests()]

    assert sum(state.flush for state in last) > 2.5 * len(ends)
    assert sum(state.epoch for state in last) > 4 * len(ends)
    assert sum(len(world.watchdog.holders) for world in ends) > 5 * len(ends)
    assert sum(bool(m.replaces) for m in manifests) > 0
    assert sum(len(m.gaps) for m in manifests) > 10
    assert sum(len({s.partition for s in m.slices}) < len(m.slices) for m in manifests) > len(ends) / 2
    assert sum(len(s.skipped) for m in manifests for s in m.slices) > 0
    assert sum(len(world.watchdog.letters) for world in ends) > len(ends) / 2
    assert max(topic.generation for state in last for topic in state.topics.values()) > 2
    assert sum(len(state.resets) for state in last) > len(ends) / 2
