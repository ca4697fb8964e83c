"""Limits: how many drivers restart at a time, and how often a reverted object is applied."""

from __future__ import annotations

from typing import Any

from s3sink_api.labels import APPLIED
from s3sink_operator.act.revert_backoff import MOST_APPLIES, WINDOW, RevertBackoff
from s3sink_operator.act.rollout import RESTART_TIMEOUT, Rollout
from s3sink_operator.values.objects import SinkKey

SINKS = [SinkKey("shop", f"orders-{number}") for number in range(300)]


def document(version: str = "a", name: str = "orders-s3sink") -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": name, "annotations": {APPLIED: version}}}


def test_a_few_drivers_restart_at_a_time() -> None:
    clock = [0.0]
    rollout = Rollout(2, lambda: clock[0])
    assert [rollout.may_restart(key) for key in SINKS[:4]] == [True, True, False, False]
    assert rollout.may_restart(SINKS[0])
    rollout.finished(SINKS[0])
    assert [rollout.may_restart(key) for key in SINKS[1:4]] == [True, True, False]
    clock[0] = RESTART_TIMEOUT
    assert rollout.may_restart(SINKS[3])


def test_waiting_drivers_are_retried_soon_but_not_all_at_once() -> None:
    rollout = Rollout(1)
    for key in SINKS[:4]:
        rollout.may_restart(key)
    assert rollout.retry_after == 2
    for key in SINKS:
        rollout.may_restart(key)
    assert rollout.retry_after == len(SINKS[1:]) / 30
    for key in SINKS:
        rollout.finished(key)
    assert rollout.retry_after == 2


def test_a_reverted_object_is_applied_only_a_few_times() -> None:
    clock = [0.0]
    backoff = RevertBackoff(lambda: clock[0])
    for _ in range(MOST_APPLIES):
        assert backoff.allows(SINKS[0], document())
        backoff.applied(SINKS[0], document())
    assert not backoff.allows(SINKS[0], document())
    assert backoff.allows(SINKS[0], document("b"))
    assert backoff.allows(SINKS[0], document(name="another"))
    assert backoff.allows(SINKS[1], document())
    clock[0] = WINDOW
    assert backoff.allows(SINKS[0], document())
    backoff.applied(SINKS[0], document("b"))
    assert len(backoff._applies[SINKS[0]]) == 1
    backoff.forget(SINKS[0])
    assert not backoff._applies
